/*
 * budget: memory and bytes per second (a token bucket) that several streams
 * share.  Plain numbers; the streams report what they hold and read.  Used by
 * one thread.
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
	uint64_t burst; /* tokens of a full bucket; 0: a second's worth */
	int64_t tokens; /* bytes; below 0: overdrawn */
	uint64_t filled_ms; /* loop_now_ms() of the last refill */
	/* Counters. */
	uint64_t memory_refused; /* streams ended for want of memory */
	uint64_t throttled;      /* times a stream had to wait for tokens */
};

/* Memory that a stream holds changed from `before` to `now` bytes. */
void budget_resize(struct budget *b, size_t before, size_t now);
/* Whether the memory is over its limit. */
bool budget_is_over(const struct budget *b);

/*
 * Takes tokens for n bytes that were read; the bucket may go negative.  Returns
 * for how many milliseconds the stream should rest from reading (0: none).
 */
uint64_t budget_take(struct budget *b, size_t n, uint64_t now_ms);

/* Refills, and returns the tokens there are.  No limit: INT64_MAX. */
int64_t budget_tokens(struct budget *b, uint64_t now_ms);
/* Tokens of a full bucket. */
uint64_t budget_full(const struct budget *b);
/*
 * Milliseconds, rounded up, from the last refill until there are so many
 * tokens, which are no more than budget_full(); 0: there are, or no limit.
 */
uint64_t budget_wait_ms(const struct budget *b, int64_t tokens);

#endif /* TRANSPORT_BASE_BUDGET_H */
