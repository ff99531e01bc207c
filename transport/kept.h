/*
 * kept: input that its reader could not use yet: the beginning of one unit,
 * or, after a pause, several.  Empty it holds no memory.
 */
#ifndef TRANSPORT_KEPT_H
#define TRANSPORT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct kept {
	uint8_t *mem; /* owned; NULL: empty */
	size_t off;   /* of the first byte that is kept */
	size_t end;
	size_t cap;
};

static inline size_t
kept_len(const struct kept *k)
{
	return k->end - k->off;
}

static inline const uint8_t *
kept_data(const struct kept *k)
{
	return k->mem + k->off;
}

void kept_free(struct kept *k);

/*
 * Appends len bytes, in memory of at least `want` bytes from the first kept
 * byte on.  -1: no memory; nothing changed.
 */
int kept_add(struct kept *k, const uint8_t *data, size_t len, size_t want)
    MUST_CHECK;

/* Forgets n bytes from the front; keeps the memory. */
void kept_drop(struct kept *k, size_t n);

/* Gives back memory when under half of it is needed for `want` bytes. */
void kept_shrink(struct kept *k, size_t want);

#endif /* TRANSPORT_KEPT_H */
