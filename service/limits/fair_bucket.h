/*
 * fair_bucket: a token bucket of bytes per second, and the queue of those who
 * wait for tokens.
 *
 * The bucket may go negative: a chunk is charged after it is written whole, and
 * whoever comes next waits until it is paid for.  Whoever was woken may write
 * some before others get their turn.
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
 * burst 0: a second's worth.  A rate of 0: nobody waits any more.  -1: no
 * memory, and it is as before.
 */
int fair_bucket_set(struct fair_bucket *b, struct loop *l, uint64_t rate,
    uint64_t burst) MUST_CHECK;
/* Ends the bucket; no producer may wait in it. */
void fair_bucket_done(struct fair_bucket *b);

/* Whether `at` may write now. */
bool fair_bucket_admits(struct fair_bucket *b, const struct fair_place *at);
/*
 * Queues a place that may not: it is woken when trying is worth it.  It may wait
 * already.
 */
void fair_bucket_wait(struct fair_bucket *b, struct fair_place *at,
    size_t wants);
/* n bytes were written; tokens may go below zero. */
void fair_bucket_charge(struct fair_bucket *b, size_t n);
/* Whether more may be written where waiting is no use: one bucket's worth. */
bool fair_bucket_lends(struct fair_bucket *b);

#endif /* SERVICE_LIMITS_FAIR_BUCKET_H */
