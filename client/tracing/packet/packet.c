#include "client/tracing/packet/packet.h"

#include "client/tracing/memory/own_memory.h"

/* Fields ask for more room than they take. */
#define ROOM_MAX (PACKET_MAX + PACKET_FIELD_MAX)

/*
 * NULL: no memory, or the caller is in a signal handler that has interrupted the
 * library.  From the room that it was begun in to its own first.
 */
static uint8_t *
move(struct tributary_packet *p, size_t len, size_t cap)
{
	uint8_t *data = p->own;

	if (p->allocated || p->data == p->own || cap > sizeof(p->own)) {
		if (!own_try_enter())
			return NULL;
		data = p->allocated ?
		    own_realloc(p->data, (size_t)(p->end - p->data), cap) :
		    own_alloc(cap);
		own_leave();
	}
	if (data != NULL && !p->allocated)
		memcpy(data, p->data, len);
	return data;
}

void
packet_free(struct tributary_packet *p)
{
	own_free(p->data, (size_t)(p->end - p->data));
}

bool
packet_grow(struct tributary_packet *p, size_t n)
{
	size_t len = packet_len(p), cap = sizeof(p->own);
	uint8_t *data = NULL;

	if (n > ROOM_MAX || len + n > ROOM_MAX)
		p->failed = true;
	while (!p->failed && cap < len + n)
		cap = cap < ROOM_MAX / 2 ? cap * 2 : ROOM_MAX;
	if (!p->failed)
		data = move(p, len, cap);
	if (data == NULL) {
		p->failed = true;
		return false;
	}
	p->allocated = data != p->own;
	p->data = data;
	p->at = data + len;
	p->end = data + cap;
	return true;
}

void
tributary_put_uint(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	packet_put_uint(p, field, v);
}

void
tributary_put_int(struct tributary_packet *p, uint32_t field, int64_t v)
{
	packet_put_uint(p, field, (uint64_t)v);
}

void
tributary_put_sint(struct tributary_packet *p, uint32_t field, int64_t v)
{
	packet_put_uint(p, field, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void
tributary_put_fixed64(struct tributary_packet *p, uint32_t field, uint64_t v)
{
	packet_put_fixed(p, field, PB_FIXED64, &v, sizeof(v));
}

void
tributary_put_fixed32(struct tributary_packet *p, uint32_t field, uint32_t v)
{
	packet_put_fixed(p, field, PB_FIXED32, &v, sizeof(v));
}

void
tributary_put_double(struct tributary_packet *p, uint32_t field, double v)
{
	packet_put_fixed(p, field, PB_FIXED64, &v, sizeof(v));
}

void
tributary_put_float(struct tributary_packet *p, uint32_t field, float v)
{
	packet_put_fixed(p, field, PB_FIXED32, &v, sizeof(v));
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
	packet_put_bytes(p, field, data, len);
}

void
tributary_put_string(struct tributary_packet *p, uint32_t field, const char *s)
{
	packet_put_bytes(p, field, s, strlen(s));
}

void
tributary_begin(struct tributary_packet *p, uint32_t field)
{
	packet_begin(p, field);
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
