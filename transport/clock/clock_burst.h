/*
 * clock_burst: decides when a burst of clock exchanges has been long enough.
 * Pure.
 *
 * A burst ends when round trips do not get shorter any more; as long as all of
 * them are worse than what is known already, it goes on to CLOCK_BURST_AT_ALL.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_BURST_H
#define TRANSPORT_CLOCK_CLOCK_BURST_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_BURST_MIN    8u
#define CLOCK_BURST_MAX    16u
#define CLOCK_BURST_AT_ALL 32u
/* Exchanges in a row that were not shorter than the best by a sixteenth. */
#define CLOCK_BURST_ALIKE  4u

/* Zero-initialised is ready to use. */
struct clock_burst {
	unsigned n;       /* exchanges so far */
	unsigned alike;   /* see CLOCK_BURST_ALIKE */
	uint64_t best_ns; /* the shortest round trip; n 0: none */
};

/* Adds an exchange; returns whether its round trip is the shortest so far. */
bool clock_burst_add(struct clock_burst *b, uint64_t round_trip_ns);
/* known_ns: the round trip that would tell as much as is known already. */
bool clock_burst_is_over(const struct clock_burst *b, uint64_t known_ns);

#endif /* TRANSPORT_CLOCK_CLOCK_BURST_H */
