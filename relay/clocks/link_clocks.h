/*
 * link_clocks: measures how far the collector's clocks are from ours, by bursts
 * of exchanges, of which the one with the smallest round trip is kept (as NTP
 * does): after each connect, every clock_sync_ms, and when the machine has
 * slept.
 *
 * Knows nothing of connections: the owner passes replies in and sends for it.
 * Belongs to the loop's thread.
 */
#ifndef RELAY_CLOCKS_LINK_CLOCKS_H
#define RELAY_CLOCKS_LINK_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct link_clocks;
struct loop;

struct link_clocks_ops {
	/* Sends an encoded LinkClock (PING or RESULT) at once. */
	void (*send)(void *arg, const uint8_t *clock, size_t len);
};

/* Copies ops.  period_ms: pause between bursts.  NULL: no memory. */
struct link_clocks *link_clocks_new(struct loop *l, uint64_t period_ms,
    const struct link_clocks_ops *ops, void *arg) MUST_CHECK;
void link_clocks_free(struct link_clocks *c);
/* Start and end of a connection; begins with a burst. */
void link_clocks_start(struct link_clocks *c);
void link_clocks_stop(struct link_clocks *c);
/* Takes a LinkClock from the collector, as soon as it was read. */
void link_clocks_take(struct link_clocks *c, const uint8_t *clock, size_t len);

struct link_clocks_view {
	bool known; /* there was a measurement; the rest is set */
	int64_t offset_ns; /* collector's BOOTTIME minus ours */
	uint64_t uncertainty_ns;
	uint64_t round_trip_ns;
	uint64_t measured_ms; /* loop_now_ms() of the measurement */
};
void link_clocks_view(const struct link_clocks *c,
    struct link_clocks_view *out);

#endif /* RELAY_CLOCKS_LINK_CLOCKS_H */
