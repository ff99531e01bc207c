/*
 * fair_queue: who waits for something of which there is not enough for all:
 * bytes per second (fair_bucket.h), or room in a buffer.
 *
 * First come, first served; whoever is woken in vain gets its old place back.
 * Knows nothing of what is waited for.
 */
#ifndef SERVICE_LIMITS_FAIR_QUEUE_H
#define SERVICE_LIMITS_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/loop/loop.h"

/* Embedded in whoever waits; all zero but for wake and arg: it does not. */
struct fair_place {
	TAILQ_ENTRY(fair_place) link;
	struct fair_queue *waits_in; /* NULL: it does not wait */
	loop_fn wake;    /* called with arg when it may try again */
	void *arg;
	uint64_t turn;   /* of its first wait; 0: it has got through since */
	size_t wants;    /* bytes that it was held back with */
	size_t credit;   /* fair_bucket: bytes it may take though others wait */
};

TAILQ_HEAD(fair_places, fair_place);

struct fair_queue {
	struct fair_places places; /* whoever has waited longest comes first */
	struct fair_place *last;   /* put there last; or NULL */
	uint64_t last_turn;
};

void fair_queue_init(struct fair_queue *q);
/* Legal for one that waits already, here or in another queue. */
void fair_queue_wait(struct fair_queue *q, struct fair_place *at, size_t wants);
/* Takes the place out of its queue; without effect when it does not wait. */
void fair_queue_leave(struct fair_place *at);
/* fair_queue_leave(), and tells the place. */
void fair_queue_wake(struct fair_place *at);

/* NULL: nobody waits. */
static inline struct fair_place *
fair_queue_first(const struct fair_queue *q)
{
	return TAILQ_FIRST(&q->places);
}

#endif /* SERVICE_LIMITS_FAIR_QUEUE_H */
