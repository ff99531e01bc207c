#include "client/tracing/packet/packet.h"

#include <stdlib.h>

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* A tag and a varint. */
#define FIELD_MAX 16u
/* Fields ask for more room than they take. */
#define ROOM_MAX (PACKET_MAX + FIELD_MAX)

void
packet_done(struct tributary_packet *p)
{
	if (p->data != p->own)
		free(p->data);
}

bool
packet_grow(struct tributary_packet *p, size_t n)
{
	size_t len = packet_len(p), cap = (size_t)(p->end - p->data);
	uint8_t *data = NULL;

	if (n > ROOM_MAX || len + n > ROOM_MAX)
		p->failed = true;
	while (!p->failed && cap < len + n)
		cap = cap < ROOM_MAX / 2 ? cap * 2 : ROOM_MAX;
	if (!p->failed)
		data = realloc(p->data == p->own ? NULL : p->data, cap);
	if (data == NULL) {
		p->failed = true;
		return false;
	}
	if (p->data == p->own)
		memcpy(data, p->own, len);
	p->data = data;
	p->at = data + len;
	p->end = data + cap;
	return true;
}

static void
put_varint_field(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	if (!packet_room(p, FIELD_MAX))
		return;
	p->at += pb_encode_varint(p->at, (uint64_t)field << 3 | PB_VARINT);
	p->at += pb_encode_varint(p->at, v);
}

void
tributary_put_uint(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	put_varint_field(p, field, v);
}

void
tributary_put_int(struct tributary_packet *p, uint32_t field, int64_t v)
{
	put_varint_field(p, field, (uint64_t)v);
}

void
tributary_put_sint(struct tributary_packet *p, uint32_t field, int64_t v)
{
	put_varint_field(p, field,
	    (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

static void
put_fixed(struct tributary_packet *p, uint32_t field, enum pb_wire wire,
    const void *v, size_t len)
{
	if (!packet_room(p, FIELD_MAX))
		return;
	p->at += pb_encode_varint(p->at, (uint64_t)field << 3 | wire);
	memcpy(p->at, v, len);
	p->at += len;
}

void
tributary_put_fixed64(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	put_fixed(p, field, PB_FIXED64, &v, sizeof(v));
}

void
tributary_put_fixed32(struct tributary_packet *p, uint32_t field, uint32_t v)
{
	put_fixed(p, field, PB_FIXED32, &v, sizeof(v));
}

void
tributary_put_double(struct tributary_packet *p, uint32_t field, double v)
{
	put_fixed(p, field, PB_FIXED64, &v, sizeof(v));
}

void
tributary_put_float(struct tributary_packet *p, uint32_t field, float v)
{
	put_fixed(p, field, PB_FIXED32, &v, sizeof(v));
}

void
tributary_put_encoded(struct tributary_packet *p, const void *data, size_t len)
{
	if (len == 0 || !packet_room(p, len))
		return;
	memcpy(p->at, data, len);
	p->at += len;
}

void
tributary_put_bytes(struct tributary_packet *p, uint32_t field,
    const void *data, size_t len)
{
	if (!packet_room(p, FIELD_MAX + len))
		return;
	p->at += pb_encode_varint(p->at, (uint64_t)field << 3 | PB_BYTES);
	p->at += pb_encode_varint(p->at, len);
	tributary_put_encoded(p, data, len);
}

void
tributary_put_string(struct tributary_packet *p, uint32_t field, const char *s)
{
	tributary_put_bytes(p, field, s, strlen(s));
}

void
tributary_begin(struct tributary_packet *p, uint32_t field)
{
	if (p->depth == PACKET_DEPTH_MAX)
		p->failed = true;
	if (p->failed || !packet_room(p, FIELD_MAX))
		return;
	p->at += pb_encode_varint(p->at, (uint64_t)field << 3 | PB_BYTES);
	p->begun[p->depth++] = (uint32_t)packet_len(p);
	p->at++;
}

void
tributary_end(struct tributary_packet *p)
{
	uint8_t *size, prefix[10];
	size_t len, n;

	if (p->depth == 0)
		p->failed = true;
	if (p->failed)
		return;
	size = p->data + p->begun[--p->depth];
	len = (size_t)(p->at - size) - 1;
	n = pb_encode_varint(prefix, len);
	if (n > 1) {
		if (!packet_room(p, n - 1))
			return;
		size = p->data + p->begun[p->depth];
		memmove(size + n, size + 1, len);
		p->at += n - 1;
	}
	memcpy(size, prefix, n);
}

void
tributary_packet_clears_state(struct tributary_packet *p)
{
	p->flags |= 1; /* SEQ_INCREMENTAL_STATE_CLEARED */
}

void
tributary_packet_needs_state(struct tributary_packet *p)
{
	p->flags |= 2; /* SEQ_NEEDS_INCREMENTAL_STATE */
}
