/*
 * clock_burst: when a row of clock exchanges has been long enough.  Pure.
 *
 * It ends when round trips do not get shorter any more; later, when what is
 * known already was better than all of them.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_BURST_H
#define TRANSPORT_CLOCK_CLOCK_BURST_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_BURST_MIN    8u
#define CLOCK_BURST_MAX    16u
#define CLOCK_BURST_AT_ALL 32u
/* So many in a row that were not shorter by a sixteenth. */
#define CLOCK_BURST_ALIKE  4u

/* Zero-initialised is ready to use. */
struct clock_burst {
	unsigned n;
	unsigned alike;
	uint64_t best_ns; /* the shortest; n 0: none */
};

/* One more; whether it is the shortest so far. */
bool clock_burst_add(struct clock_burst *b, uint64_t round_trip_ns);
/* known_ns: what is known now is as good as a round trip of so long. */
bool clock_burst_is_over(const struct clock_burst *b, uint64_t known_ns);

#endif /* TRANSPORT_CLOCK_CLOCK_BURST_H */
