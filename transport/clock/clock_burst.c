#include "transport/clock/clock_burst.h"

bool
clock_burst_add(struct clock_burst *b, uint64_t round_trip_ns)
{
	bool first = b->n++ == 0;
	bool shorter = first || round_trip_ns < b->best_ns;

	if (first || round_trip_ns < b->best_ns - b->best_ns / 16)
		b->alike = 0;
	else
		b->alike++;
	if (shorter)
		b->best_ns = round_trip_ns;
	return shorter;
}

bool
clock_burst_is_over(const struct clock_burst *b, uint64_t known_ns)
{
	if (b->n < CLOCK_BURST_MIN)
		return false;
	if (b->best_ns > known_ns)
		return b->n >= CLOCK_BURST_AT_ALL;
	return b->n >= CLOCK_BURST_MAX || b->alike >= CLOCK_BURST_ALIKE;
}
