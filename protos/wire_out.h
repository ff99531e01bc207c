/*
 * wire_out: a growing buffer of wire format with an upper bound.
 *
 * The first failure is kept and makes later calls do nothing, so callers check
 * once, at the end or wherever stopping early pays.
 */
#ifndef PROTOS_WIRE_OUT_H
#define PROTOS_WIRE_OUT_H

#include <stddef.h>
#include <stdint.h>

enum wire_out_failure {
	WIRE_OUT_OK,
	WIRE_OUT_TOO_LARGE, /* max was reached */
	WIRE_OUT_NO_MEMORY
};

struct wire_out {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	size_t max;
	enum wire_out_failure failed;
};

void wire_out_init(struct wire_out *o, size_t max);
void wire_out_done(struct wire_out *o);

/*
 * Room for n more bytes, at the returned address until the next call; bytes
 * written there are added by wire_out_add().  NULL on failure.
 */
uint8_t *wire_out_reserve(struct wire_out *o, size_t n);
void wire_out_add(struct wire_out *o, size_t n);

void wire_out_varint(struct wire_out *o, uint64_t v);
void wire_out_fixed(struct wire_out *o, uint64_t v, size_t bytes);

/*
 * A length-delimited value: wire_out_close(), given the mark that
 * wire_out_open() returned, puts the length before the bytes written since.
 */
size_t wire_out_open(struct wire_out *o);
void wire_out_close(struct wire_out *o, size_t mark);

/* The bytes (never NULL), for the caller to free(); NULL: a call failed. */
uint8_t *wire_out_take(struct wire_out *o, size_t *len);

#endif /* PROTOS_WIRE_OUT_H */
