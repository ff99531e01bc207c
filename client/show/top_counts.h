/*
 * top_counts: rates of counters from one answer of a collector to the next.
 * Pure: the caller passes the time.
 */
#ifndef CLIENT_SHOW_TOP_COUNTS_H
#define CLIENT_SHOW_TOP_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Answers whose rates are remembered. */
#define TOP_COUNTS_PAST 16u

/* Counters of one session, machine or producer. */
struct top_count {
	uint64_t id;
	uint64_t bytes, packets, lost;
	uint32_t machine; /* id; set for producers only */
	/* Bytes per second, the newest last; < 0: not known. */
	double past[TOP_COUNTS_PAST];
};

/* Counters of one answer, by id.  Zero-initialised is ready to use. */
struct top_counts {
	struct top_count *all; /* owned */
	size_t n;
	uint64_t at_ms; /* when the answer came; 0: there was none yet */
};

/* Growth per second. */
struct top_rates {
	bool known; /* else the others are 0 */
	double bytes, packets, lost;
	double past[TOP_COUNTS_PAST]; /* of bytes, as in top_count */
};

void top_counts_done(struct top_counts *c);

/*
 * Makes room for an answer with n counters.  now_ms: a monotonic clock.  false:
 * no memory: call neither top_counts_note() nor top_counts_keep().
 */
bool top_counts_begin(struct top_counts *next, size_t n, uint64_t now_ms)
    MUST_CHECK;
/*
 * Puts c into next and returns its rates since the previous answer; c.past is
 * set by this call.
 */
struct top_rates top_counts_note(const struct top_counts *before,
    struct top_counts *next, struct top_count c);
/* Replaces the counters of the previous answer by next, and takes it over. */
void top_counts_keep(struct top_counts *kept, struct top_counts *next);

#endif /* CLIENT_SHOW_TOP_COUNTS_H */
