/*
 * fair_bucket: a token bucket of bytes per second, and the first come, first
 * served queue of writers that wait for tokens.
 *
 * The bucket may go negative: a chunk is charged after it is written whole, and
 * the next writer waits until the debt is paid.  A writer that is woken may
 * write 64 KiB before it queues behind the others again.
 *
 * Belongs to the loop's thread.
 */
#ifndef SERVICE_LIMITS_FAIR_BUCKET_H
#define SERVICE_LIMITS_FAIR_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/limits/fair_queue.h"
#include "transport/base/budget.h"
#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct fair_bucket {
	struct budget budget;
	struct fair_queue waiters;
	struct loop_timer *timer; /* NULL: not limited */
};

/* Not limited. */
void fair_bucket_init(struct fair_bucket *b);
/*
 * Sets the rate, in bytes per second (0: not limited any more), and the burst,
 * the most tokens saved up, in bytes (0: a second's worth).  Waiting writers
 * are woken to try again.  -1: no memory, and the bucket is as before.
 */
int fair_bucket_set(struct fair_bucket *b, struct loop *l, uint64_t rate,
    uint64_t burst) MUST_CHECK;
/* Frees the timer; no writer may wait in the bucket. */
void fair_bucket_done(struct fair_bucket *b);

/*
 * Whether the writer at this place may write now: there are tokens, and it was
 * woken for its turn or no other writer waits.
 */
bool fair_bucket_admits(struct fair_bucket *b, const struct fair_place *at);
/*
 * Queues a place that was not admitted, with the bytes that its writer wants to
 * write: it is woken when there are tokens.  Legal for a place that waits
 * already.
 */
void fair_bucket_wait(struct fair_bucket *b, struct fair_place *at,
    size_t wants);
/* n bytes were written; tokens may go below zero. */
void fair_bucket_charge(struct fair_bucket *b, size_t n);
/*
 * Whether a chunk that cannot wait may be written on credit: the debt is below
 * one full bucket.
 */
bool fair_bucket_lends(struct fair_bucket *b);

#endif /* SERVICE_LIMITS_FAIR_BUCKET_H */
