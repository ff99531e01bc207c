#include "service/limits/fair_bucket.h"

/* What one who was woken may write before it waits behind the others again. */
#define TURN_BYTES 65536u
/* Waking is worth it when there is so much of a second's worth. */
#define WAKES_PER_SECOND 100u

void
fair_bucket_init(struct fair_bucket *b)
{
	*b = (struct fair_bucket){ .timer = NULL };
	TAILQ_INIT(&b->waiters);
}

void
fair_bucket_leave(struct quota_place *at)
{
	if (at->waits_in == NULL)
		return;
	TAILQ_REMOVE(&at->waits_in->waiters, at, link);
	at->waits_in = NULL;
}

static void
arm(struct fair_bucket *b)
{
	uint64_t full = budget_full(&b->budget), ms;
	uint64_t enough = b->budget.bytes_per_second / WAKES_PER_SECOND + 1;

	if (enough > full)
		enough = full;
	ms = budget_wait_ms(&b->budget, (int64_t)enough);
	loop_timer_set(b->timer, ms > 0 ? ms : 1, 0);
}

static void
run_cb(void *arg)
{
	struct fair_bucket *b = arg;
	int64_t left = budget_tokens(&b->budget, loop_now_ms());
	struct quota_place *at;

	while (left > 0 && (at = TAILQ_FIRST(&b->waiters)) != NULL) {
		fair_bucket_leave(at);
		at->credit = TURN_BYTES;
		left -= (int64_t)at->wants + 1;
		at->wake(at->arg);
	}
	if (!TAILQ_EMPTY(&b->waiters))
		arm(b);
}

int
fair_bucket_set(struct fair_bucket *b, struct loop *l, uint64_t rate,
    uint64_t burst)
{
	if (rate != 0 && b->timer == NULL &&
	    (b->timer = loop_timer_new(l, run_cb, b)) == NULL)
		return -1;
	b->budget.bytes_per_second = rate;
	b->budget.burst = burst;
	/* Those who wait find out what counts now. */
	if (!TAILQ_EMPTY(&b->waiters))
		loop_timer_set(b->timer, 1, 0);
	return 0;
}

void
fair_bucket_done(struct fair_bucket *b)
{
	loop_timer_free(b->timer);
	b->timer = NULL;
}

bool
fair_bucket_admits(struct fair_bucket *b, const struct quota_place *at)
{
	if (b->budget.bytes_per_second == 0)
		return true;
	return budget_tokens(&b->budget, loop_now_ms()) > 0 &&
	    (at->credit > 0 || TAILQ_EMPTY(&b->waiters));
}

/* Those who were woken in vain come back to the begin, in their order. */
static void
insert(struct fair_bucket *b, struct quota_place *at)
{
	struct quota_place *after;

	TAILQ_FOREACH(after, &b->waiters, link)
		if (after->turn > at->turn)
			break;
	if (after != NULL)
		TAILQ_INSERT_BEFORE(after, at, link);
	else
		TAILQ_INSERT_TAIL(&b->waiters, at, link);
}

void
fair_bucket_wait(struct fair_bucket *b, struct quota_place *at, size_t wants)
{
	bool armed = !TAILQ_EMPTY(&b->waiters);
	bool again = at->turn != 0;

	fair_bucket_leave(at);
	at->wants = wants;
	at->credit = 0;
	at->waits_in = b;
	if (again) {
		insert(b, at);
	} else {
		at->turn = ++b->last_turn;
		TAILQ_INSERT_TAIL(&b->waiters, at, link);
	}
	if (!armed)
		arm(b);
}

void
fair_bucket_charge(struct fair_bucket *b, size_t n)
{
	if (b->budget.bytes_per_second != 0)
		(void)budget_take(&b->budget, n, loop_now_ms());
}

bool
fair_bucket_lends(struct fair_bucket *b)
{
	if (b->budget.bytes_per_second == 0)
		return true;
	return budget_tokens(&b->budget, loop_now_ms()) >
	    -(int64_t)budget_full(&b->budget);
}
