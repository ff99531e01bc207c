#ifndef TESTS_UNIT_TRANSPORT_LINK_LINK_CLOCK_ESTIMATE_H
#define TESTS_UNIT_TRANSPORT_LINK_LINK_CLOCK_ESTIMATE_H

#include "transport/link/link_clock.h"

/*
 * The host's CLOCK_BOOTTIME minus the relay's, as the middle of what is
 * possible, and how far off it may be: the host read its clocks somewhere
 * between before and after.
 */
static inline void
link_clock_estimate(const struct clock_snapshot *before,
    const struct clock_snapshot *host, const struct clock_snapshot *after,
    int64_t *offset_ns, uint64_t *uncertainty_ns)
{
	uint64_t from = clock_snapshot_ns(before, CLOCK_ID_BOOTTIME);
	uint64_t to = clock_snapshot_ns(after, CLOCK_ID_BOOTTIME);
	uint64_t there = clock_snapshot_ns(host, CLOCK_ID_BOOTTIME);
	uint64_t half = (to - from) / 2;

	*offset_ns = (int64_t)(there - (from + half));
	*uncertainty_ns = to - from - half;
}

#endif /* TESTS_UNIT_TRANSPORT_LINK_LINK_CLOCK_ESTIMATE_H */
