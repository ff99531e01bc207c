/*
 * clocks: measures how far the collector's clocks are from ours: bursts of
 * exchanges, of which the one with the smallest round trip is kept; after each
 * connect, every clock_sync_ms, and when the machine has slept.
 *
 * Knows nothing of connections: it is told of replies and asks for sending.
 */
#ifndef RELAY_CLOCKS_H
#define RELAY_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct clocks;
struct loop;

struct clocks_ops {
	/* An encoded LinkClock (PING or RESULT), to be sent at once. */
	void (*send)(void *arg, const uint8_t *clock, size_t len);
};

/* period_ms: between bursts.  NULL: no memory. */
struct clocks *clocks_new(struct loop *l, uint64_t period_ms,
    const struct clocks_ops *ops, void *arg) MUST_CHECK;
void clocks_free(struct clocks *c);
/* Connected: begins with a burst.  And the end of that. */
void clocks_start(struct clocks *c);
void clocks_stop(struct clocks *c);
/* A LinkClock from the collector, to be passed on as soon as it was read. */
void clocks_take(struct clocks *c, const uint8_t *clock, size_t len);

struct clocks_view {
	bool known;
	int64_t offset_ns; /* collector's BOOTTIME minus ours */
	uint64_t uncertainty_ns;
	uint64_t round_trip_ns;
	uint64_t measured_ms; /* loop_now_ms() */
};
void clocks_view(const struct clocks *c, struct clocks_view *out);

#endif /* RELAY_CLOCKS_H */
