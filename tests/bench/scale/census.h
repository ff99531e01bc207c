/*
 * census: where many names land by placement_order(), and what moves when a
 * collector is added or removed.  Deterministic, and independent of the number
 * of threads that count.
 */
#ifndef TESTS_BENCH_SCALE_CENSUS_H
#define TESTS_BENCH_SCALE_CENSUS_H

#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/connect/placement.h"

/* One collector is added to n, or the last of n is removed. */
struct census {
	uint32_t names, n;
	uint32_t at[PLACEMENT_MAX]; /* names that each of the n has */
	/* Names of the last one, by the second in their order. */
	uint32_t heirs[PLACEMENT_MAX];
	uint32_t moved_to_added;
	uint32_t moved_from_removed;
	/* Names that the change did not concern, and that moved all the same. */
	uint32_t moved_otherwise;
};

/* The numbers at, or 0, of a name's first collector. */
struct spread {
	double least, most; /* as parts of their mean */
	/* The largest distance from the mean in standard deviations of a fair
	 * draw (binomial). */
	double sigmas;
};

/*
 * Counts names device-0, device-1, ... over the collectors c0, c1, ...; n is 3
 * to PLACEMENT_MAX - 1.  -1 with a sentence in err.
 */
int census_take(struct census *c, uint32_t names, uint32_t n, char *err,
    size_t err_size) MUST_CHECK;
/* Of the first n counts, which a fair draw would make equal. */
struct spread census_spread(const uint32_t *counts, uint32_t n);

#endif /* TESTS_BENCH_SCALE_CENSUS_H */
