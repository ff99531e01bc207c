/*
 * account_told: what TraceStats tell of packets that are not there, and how much
 * of that was found missing.
 *
 * Of one session: the last TraceStats of a trace, or of each of its segments,
 * which count what happened in their span.
 */
#ifndef TESTS_BENCH_LOAD_ACCOUNT_TOLD_H
#define TESTS_BENCH_LOAD_ACCOUNT_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

struct told_loss {
	uint32_t sequence; /* 0: of the machine */
	uint32_t machine;
	uint32_t cause;
	uint64_t packets;  /* UINT64_MAX: nobody knows */
};

struct told {
	struct told_loss *losses; /* owned; sorted by told_sort() */
	size_t n_losses;
	uint64_t chunks_lost; /* that buffers tell of */
	bool not_flushed;     /* the flush at the end failed */
	/* Of sessions before: */
	const char *end;      /* told_of_end(); NULL: of none */
	uint64_t rest[LINK_LOSS_CAUSES]; /* told and not found missing */
};

typedef void (*told_fn)(void *arg, const char *cause, uint64_t packets);

void told_done(struct told *t);
/* Adds what a TraceStats tells. */
void told_read(struct told *t, const uint8_t *stats, size_t len);
/* After the last told_read() of a session. */
void told_sort(struct told *t);
/*
 * Takes up to `want` packets from what is told of a sequence, or (0) of a
 * machine; returns how many, and says the causes.
 */
uint64_t told_use(struct told *t, uint32_t sequence, uint32_t machine,
    uint64_t want, told_fn tell, void *arg);
/*
 * Why packets may be missing that no other packet follows; NULL: nothing is
 * told of such.
 */
const char *told_of_end(const struct told *t);
/* The session is over: what is left of it is for told_use_rest(). */
void told_next_part(struct told *t);
/* As told_use(), and told_of_end(), from what is left of all sessions. */
uint64_t told_use_rest(struct told *t, uint64_t want, told_fn tell, void *arg);

#endif /* TESTS_BENCH_LOAD_ACCOUNT_TOLD_H */
