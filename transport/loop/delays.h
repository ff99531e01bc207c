/*
 * delays: a histogram of how long something took.  Pure.
 */
#ifndef TRANSPORT_LOOP_DELAYS_H
#define TRANSPORT_LOOP_DELAYS_H

#include <stddef.h>
#include <stdint.h>

/* Rows of a LinkStatus are these, so that they never change. */
#define DELAYS 12u

/* All zero: none. */
struct delays {
	uint64_t n[DELAYS]; /* each of its own row alone */
	uint64_t sum_ns;
};

void delays_note(struct delays *d, uint64_t ns);
/* The longest delay that a row counts; UINT64_MAX for the last one. */
uint64_t delays_most_ns(size_t row);

#endif /* TRANSPORT_LOOP_DELAYS_H */
