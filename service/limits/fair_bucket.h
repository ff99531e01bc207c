/*
 * fair_bucket: bytes per second of one producer, or of all of a machine, and
 * who waits for them.
 *
 * What is written may owe: whoever writes while there are tokens writes all of
 * a chunk, and those who come next wait until it is paid for.  Who waits is
 * woken in its turn, and may then write some before others wait their turn.
 */
#ifndef SERVICE_LIMITS_FAIR_BUCKET_H
#define SERVICE_LIMITS_FAIR_BUCKET_H

#include <sys/queue.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/socket/budget.h"

/* Of a producer, in one of the buckets that it is subject to. */
struct quota_place {
	TAILQ_ENTRY(quota_place) link;
	struct fair_bucket *waits_in; /* NULL: it does not wait */
	loop_fn wake; /* called with arg when it may try again */
	void *arg;
	uint64_t turn; /* of who waited longest; 0: got through since */
	size_t wants;  /* bytes that it was held back with */
	size_t credit; /* bytes it may write although others wait */
};

struct fair_bucket {
	struct budget budget;
	TAILQ_HEAD(, quota_place) waiters; /* who waits longest comes first */
	struct loop_timer *timer;        /* NULL: not limited */
	uint64_t last_turn;
};

/* Not limited. */
void fair_bucket_init(struct fair_bucket *b);
/*
 * burst 0: a second's worth.  A rate of 0: nobody waits any more.  -1: no
 * memory, and it is as before.
 */
int fair_bucket_set(struct fair_bucket *b, struct loop *l, uint64_t rate,
    uint64_t burst) MUST_CHECK;
/* Nobody waits any more. */
void fair_bucket_done(struct fair_bucket *b);

/* Whether the one whose place this is may write now. */
bool fair_bucket_admits(struct fair_bucket *b, const struct quota_place *at);
/*
 * It may not: its producer is resumed when it is worth trying.  It may wait
 * already.
 */
void fair_bucket_wait(struct fair_bucket *b, struct quota_place *at,
    size_t wants);
/* It waits no longer. */
void fair_bucket_leave(struct quota_place *at);
/* So much was written; tokens may go below zero. */
void fair_bucket_charge(struct fair_bucket *b, size_t n);
/* What may be written besides where waiting is no use: at most a full one. */
bool fair_bucket_lends(struct fair_bucket *b);

#endif /* SERVICE_LIMITS_FAIR_BUCKET_H */
