#include "service/limits/fair_bucket.h"

/* Bytes that a woken writer may write before it queues behind the others. */
#define TURN_BYTES 65536u
/*
 * Writers are woken once the bucket holds a hundredth of a second's worth:
 * more often, each would get through with too little.
 */
#define WAKES_PER_SECOND 100u

void
fair_bucket_init(struct fair_bucket *b)
{
	*b = (struct fair_bucket){ .timer = NULL };
	fair_queue_init(&b->waiters);
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
	struct fair_place *at;

	while (left > 0 && (at = fair_queue_first(&b->waiters)) != NULL) {
		at->credit = TURN_BYTES;
		left -= (int64_t)at->wants + 1;
		fair_queue_wake(at);
	}
	if (fair_queue_first(&b->waiters) != NULL)
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
	/* Waiting producers try again under the new rate. */
	if (fair_queue_first(&b->waiters) != NULL)
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
fair_bucket_admits(struct fair_bucket *b, const struct fair_place *at)
{
	if (b->budget.bytes_per_second == 0)
		return true;
	return budget_tokens(&b->budget, loop_now_ms()) > 0 &&
	    (at->credit > 0 || fair_queue_first(&b->waiters) == NULL);
}

void
fair_bucket_wait(struct fair_bucket *b, struct fair_place *at, size_t wants)
{
	bool armed = fair_queue_first(&b->waiters) != NULL;

	at->credit = 0;
	fair_queue_wait(&b->waiters, at, wants);
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
