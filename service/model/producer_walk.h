/*
 * producer_walk: visits all producers, some of them in each turn of the loop,
 * so that ten thousand are set up, started, flushed or stopped without a long
 * turn.  Those that fit in one turn are visited from inside
 * producer_walk_begin().
 *
 * A producer that comes while the walk is under way may be visited or not; one
 * that leaves before its turn is not.
 */
#ifndef SERVICE_MODEL_PRODUCER_WALK_H
#define SERVICE_MODEL_PRODUCER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "transport/loop/loop.h"

struct producer;
struct service;

/* Producers with something to do in one turn: a millisecond or two. */
#define PRODUCER_WALK_TURN 256u
/*
 * Pace of a walk that has time: few producers in a turn, whose answers are
 * taken, and others' input beside them, before the next turn asks more.
 */
#define PRODUCER_WALK_PACED   32u
#define PRODUCER_WALK_PACE_MS 20u
/* Producers with nothing to do that count as one with something. */
#define PRODUCER_WALK_SKIPS 16u

/* Returns whether something was done with p.  It must not free the walk. */
typedef bool (*producer_visit_fn)(struct producer *p, void *arg);

/* Zero-initialised: not under way.  Embedded; its owner ends it first. */
struct producer_walk {
	LIST_ENTRY(producer_walk) link; /* in the service's */
	struct service *service;
	struct producer *next; /* NULL: that was all */
	size_t left;           /* producers to be visited at most */
	bool under_way;
	struct loop_call call;
	/*
	 * The owner's, with producer_walk_on() as its function: turns of
	 * PRODUCER_WALK_PACED are PRODUCER_WALK_PACE_MS apart.  NULL: those of
	 * PRODUCER_WALK_TURN follow each other.
	 */
	struct loop_timer *pacer;
	producer_visit_fn visit;
	void (*over)(void *arg);
	void *arg;
};

/*
 * Begins a walk; over(arg) is called when all have been visited, from inside
 * this call where one turn is enough.  over() may free the walk, or begin it
 * again.  A walk that is under way is ended first, without over().
 */
void producer_walk_begin(struct producer_walk *w, struct service *s,
    producer_visit_fn visit, void (*over)(void *arg), void *arg);
/* Goes on with a walk; for its pacer. */
void producer_walk_on(void *walk);
/* Ends a walk without over(); does nothing when it is not under way. */
void producer_walk_end(struct producer_walk *w);
/* Moves all walks past a producer that leaves the service's list. */
void producer_walks_leave(struct service *s, const struct producer *p);

#endif /* SERVICE_MODEL_PRODUCER_WALK_H */
