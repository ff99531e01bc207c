/*
 * fair_queue: a queue of waiters, such as producers that wait for bytes per
 * second (fair_bucket.h) or for room in a buffer.
 *
 * First come, first served; a waiter that was woken in vain gets its old place
 * back.  Knows nothing of the resource.  Belongs to the loop's thread.
 */
#ifndef SERVICE_LIMITS_FAIR_QUEUE_H
#define SERVICE_LIMITS_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/loop/loop.h"

/*
 * The place of one waiter, which embeds it.  All zero but for wake and arg: it
 * does not wait.
 */
struct fair_place {
	TAILQ_ENTRY(fair_place) link;
	struct fair_queue *waits_in; /* NULL: it does not wait */
	loop_fn wake;    /* called with arg when the waiter may try again */
	void *arg;
	/* Ticket of its first wait; the owner sets 0 when it got through. */
	uint64_t turn;
	uint64_t turn_of; /* id of the queue that handed it out */
	size_t wants;    /* bytes that the waiter was held back with */
	size_t credit;   /* fair_bucket: bytes it may take though others wait */
};

TAILQ_HEAD(fair_places, fair_place);

struct fair_queue {
	struct fair_places places; /* by turn: the longest wait first */
	struct fair_place *last;   /* put there last; NULL: it has left */
	uint64_t last_turn;        /* handed out last */
	uint64_t id;               /* no other queue ever has it */
};

void fair_queue_init(struct fair_queue *q);
/*
 * Queues the place with the bytes that it wants, by its turn; one with turn 0,
 * or with a turn of another queue, gets a new turn, the last.  Legal for a place
 * that waits already, in this or another queue: it leaves that.
 */
void fair_queue_wait(struct fair_queue *q, struct fair_place *at, size_t wants);
/* Takes the place out of its queue; without effect when it does not wait. */
void fair_queue_leave(struct fair_place *at);
/* fair_queue_leave(), and calls wake(), which may queue the place again. */
void fair_queue_wake(struct fair_place *at);

/* The place that has waited longest; NULL: the queue is empty. */
static inline struct fair_place *
fair_queue_first(const struct fair_queue *q)
{
	return TAILQ_FIRST(&q->places);
}

#endif /* SERVICE_LIMITS_FAIR_QUEUE_H */
