/*
 * producer_walk: a way through all producers, some of them in each turn of the
 * loop: ten thousand are set up, started, flushed or stopped without anybody
 * else waiting for that.  A few dozen are visited at once.
 *
 * Who joins while it is under way may be visited or not; who leaves is not.
 */
#ifndef SERVICE_MODEL_PRODUCER_WALK_H
#define SERVICE_MODEL_PRODUCER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "transport/loop/loop.h"

struct producer;
struct service;

/* Producers that something is done with in one turn, a millisecond or two. */
#define PRODUCER_WALK_TURN 256u
/* A producer with nothing to do costs a small part of one that has. */
#define PRODUCER_WALK_SKIPS 16u

/* Returns whether something was done with p.  It must not free the walk. */
typedef bool (*producer_visit_fn)(struct producer *p, void *arg);

/* All zero: not under way. */
struct producer_walk {
	LIST_ENTRY(producer_walk) link; /* in the service's */
	struct service *service;
	struct producer *next; /* NULL: that was all */
	size_t left;           /* to be visited at most */
	bool under_way;
	struct loop_call call;
	producer_visit_fn visit;
	void (*over)(void *arg);
	void *arg;
};

/*
 * Begins; over(arg) is called when all have been visited, from inside this call
 * where one turn is enough.  It may free the walk, or begin it again.  One that
 * is under way is ended first, without over().
 */
void producer_walk_begin(struct producer_walk *w, struct service *s,
    producer_visit_fn visit, void (*over)(void *arg), void *arg);
/* Ends it without over(); nothing when it is not under way. */
void producer_walk_end(struct producer_walk *w);
/* The producer leaves the service's list. */
void producer_walks_leave(struct service *s, const struct producer *p);

#endif /* SERVICE_MODEL_PRODUCER_WALK_H */
