/*
 * clock_fit: the interval in which the offset between two clocks must lie:
 * intersected with that of each exchange, widened by what the clocks may have
 * drifted since.  Pure.
 *
 * An exchange on a crowded network thus does not spoil a better one shortly
 * before it.  Where the two exclude each other (a machine was suspended, or a
 * clock was set) the newer one counts: the interval always lies within that of
 * the last exchange.
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
	int64_t low;  /* the offset is at least this, ns */
	int64_t high; /* and at most this */
	uint64_t at_ns; /* time of the last exchange */
};

/*
 * Takes an exchange at the time now_ns, by which the offset lies between low
 * and high (low <= high, both within +-CLOCK_FIT_MAX_NS).
 */
void clock_fit_take(struct clock_fit *f, int64_t low, int64_t high,
    uint64_t now_ns);
/* The middle of the interval, ns. */
int64_t clock_fit_offset(const struct clock_fit *f);
/* How far the middle may be off, ns: at the last exchange, and at now_ns. */
uint64_t clock_fit_uncertainty(const struct clock_fit *f);
uint64_t clock_fit_uncertainty_at(const struct clock_fit *f, uint64_t now_ns);

#endif /* TRANSPORT_CLOCK_CLOCK_FIT_H */
