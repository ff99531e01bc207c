/*
 * top_counts: how fast counters grow from one answer of a collector to the next.
 * Pure: time is the caller's.
 */
#ifndef CLIENT_SHOW_TOP_COUNTS_H
#define CLIENT_SHOW_TOP_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Counters of one session, machine or producer. */
struct top_count {
	uint64_t id;
	uint64_t bytes, packets, lost;
	uint32_t machine; /* of a producer */
	double rate;      /* bytes a second; < 0: not known yet */
};

/* Counters of one answer, by id.  Zero-initialised is ready to use. */
struct top_counts {
	struct top_count *all; /* owned */
	size_t n;
	uint64_t at_ms; /* 0: there was none yet */
};

/* Growth a second. */
struct top_rates {
	bool known; /* else the others are 0 */
	double bytes, packets, lost;
};

void top_counts_done(struct top_counts *c);

/*
 * Makes room for an answer with n counters.  now_ms: a monotonic clock.  false:
 * no memory, and nothing is to be noted or kept.
 */
bool top_counts_begin(struct top_counts *next, size_t n, uint64_t now_ms)
    MUST_CHECK;
/* Puts c into next and returns how fast it grew since the answer before. */
struct top_rates top_counts_note(const struct top_counts *before,
    struct top_counts *next, struct top_count c);
/* Replaces what was kept of the answer before by next, which it takes over. */
void top_counts_keep(struct top_counts *kept, struct top_counts *next);

#endif /* CLIENT_SHOW_TOP_COUNTS_H */
