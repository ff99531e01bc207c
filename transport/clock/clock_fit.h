/*
 * clock_fit: what is known of the distance between two clocks: the interval in
 * which it must lie, narrowed by each exchange that shows more, widened by what
 * the clocks may have drifted since.  Pure.
 *
 * An exchange on a crowded network thus takes nothing away from what a better
 * one said shortly before.  Where the two exclude each other (a clock slept or
 * was set) the newer one is right: what is known never lies outside of what
 * the last exchange permits.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_FIT_H
#define TRANSPORT_CLOCK_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How far two machines' clocks run apart: each is a quartz, good to 50 parts in
 * a million.
 */
#define CLOCK_FIT_DRIFT_PPM 100u

/* 73 years: no BOOTTIME is as large, and sums stay within 64 bits. */
#define CLOCK_FIT_MAX_NS (INT64_C(1) << 61)

/* Zero-initialised is ready to use: nothing is known. */
struct clock_fit {
	bool known;
	int64_t low; /* the distance is at least this, ns */
	int64_t high;
	uint64_t at_ns; /* when it was so */
};

/*
 * An exchange at the time now_ns says that it lies between low and high (low <=
 * high, both within +-CLOCK_FIT_MAX_NS).
 */
void clock_fit_take(struct clock_fit *f, int64_t low, int64_t high,
    uint64_t now_ns);
/* The middle; and how far it may be off, then, and now. */
int64_t clock_fit_offset(const struct clock_fit *f);
uint64_t clock_fit_uncertainty(const struct clock_fit *f);
uint64_t clock_fit_uncertainty_at(const struct clock_fit *f, uint64_t now_ns);

#endif /* TRANSPORT_CLOCK_CLOCK_FIT_H */
