/*
 * packet: a TracePacket that is being written, field by field.
 *
 * A packet is made where it is to be in the end (packet_init_in()) or in the
 * struct, on the caller's stack, and moves into memory that grows when it is
 * larger.  The length of a nested message is written when it ends: one byte is
 * kept for it, and its bytes move if it takes more.  Failure (no memory, or too
 * deep) is remembered, and the packet then dropped.
 *
 * packet_put_uint() and the like are tributary_put_uint() and the like, inline:
 * where the field is a constant, so is its encoded tag.
 */
#ifndef CLIENT_TRACING_PACKET_PACKET_H
#define CLIENT_TRACING_PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tributary/data_source.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Most bytes of a field's tag and its number. */
#define PACKET_FIELD_MAX 16u
#define PACKET_OWN_BYTES 512u
/* No packet grows longer: services refuse it. */
#define PACKET_MAX       (64u * 1024u * 1024u)
#define PACKET_DEPTH_MAX 32u

struct tributary_packet {
	uint8_t *at; /* the next byte */
	uint8_t *end;
	uint8_t *data; /* own, allocated, or the room of packet_init_in() */
	bool allocated;
	bool failed;
	uint8_t flags; /* TracePacket.sequence_flags to be added */
	unsigned depth;
	uint32_t begun[PACKET_DEPTH_MAX]; /* offsets of the bytes for lengths */
	uint8_t own[PACKET_OWN_BYTES];
};

/* room is borrowed; a packet that outgrows it leaves it (packet_is_in()). */
static inline void
packet_init_in(struct tributary_packet *p, uint8_t *room, size_t len)
{
	p->at = p->data = room;
	p->end = room + len;
	p->allocated = p->failed = false;
	p->flags = 0;
	p->depth = 0;
}

static inline bool
packet_is_in(const struct tributary_packet *p, const uint8_t *room)
{
	return p->data == room;
}

static inline void
packet_init(struct tributary_packet *p)
{
	packet_init_in(p, p->own, sizeof(p->own));
}

/* The end of a packet that has allocated. */
void packet_free(struct tributary_packet *p);
static inline void
packet_done(struct tributary_packet *p)
{
	if (UNLIKELY(p->allocated))
		packet_free(p);
}

/* Room for n more bytes.  false: failed (no memory, or PACKET_MAX). */
bool packet_grow(struct tributary_packet *p, size_t n);
static inline bool
packet_room(struct tributary_packet *p, size_t n)
{
	return LIKELY((size_t)(p->end - p->at) >= n) || packet_grow(p, n);
}

static inline size_t
packet_len(const struct tributary_packet *p)
{
	return (size_t)(p->at - p->data);
}

static inline uint8_t *
packet_varint(uint8_t *at, uint64_t v)
{
	if (UNLIKELY(v >= 0x80))
		return at + pb_encode_varint(at, v);
	*at = (uint8_t)v;
	return at + 1;
}

static inline uint8_t *
packet_tag(uint8_t *at, uint32_t field, enum pb_wire wire)
{
	return packet_varint(at, (uint64_t)field << 3 | wire);
}

static inline void
packet_put_uint(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	if (packet_room(p, PACKET_FIELD_MAX))
		p->at = packet_varint(packet_tag(p->at, field, PB_VARINT), v);
}

/* v: of len bytes, as wire says. */
static inline void
packet_put_fixed(struct tributary_packet *p, uint32_t field, enum pb_wire wire,
    const void *v, size_t len)
{
	uint8_t *at;

	if (!packet_room(p, PACKET_FIELD_MAX))
		return;
	at = packet_tag(p->at, field, wire);
	memcpy(at, v, len);
	p->at = at + len;
}

static inline void
packet_put_bytes(struct tributary_packet *p, uint32_t field, const void *data,
    size_t len)
{
	uint8_t *at;

	/* The sum does not wrap around. */
	if (!packet_room(p, len <= PACKET_MAX ? PACKET_FIELD_MAX + len :
	    SIZE_MAX))
		return;
	at = packet_varint(packet_tag(p->at, field, PB_BYTES), len);
	if (len > 0)
		memcpy(at, data, len);
	p->at = at + len;
}

static inline void
packet_begin(struct tributary_packet *p, uint32_t field)
{
	uint8_t *at;

	if (UNLIKELY(p->depth == PACKET_DEPTH_MAX))
		p->failed = true;
	if (UNLIKELY(p->failed) || !packet_room(p, PACKET_FIELD_MAX))
		return;
	at = packet_tag(p->at, field, PB_BYTES);
	p->begun[p->depth++] = (uint32_t)(at - p->data);
	p->at = at + 1;
}

static inline void
packet_end(struct tributary_packet *p)
{
	uint8_t *size;

	if (LIKELY(p->depth > 0 && !p->failed)) {
		size = p->data + p->begun[p->depth - 1];
		if (LIKELY(p->at - size <= 0x80)) {
			*size = (uint8_t)(p->at - size - 1);
			p->depth--;
			return;
		}
	}
	tributary_end(p);
}

#endif /* CLIENT_TRACING_PACKET_PACKET_H */
