/*
 * delays: a histogram of how long something took.  Pure.
 */
#ifndef SERVICE_LIMITS_DELAYS_H
#define SERVICE_LIMITS_DELAYS_H

#include <stddef.h>
#include <stdint.h>

#define DELAYS 12u

/* All zero: none. */
struct delays {
	uint64_t n[DELAYS]; /* each of its own row alone */
	uint64_t sum_ns;
};

void delays_note(struct delays *d, uint64_t ns);
/* The longest delay that a row counts; UINT64_MAX for the last one. */
uint64_t delays_most_ns(size_t row);

#endif /* SERVICE_LIMITS_DELAYS_H */
