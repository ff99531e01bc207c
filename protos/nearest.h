/*
 * nearest: the candidate with the smallest edit distance from a mistyped word.
 *
 * Offer the candidates one by one, then take the best; pure, no allocation.
 */
#ifndef PROTOS_NEAREST_H
#define PROTOS_NEAREST_H

#include <stddef.h>

/* Longest word and candidate that are compared, in bytes. */
#define NEAREST_MAX_WORD 64

struct nearest {
	const char *word; /* borrowed */
	size_t len;
	const char *best; /* borrowed from the caller of nearest_offer() */
	unsigned best_cost;
};

/* word stays the caller's and must outlive n. */
void nearest_init(struct nearest *n, const char *word, size_t len);

/* candidate is kept by address while it is the best one. */
void nearest_offer(struct nearest *n, const char *candidate);

/* The closest candidate, the earliest of equals; NULL when none is close. */
const char *nearest_best(const struct nearest *n);

#endif /* PROTOS_NEAREST_H */
