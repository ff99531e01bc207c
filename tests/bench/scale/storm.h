/*
 * storm: when devices arrive that lost their collector, second by second, with
 * the pauses of a relay (backoff_ms()).  Deterministic.
 *
 * Pauses and the patience are a relay's own.  A device arrives with the first
 * attempt after the moment at which it may: its patience with a relay that has
 * a list of collectors (relay/uplink), the grace of HAProxy's, or the end of an
 * outage.
 */
#ifndef TESTS_BENCH_SCALE_STORM_H
#define TESTS_BENCH_SCALE_STORM_H

#include <stdbool.h>
#include <stdint.h>

#define STORM_SECONDS 180u

struct storm_rules {
	uint64_t min_retry_ms, max_retry_ms;
	uint64_t wait_ms; /* from the end of the collector */
	bool patience;    /* wait_ms is `move_after`, times 1 to 2 by chance */
	bool jitter;      /* false: as if chance had always been 0 */
};

/* Devices that arrive at one collector. */
struct storm {
	uint32_t devices;
	uint32_t in[STORM_SECONDS]; /* of each second from the end on */
	uint32_t late;              /* behind the last one */
	uint32_t most_in_100_ms;
};

/* Milliseconds from the end until the attempt that succeeds. */
uint64_t storm_arrival_ms(const struct storm_rules *r, uint64_t *random);
void storm_run(struct storm *s, const struct storm_rules *r, uint32_t devices);

#endif /* TESTS_BENCH_SCALE_STORM_H */
