#include "protos/wire_out.h"

#include <stdlib.h>
#include <string.h>

#include "protos/varint.h"

#define FIRST_CAP 256

void
wire_out_init(struct wire_out *o, size_t max)
{
	*o = (struct wire_out){ .max = max };
}

void
wire_out_done(struct wire_out *o)
{
	free(o->data);
	o->data = NULL;
	o->len = o->cap = 0;
}

uint8_t *
wire_out_reserve(struct wire_out *o, size_t n)
{
	size_t cap = o->cap;
	uint8_t *data;

	if (o->failed != WIRE_OUT_OK)
		return NULL;
	if (n > o->max - o->len) {
		o->failed = WIRE_OUT_TOO_LARGE;
		return NULL;
	}
	if (o->data != NULL && n <= cap - o->len)
		return o->data + o->len;
	if (cap == 0)
		cap = FIRST_CAP;
	while (cap - o->len < n)
		cap *= 2;
	if ((data = realloc(o->data, cap)) == NULL) {
		o->failed = WIRE_OUT_NO_MEMORY;
		return NULL;
	}
	o->data = data;
	o->cap = cap;
	return data + o->len;
}

void
wire_out_add(struct wire_out *o, size_t n)
{
	o->len += n;
}

static void
put(struct wire_out *o, const uint8_t *bytes, size_t n)
{
	uint8_t *to = wire_out_reserve(o, n);

	if (to == NULL)
		return;
	memcpy(to, bytes, n);
	wire_out_add(o, n);
}

void
wire_out_varint(struct wire_out *o, uint64_t v)
{
	uint8_t bytes[PB_VARINT_MAX];

	put(o, bytes, pb_encode_varint(bytes, v));
}

void
wire_out_fixed(struct wire_out *o, uint64_t v, size_t bytes)
{
	uint8_t le[8];
	size_t i;

	for (i = 0; i < bytes; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	put(o, le, bytes);
}

size_t
wire_out_open(struct wire_out *o)
{
	return o->len;
}

void
wire_out_close(struct wire_out *o, size_t mark)
{
	uint8_t head[PB_VARINT_MAX];
	size_t n;

	n = pb_encode_varint(head, o->len - mark);
	if (wire_out_reserve(o, n) == NULL)
		return;
	memmove(o->data + mark + n, o->data + mark, o->len - mark);
	memcpy(o->data + mark, head, n);
	o->len += n;
}

uint8_t *
wire_out_take(struct wire_out *o, size_t *len)
{
	uint8_t *data;

	if (wire_out_reserve(o, 0) == NULL)
		return NULL;
	data = o->data;
	*len = o->len;
	o->data = NULL;
	o->len = o->cap = 0;
	return data;
}
