/*
 * packet: a TracePacket that is being written, field by field.
 *
 * Small packets are made in the struct, on the caller's stack; larger ones in
 * memory that grows.  The length of a nested message is written when it ends:
 * one byte is kept for it, and its bytes move if it takes more.  Failure (no
 * memory, or too deep) is remembered, and the packet then dropped.
 */
#ifndef CLIENT_TRACING_PACKET_PACKET_H
#define CLIENT_TRACING_PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tributary/data_source.h>

#include "transport/base/compiler.h"

#define PACKET_OWN_BYTES 512u
/* No packet grows longer: services refuse it. */
#define PACKET_MAX       (64u * 1024u * 1024u)
#define PACKET_DEPTH_MAX 32u

struct tributary_packet {
	uint8_t *at; /* the next byte */
	uint8_t *end;
	uint8_t *data; /* own, or allocated */
	bool failed;
	uint8_t flags; /* TracePacket.sequence_flags to be added */
	unsigned depth;
	uint32_t begun[PACKET_DEPTH_MAX]; /* offsets of the bytes for lengths */
	uint8_t own[PACKET_OWN_BYTES];
};

static inline void
packet_init(struct tributary_packet *p)
{
	p->at = p->data = p->own;
	p->end = p->own + sizeof(p->own);
	p->failed = false;
	p->flags = 0;
	p->depth = 0;
}

void packet_done(struct tributary_packet *p);

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

#endif /* CLIENT_TRACING_PACKET_PACKET_H */
