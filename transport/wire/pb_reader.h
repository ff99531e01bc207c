/*
 * pb_reader: reads protobuf wire format in place, bounds-checked, without
 * allocation (the hot path and the packet validator).  Untrusted input.
 *
 * All inline.  Groups (wire types 3, 4) and field number 0 are malformed.
 */
#ifndef TRANSPORT_WIRE_PB_READER_H
#define TRANSPORT_WIRE_PB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "protos/varint.h"
#include "transport/base/compiler.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };
/* The tag of a field below 16, one byte. */
#define PB_TAG(field, wire) ((uint8_t)((field) << 3 | (wire)))

struct pb_reader {
	const uint8_t *p;
	const uint8_t *end;
	bool bad; /* set for good at the first malformed byte */
};

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;      /* VARINT, FIXED*; BYTES: length */
	const uint8_t *data; /* BYTES: borrowed from the input */
	size_t len;          /* BYTES */
	const uint8_t *start; /* first byte of the tag (to copy a field whole) */
};

static inline void
pb_init(struct pb_reader *r, const uint8_t *data, size_t len)
{
	r->p = data;
	r->end = len > 0 ? data + len : data; /* data may be NULL */
	r->bad = false;
}

/* Walks through the fields of a message; struct pb_field *f, struct pb_reader *r. */
#define PB_FOREACH(f, r, data, len)                                           \
	for (pb_init((r), (data), (len)); pb_next((r), (f));)

/* The next field; false at the end or when malformed (r->bad tells). */
static inline bool
pb_next(struct pb_reader *r, struct pb_field *f)
{
	const uint8_t *p = r->p;
	uint64_t tag, v;

	if (p >= r->end)
		return false;
	f->start = p;
	if ((p = pb_varint(p, r->end, &tag)) == NULL)
		goto bad;
	if (UNLIKELY((tag >> 3) == 0 || tag > UINT32_MAX))
		goto bad;
	f->number = (uint32_t)(tag >> 3);
	f->wire = (enum pb_wire)(tag & 7);
	f->data = NULL;
	f->len = 0;
	switch (tag & 7) {
	case PB_VARINT:
		if ((p = pb_varint(p, r->end, &v)) == NULL)
			goto bad;
		f->value = v;
		break;
	case PB_BYTES:
		if ((p = pb_varint(p, r->end, &v)) == NULL)
			goto bad;
		if (v > (uint64_t)(r->end - p))
			goto bad;
		f->value = v;
		f->data = p;
		f->len = (size_t)v;
		p += v;
		break;
	case PB_FIXED64:
		if (r->end - p < 8)
			goto bad;
		memcpy(&f->value, p, 8); /* little-endian hosts only */
		p += 8;
		break;
	case PB_FIXED32: {
		uint32_t w;

		if (r->end - p < 4)
			goto bad;
		memcpy(&w, p, 4);
		f->value = w;
		p += 4;
		break;
	}
	default:
		goto bad;
	}
	r->p = p;
	return true;

bad:
	r->bad = true;
	r->p = r->end;
	return false;
}

/* Whether the bytes are a well-formed message, at its top level. */
static inline bool
pb_well_formed(const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		;
	return !r.bad;
}

#endif /* TRANSPORT_WIRE_PB_READER_H */
