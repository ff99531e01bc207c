/*
 * histogram: how often which value was seen, to one part in sixteen, in fixed
 * memory.  Pure.
 */
#ifndef TESTS_BENCH_LOAD_HISTOGRAM_H
#define TESTS_BENCH_LOAD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 16u /* of each power of two */
#define HISTOGRAM_SLOTS (HISTOGRAM_STEPS * 60u)

struct histogram {
	uint64_t n;
	uint64_t sum;
	uint64_t max;
	uint64_t slots[HISTOGRAM_SLOTS];
};

void histogram_add(struct histogram *h, uint64_t value);
/*
 * The value that so many per mille of all are at most, rounded up by a
 * sixteenth at most; exactly the maximum for 1000.  0: nothing was seen.
 */
uint64_t histogram_at(const struct histogram *h, unsigned per_mille);

#endif /* TESTS_BENCH_LOAD_HISTOGRAM_H */
