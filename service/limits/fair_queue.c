#include "service/limits/fair_queue.h"

void
fair_queue_init(struct fair_queue *q)
{
	static uint64_t last_id;

	*q = (struct fair_queue){ .id = ++last_id };
	TAILQ_INIT(&q->places);
}

/*
 * The place behind which `at` belongs; NULL: it comes first.  New places come
 * last, and places that were woken in vain come back in the order they were
 * woken, each behind the one before: the search begins there.
 */
static struct fair_place *
find_before(const struct fair_queue *q, const struct fair_place *at)
{
	struct fair_place *p = TAILQ_LAST(&q->places, fair_places), *next;

	if (p == NULL || p->turn <= at->turn)
		return p;
	if (TAILQ_FIRST(&q->places)->turn > at->turn)
		return NULL;
	if (q->last != NULL)
		p = q->last;
	while (p != NULL && p->turn > at->turn)
		p = TAILQ_PREV(p, fair_places, link);
	while (p != NULL && (next = TAILQ_NEXT(p, link)) != NULL &&
	    next->turn <= at->turn)
		p = next;
	return p;
}

void
fair_queue_wait(struct fair_queue *q, struct fair_place *at, size_t wants)
{
	struct fair_place *before;

	fair_queue_leave(at);
	if (at->turn == 0 || at->turn_of != q->id)
		at->turn = ++q->last_turn;
	at->turn_of = q->id;
	if ((before = find_before(q, at)) != NULL)
		TAILQ_INSERT_AFTER(&q->places, before, at, link);
	else
		TAILQ_INSERT_HEAD(&q->places, at, link);
	q->last = at;
	at->waits_in = q;
	at->wants = wants;
}

void
fair_queue_leave(struct fair_place *at)
{
	struct fair_queue *q = at->waits_in;

	if (q == NULL)
		return;
	if (q->last == at)
		q->last = NULL;
	TAILQ_REMOVE(&q->places, at, link);
	at->waits_in = NULL;
}

void
fair_queue_wake(struct fair_place *at)
{
	fair_queue_leave(at);
	at->wake(at->arg);
}
