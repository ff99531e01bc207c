#include "service/model/producer_walk.h"

#include "service/model/model.h"

static void
later(struct producer_walk *w)
{
	if (w->pacer != NULL)
		loop_timer_set(w->pacer, PRODUCER_WALK_PACE_MS, 0);
	else
		loop_defer(w->service->loop, &w->call, producer_walk_on, w);
}

void
producer_walk_on(void *arg)
{
	struct producer_walk *w = arg;
	size_t most = w->pacer != NULL ? PRODUCER_WALK_PACED :
	    PRODUCER_WALK_TURN;
	struct producer *p;
	size_t cost = 0;

	while ((p = w->next) != NULL && w->left > 0) {
		if (cost >= most * PRODUCER_WALK_SKIPS) {
			later(w);
			return;
		}
		w->next = TAILQ_NEXT(p, link);
		w->left--;
		cost += w->visit(p, w->arg) ? PRODUCER_WALK_SKIPS : 1;
	}
	producer_walk_end(w);
	w->over(w->arg);
}

void
producer_walk_begin(struct producer_walk *w, struct service *s,
    producer_visit_fn visit, void (*over)(void *arg), void *arg)
{
	producer_walk_end(w);
	w->service = s;
	w->visit = visit;
	w->over = over;
	w->arg = arg;
	w->next = TAILQ_FIRST(&s->producers);
	w->left = s->n_producers;
	w->under_way = true;
	LIST_INSERT_HEAD(&s->walks, w, link);
	producer_walk_on(w);
}

void
producer_walk_end(struct producer_walk *w)
{
	if (!w->under_way)
		return;
	w->under_way = false;
	LIST_REMOVE(w, link);
	loop_call_cancel(&w->call);
	if (w->pacer != NULL)
		loop_timer_clear(w->pacer);
}

void
producer_walks_leave(struct service *s, const struct producer *p)
{
	struct producer_walk *w;

	LIST_FOREACH(w, &s->walks, link)
		if (w->next == p)
			w->next = TAILQ_NEXT(p, link);
}
