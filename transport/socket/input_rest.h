/*
 * input_rest: input that the owner of a stream has not consumed yet: the
 * beginning of one unit, or, after a pause, several.  Empty it holds no memory.
 */
#ifndef TRANSPORT_SOCKET_INPUT_REST_H
#define TRANSPORT_SOCKET_INPUT_REST_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct input_rest {
	uint8_t *mem; /* owned; NULL: empty */
	size_t off;   /* of the first byte that is kept */
	size_t end;
	size_t cap;
};

static inline size_t
input_rest_len(const struct input_rest *k)
{
	return k->end - k->off;
}

static inline const uint8_t *
input_rest_data(const struct input_rest *k)
{
	return k->mem + k->off;
}

void input_rest_free(struct input_rest *k);

/*
 * Appends len bytes, in memory of at least `want` bytes from the first kept
 * byte on.  -1: no memory; nothing changed.
 */
int input_rest_add(struct input_rest *k, const uint8_t *data, size_t len,
    size_t want)
    MUST_CHECK;

/* Forgets n bytes from the front; keeps the memory. */
void input_rest_drop(struct input_rest *k, size_t n);

/* Gives back memory when under half of it is needed for `want` bytes. */
void input_rest_shrink(struct input_rest *k, size_t want);

#endif /* TRANSPORT_SOCKET_INPUT_REST_H */
