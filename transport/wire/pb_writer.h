/*
 * pb_writer: appends protobuf wire format to a growing buffer.
 *
 * Used where generated code is too slow or too strict: frames, packets with
 * trusted fields, configs rewritten field by field.  Failure (no memory) is
 * sticky: callers check w->failed once at the end.  Little-endian hosts only.
 */
#ifndef TRANSPORT_WIRE_PB_WRITER_H
#define TRANSPORT_WIRE_PB_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/varint.h"

struct pb_writer {
	uint8_t *data; /* owned; free with pb_writer_done() */
	size_t len;
	size_t cap;
	bool failed;
};

void pb_writer_init(struct pb_writer *w);
void pb_writer_done(struct pb_writer *w);
/* Keeps the memory, forgets the contents. */
void pb_writer_reset(struct pb_writer *w);

void pb_put_raw(struct pb_writer *w, const void *data, size_t len);
void pb_put_varint(struct pb_writer *w, uint64_t v); /* no tag */
void pb_put_uint(struct pb_writer *w, uint32_t field, uint64_t v);
/* int32/int64/enum: sign-extended to 64 bits as protobuf wants. */
void pb_put_int(struct pb_writer *w, uint32_t field, int64_t v);
/* sint64: zigzag encoding. */
void pb_put_sint(struct pb_writer *w, uint32_t field, int64_t v);
void pb_put_bytes(struct pb_writer *w, uint32_t field, const void *data,
    size_t len);
void pb_put_string(struct pb_writer *w, uint32_t field, const char *s);

/*
 * A nested message: the returned mark goes to pb_nest_end(), which inserts
 * the length (moves the nested bytes by the size of its varint).
 */
size_t pb_nest_begin(struct pb_writer *w, uint32_t field);
void pb_nest_end(struct pb_writer *w, size_t mark);

/* Bytes that v takes as a varint. */
static inline size_t
pb_varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >= 0x80) {
		v >>= 7;
		n++;
	}
	return n;
}

#endif /* TRANSPORT_WIRE_PB_WRITER_H */
