/*
 * budget: memory and bytes per second (a token bucket) that several streams
 * share.  Plain numbers; the stream does the counting.
 */
#ifndef TRANSPORT_BASE_BUDGET_H
#define TRANSPORT_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised: no limits. */
struct budget {
	/* Bytes of unfinished frames and queued output; 0: no limit. */
	size_t memory_max;
	size_t memory;
	/* Token bucket; 0: no limit. */
	uint64_t bytes_per_second;
	uint64_t burst; /* tokens that a full one has; 0: a second's worth */
	int64_t tokens;
	uint64_t filled_ms; /* loop_now_ms() of the last refill */
	/* Counters. */
	uint64_t memory_refused; /* streams ended for want of memory */
	uint64_t throttled;      /* times a stream had to wait for tokens */
};

/* Memory that a stream holds changed from `before` to `now` bytes. */
void budget_resize(struct budget *b, size_t before, size_t now);
/* Whether it is over its limit. */
bool budget_is_over(const struct budget *b);

/*
 * Takes n bytes that were read; tokens may go below zero.  Returns for how
 * many milliseconds reading should rest (0: none).
 */
uint64_t budget_take(struct budget *b, size_t n, uint64_t now_ms);

/* The tokens that are there now, below zero: owed.  Without a limit: many. */
int64_t budget_tokens(struct budget *b, uint64_t now_ms);
/* The tokens of a full bucket. */
uint64_t budget_full(const struct budget *b);
/* Milliseconds, rounded up, until there are so many; they must fit. */
uint64_t budget_wait_ms(const struct budget *b, int64_t tokens);

#endif /* TRANSPORT_BASE_BUDGET_H */
