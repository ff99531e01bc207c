#include <event2/event.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/loop/loop_internal.h"

/*
 * The heap, by due_ns: heap[i] is not due before heap[(i - 1) / 2], and knows
 * its place.  The event is due no later than heap[0] is.
 */

#define NOT_ARMED SIZE_MAX

/* A hundred years; longer times are cut to that. */
#define TIMER_LONGEST_MS (100ull * 366 * 24 * 3600 * 1000)

static void
place(struct loop_timers *ts, size_t at, struct loop_timer *t)
{
	ts->heap[at] = t;
	t->at = at;
}

static void
sift_up(struct loop_timers *ts, size_t at, struct loop_timer *t)
{
	size_t parent;

	for (; at > 0; at = parent) {
		parent = (at - 1) / 2;
		if (ts->heap[parent]->due_ns <= t->due_ns)
			break;
		place(ts, at, ts->heap[parent]);
	}
	place(ts, at, t);
}

static void
sift_down(struct loop_timers *ts, size_t at, struct loop_timer *t)
{
	size_t child;

	while ((child = 2 * at + 1) < ts->n) {
		if (child + 1 < ts->n &&
		    ts->heap[child + 1]->due_ns < ts->heap[child]->due_ns)
			child++;
		if (t->due_ns <= ts->heap[child]->due_ns)
			break;
		place(ts, at, ts->heap[child]);
		at = child;
	}
	place(ts, at, t);
}

static void
heap_add(struct loop_timers *ts, struct loop_timer *t)
{
	sift_up(ts, ts->n++, t);
}

static void
heap_remove(struct loop_timers *ts, struct loop_timer *t)
{
	struct loop_timer *last;
	size_t at = t->at;

	if (at == NOT_ARMED)
		return;
	t->at = NOT_ARMED;
	last = ts->heap[--ts->n];
	if (last == t)
		return;
	if (at > 0 && last->due_ns < ts->heap[(at - 1) / 2]->due_ns)
		sift_up(ts, at, last);
	else
		sift_down(ts, at, last);
}

/*
 * Where the next is due before the event is.  One that is due too early costs
 * a look at the clock, less than to set it each time.
 */
static void
want_event(struct loop_timers *ts)
{
	uint64_t now, due, us;
	struct timeval tv;

	if (ts->n == 0)
		return;
	due = ts->heap[0]->due_ns;
	if (ts->ev_due_ns != 0 && ts->ev_due_ns <= due)
		return;
	now = loop_clock_ns();
	/* Rounded up: never early. */
	us = due > now ? (due - now + 999) / 1000 : 0;
	tv.tv_sec = (time_t)(us / 1000000);
	tv.tv_usec = (suseconds_t)(us % 1000000);
	ts->ev_due_ns = due;
	/* Else the time since this turn began would be missing. */
	event_base_update_cache_time(event_get_base(&ts->ev));
	/* Cannot fail: libevent has kept a place since loop_timers_init(). */
	(void)event_add(&ts->ev, &tv);
}

static void
fire(struct loop_timers *ts, struct loop_timer *t, uint64_t now)
{
	heap_remove(ts, t);
	delays_note(&ts->delays, now - t->due_ns);
	if (t->every_ns > 0) {
		t->due_ns += t->every_ns;
		/* Late by more than one period: fires once for all of them. */
		if (t->due_ns <= now)
			t->due_ns = now + t->every_ns;
		heap_add(ts, t);
	}
	t->fn(t->arg);
	/* t may be gone. */
}

/* Timers that are set meanwhile are not due: their time begins later. */
static void
due_cb(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;
	struct loop_timers *ts = &l->timers;
	uint64_t now = loop_clock_ns();

	ts->ev_due_ns = 0;
	while (ts->n > 0 && ts->heap[0]->due_ns <= now) {
		fire(ts, ts->heap[0], now);
		if (l->stopping)
			break;
	}
	want_event(ts);
}

int
loop_timers_init(struct loop *l)
{
	static const struct timeval later = { 3600, 0 };
	struct loop_timers *ts = &l->timers;

	if (event_assign(&ts->ev, l->base, -1, 0, due_cb, l) != 0)
		return -1;
	/* Together: libevent gets room for both of the loop's own. */
	if (event_add(&ts->ev, &later) != 0 || event_add(&l->turn, &later) != 0)
		return -1;
	event_del(&ts->ev);
	event_del(&l->turn);
	return 0;
}

void
loop_timers_done(struct loop *l)
{
	if (event_initialized(&l->timers.ev))
		event_del(&l->timers.ev);
	free(l->timers.heap);
}

const struct delays *
loop_delays(const struct loop *l)
{
	return &l->timers.delays;
}

/* A place in the heap. */
static int
reserve_place(struct loop_timers *ts)
{
	size_t cap = ts->cap > 0 ? 2 * ts->cap : 16;
	struct loop_timer **heap;

	if (ts->existing == ts->cap) {
		heap = realloc(ts->heap, cap * sizeof(*heap));
		if (heap == NULL)
			return -1;
		ts->heap = heap;
		ts->cap = cap;
	}
	ts->existing++;
	return 0;
}

static struct loop_timer *
timer_alloc(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->loop = l;
	t->fd = -1;
	t->fn = fn;
	t->arg = arg;
	t->at = NOT_ARMED;
	return t;
}

struct loop_timer *
loop_timer_new(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t = timer_alloc(l, fn, arg);

	if (t != NULL && reserve_place(&l->timers) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

static void
boottime_cb(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;
	uint64_t n;

	/* Set again since it was seen due: not now. */
	if (read(fd, &n, sizeof(n)) < 0)
		return;
	t->fn(t->arg);
	/* t may be gone. */
}

struct loop_timer *
loop_timer_new_boottime(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t = timer_alloc(l, fn, arg);

	if (t == NULL)
		return NULL;
	t->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->fd < 0) {
		free(t);
		return NULL;
	}
	if (event_assign(&t->ev, l->base, t->fd, EV_READ | EV_PERSIST,
		boottime_cb, t) != 0 ||
	    event_add(&t->ev, NULL) != 0) {
		loop_timer_free(t);
		return NULL;
	}
	return t;
}

/* ms 0: disarmed. */
static void
boottime_set(struct loop_timer *t, uint64_t ms, int periodic)
{
	struct itimerspec when = { .it_value = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000 * 1000000),
	} };

	if (periodic)
		when.it_interval = when.it_value;
	/* No time up to TIMER_LONGEST_MS is out of its range. */
	(void)timerfd_settime(t->fd, 0, &when, NULL);
}

void
loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic)
{
	struct loop_timers *ts = &t->loop->timers;

	if (ms > TIMER_LONGEST_MS)
		ms = TIMER_LONGEST_MS;
	if (t->fd >= 0) {
		boottime_set(t, ms > 0 ? ms : 1, periodic);
		return;
	}
	heap_remove(ts, t);
	t->due_ns = loop_clock_ns() + ms * 1000000;
	t->every_ns = !periodic ? 0 : ms > 0 ? ms * 1000000 : 1;
	heap_add(ts, t);
	want_event(ts);
}

bool
loop_timer_left(const struct loop_timer *t, uint64_t *ms)
{
	struct itimerspec its;
	uint64_t now;

	if (t == NULL)
		return false;
	if (t->fd >= 0) {
		/* Sets *ms only where the timer runs. */
		if (timerfd_gettime(t->fd, &its) != 0 ||
		    (its.it_value.tv_sec == 0 && its.it_value.tv_nsec == 0))
			return false;
		*ms = (uint64_t)its.it_value.tv_sec * 1000 +
		    (uint64_t)its.it_value.tv_nsec / 1000000;
		return true;
	}
	if (t->at == NOT_ARMED)
		return false;
	now = loop_clock_ns();
	*ms = t->due_ns > now ? (t->due_ns - now) / 1000000 : 0;
	return true;
}

void
loop_timer_clear(struct loop_timer *t)
{
	if (t->fd >= 0)
		boottime_set(t, 0, 0);
	else
		heap_remove(&t->loop->timers, t);
}

void
loop_timer_free(struct loop_timer *t)
{
	if (t == NULL)
		return;
	if (t->fd >= 0) {
		if (event_initialized(&t->ev))
			event_del(&t->ev);
		close(t->fd);
	} else {
		heap_remove(&t->loop->timers, t);
		t->loop->timers.existing--;
	}
	free(t);
}
