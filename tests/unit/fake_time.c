#include "tests/unit/fake_time.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "transport/loop/loop.h"

struct loop_timer {
	LIST_ENTRY(loop_timer) link;
	loop_fn fn;
	void *arg;
	uint64_t due_ms; /* 0: not armed */
	uint64_t period_ms;
};

static LIST_HEAD(, loop_timer) timers = LIST_HEAD_INITIALIZER(timers);
static _Atomic uint64_t now_ms = 1000000; /* threads read it, too */

uint64_t __wrap_loop_now_ms(void);
uint64_t __wrap_loop_turn_ms(struct loop *l);
struct loop_timer *__wrap_loop_timer_new(struct loop *l, loop_fn fn, void *arg);
struct loop_timer *__wrap_loop_timer_new_boottime(struct loop *l, loop_fn fn,
    void *arg);
void __wrap_loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic);
bool __wrap_loop_timer_left(const struct loop_timer *t, uint64_t *ms);
void __wrap_loop_timer_clear(struct loop_timer *t);
void __wrap_loop_timer_free(struct loop_timer *t);

uint64_t
__wrap_loop_now_ms(void)
{
	return now_ms;
}

uint64_t
__wrap_loop_turn_ms(struct loop *l)
{
	return now_ms;
}

struct loop_timer *
__wrap_loop_timer_new(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		abort();
	t->fn = fn;
	t->arg = arg;
	LIST_INSERT_HEAD(&timers, t, link);
	return t;
}

/* Nobody sleeps here. */
struct loop_timer *
__wrap_loop_timer_new_boottime(struct loop *l, loop_fn fn, void *arg)
{
	return __wrap_loop_timer_new(l, fn, arg);
}

void
__wrap_loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic)
{
	t->due_ms = now_ms + ms;
	t->period_ms = periodic ? ms : 0;
}

bool
__wrap_loop_timer_left(const struct loop_timer *t, uint64_t *ms)
{
	if (t == NULL || t->due_ms == 0)
		return false;
	*ms = t->due_ms - now_ms;
	return true;
}

void
__wrap_loop_timer_clear(struct loop_timer *t)
{
	t->due_ms = 0;
}

void
__wrap_loop_timer_free(struct loop_timer *t)
{
	if (t == NULL)
		return;
	LIST_REMOVE(t, link);
	free(t);
}

static struct loop_timer *
next_timer(void)
{
	struct loop_timer *t, *best = NULL;

	LIST_FOREACH (t, &timers, link)
		if (t->due_ms != 0 &&
		    (best == NULL || t->due_ms < best->due_ms))
			best = t;
	return best;
}

void
fake_time_reset(void)
{
	if (!LIST_EMPTY(&timers))
		abort();
	now_ms = 1000000;
}

uint64_t
fake_time_next(void)
{
	const struct loop_timer *t = next_timer();

	return t == NULL ? UINT64_MAX : t->due_ms - now_ms;
}

static void
nothing(void)
{
}

void
fake_time_pass(uint64_t ms, void (*between)(void))
{
	uint64_t end = now_ms + ms;
	struct loop_timer *t;

	if (between == NULL)
		between = nothing;
	between();
	while ((t = next_timer()) != NULL && t->due_ms <= end) {
		now_ms = t->due_ms;
		t->due_ms = t->period_ms > 0 ? now_ms + t->period_ms : 0;
		t->fn(t->arg);
		between();
	}
	now_ms = end;
	between();
}

void
fake_time_tick(void)
{
	fake_time_pass(1, NULL);
}
