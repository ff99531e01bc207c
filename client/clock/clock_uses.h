/*
 * clock_uses: the clocks in which the packets of a trace tell their times, and
 * how many of these times could be brought into the trace clock.
 */
#ifndef CLIENT_CLOCK_CLOCK_USES_H
#define CLIENT_CLOCK_CLOCK_USES_H

#include <stddef.h>
#include <stdint.h>

#include "client/clock/clock_graph.h"
#include "transport/base/hash_map.h"

struct trace_moment;

/* Further clocks are not kept apart. */
#define CLOCK_USES_MAX 3072u

struct clock_use {
	struct hash_link link; /* in by_key */
	struct clock_key key;
	uint64_t packets;
	/*
	 * Timestamps not brought into the trace clock, by cause (enum
	 * trace_time).
	 */
	uint64_t unknown, no_way, went_back, lost;
};

struct clock_uses {
	struct clock_use *all;   /* owned; in the order of their first packets */
	struct hash_map by_key;
	struct clock_use others; /* clocks that found no room */
	uint64_t timed;          /* packets that say a time */
	uint64_t resolved;
	uint64_t first_ns, last_ns; /* in the trace clock, of `resolved` */
};

/* Zero-initialised is ready to use. */
void clock_uses_done(struct clock_uses *u);
void clock_uses_take(struct clock_uses *u, const struct trace_moment *m);
/* Next clock behind *at, which begins as 0; NULL: that was the last. */
const struct clock_use *clock_uses_next(const struct clock_uses *u,
    size_t *at);

#endif /* CLIENT_CLOCK_CLOCK_USES_H */
