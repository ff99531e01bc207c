/*
 * storm: when devices arrive that lost their collector, second by second, as
 * relays decide it (relay/uplink/choice.h).  Deterministic.
 *
 * All lose it at the same moment, and attempts that fail do so at once, as where
 * a process has ended and its host has not: nothing else spreads them.
 */
#ifndef TESTS_BENCH_SCALE_STORM_H
#define TESTS_BENCH_SCALE_STORM_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/uplink/choice.h"

#define STORM_SECONDS 180u

struct storm_rules {
	struct choice_times times;
	/*
	 * From the end on until the address that was lost leads to a collector
	 * again: the same one, or another by HAProxy.  0: never; relays have a
	 * list, and move.
	 */
	uint64_t back_ms;
	bool jitter; /* false: as if chance had always been 0 */
};

/* Devices that arrive at one collector. */
struct storm {
	uint32_t devices;
	uint32_t in[STORM_SECONDS]; /* of each second from the end on */
	uint32_t late;              /* behind the last one */
	uint32_t most_in_100_ms;
};

/*
 * Milliseconds from the end until the attempt that succeeds; state: of the
 * random numbers.
 */
uint64_t storm_arrival_ms(const struct storm_rules *r, uint64_t *state);
void storm_run(struct storm *s, const struct storm_rules *r, uint32_t devices);

#endif /* TESTS_BENCH_SCALE_STORM_H */
