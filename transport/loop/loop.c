#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "transport/loop/loop_internal.h"

/* Rounds in which loop_free() runs deferred calls that defer others. */
#define LOOP_FREE_ROUNDS 64


/* After so many slow calls that go on, one that begins something runs. */
#define LOOP_SLOW_SHARE 3u

struct loop_signal {
	struct event *ev;
	loop_fn fn;
	void *arg;
	struct loop_signal *next;
};

static void
calls_init(struct loop_calls *q)
{
	q->head.next = q->head.prev = &q->head;
}

static bool
calls_are_empty(const struct loop_calls *q)
{
	return q->head.next == &q->head;
}

void
loop_call_cancel(struct loop_call *c)
{
	if (c->next == NULL)
		return;
	c->prev->next = c->next;
	c->next->prev = c->prev;
	c->next = c->prev = NULL;
}

void
loop_calls_add(struct loop_calls *q, struct loop_call *c, loop_fn fn,
    void *arg)
{
	c->fn = fn;
	c->arg = arg;
	if (c->next != NULL)
		return;
	c->next = &q->head;
	c->prev = q->head.prev;
	c->prev->next = c;
	q->head.prev = c;
}

void
loop_calls_run_one(struct loop_calls *q)
{
	struct loop_call *c = q->head.next;

	loop_call_cancel(c);
	c->fn(c->arg);
}

static void
calls_cancel(struct loop_calls *q, const void *arg)
{
	struct loop_call *c, *next;

	for (c = q->head.next; c != &q->head; c = next) {
		next = c->next;
		if (c->arg == arg)
			loop_call_cancel(c);
	}
}

/* Moves all calls in their order; to is empty. */
static void
calls_move(struct loop_calls *to, struct loop_calls *from)
{
	if (calls_are_empty(from))
		return;
	to->head = from->head;
	to->head.next->prev = &to->head;
	to->head.prev->next = &to->head;
	calls_init(from);
}

/* Runs calls deferred before this turn; those deferred meanwhile wait. */
static void
loop_run_deferred(struct loop *l)
{
	calls_move(&l->running, &l->deferred);
	while (!calls_are_empty(&l->running))
		loop_calls_run_one(&l->running);
}

/*
 * A timer rather than event_active(): timers are looked at once a turn, after
 * the sockets, so calls that defer again do not starve the sockets.
 */
void
loop_want_turn(struct loop *l)
{
	static const struct timeval now = { 0, 0 };

	/* Cannot fail: libevent has kept a place since loop_timers_init(). */
	(void)event_add(&l->turn, &now);
}

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t
loop_clock_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static bool
loop_has_slow(const struct loop *l)
{
	return !calls_are_empty(&l->slow[0]) || !calls_are_empty(&l->slow[1]);
}

static struct loop_calls *
loop_next_slow(struct loop *l)
{
	if (calls_are_empty(&l->slow[1]) || (!calls_are_empty(&l->slow[0]) &&
	    l->slow_passed >= LOOP_SLOW_SHARE)) {
		l->slow_passed = 0;
		return &l->slow[0];
	}
	l->slow_passed++;
	return &l->slow[1];
}

static void
loop_run_slow(struct loop *l)
{
	uint64_t until;

	if (!loop_has_slow(l))
		return;
	until = loop_budget_ns(l) + LOOP_SLOW_MS * 1000000u;
	do {
		loop_calls_run_one(loop_next_slow(l));
	} while (loop_has_slow(l) && atomic_load_explicit(&l->bulk.hold,
	    memory_order_relaxed) == LOOP_HOLD_NOTHING &&
	    loop_budget_ns(l) < until);
	if (loop_has_slow(l))
		loop_want_turn(l);
}

static void
turn_cb(evutil_socket_t fd, short what, void *arg)
{
	loop_run_deferred(arg);
	loop_input_run(arg);
	loop_run_slow(arg);
}

static void
loop_take_posted(struct loop *l)
{
	struct loop_post *p;

	pthread_mutex_lock(&l->post_lock);
	while ((p = l->posted) != NULL) {
		l->posted = p->next;
		p->posted = false;
		loop_defer(l, &p->call, p->fn, p->arg);
	}
	l->posted_end = &l->posted;
	pthread_mutex_unlock(&l->post_lock);
}

static void
post_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0) {
		/* A wake-up without a post is harmless. */
	}
	loop_take_posted(arg);
}

static struct event_base *
loop_make_base(void)
{
	struct event_config *cfg;
	struct event_base *base = NULL;

	if ((cfg = event_config_new()) == NULL)
		return NULL;
	/* Precise: a timer never fires before its time. */
	if (event_config_set_flag(cfg,
		EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
		base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	return base;
}

struct loop *
loop_new(void)
{
	struct loop *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	pthread_mutex_init(&l->post_lock, NULL);
	l->post_fd = l->urgent_fd = -1;
	calls_init(&l->deferred);
	calls_init(&l->running);
	calls_init(&l->slow[0]);
	calls_init(&l->slow[1]);
	calls_init(&l->at_free);
	calls_init(&l->bulk.waiting);
	l->posted_end = &l->posted;
	/* Writes to a closed socket are answered by EPIPE. */
	signal(SIGPIPE, SIG_IGN);
	if ((l->scratch = malloc(LOOP_SCRATCH_BYTES)) == NULL)
		goto fail;
	if ((l->base = loop_make_base()) == NULL)
		goto fail;
	if ((l->post_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
		goto fail;
	if (event_assign(&l->turn, l->base, -1, 0, turn_cb, l) != 0 ||
	    event_assign(&l->post_ev, l->base, l->post_fd, EV_READ | EV_PERSIST,
		post_cb, l) != 0 ||
	    event_add(&l->post_ev, NULL) != 0 || loop_timers_init(l) != 0)
		goto fail;
	return l;

fail:
	loop_free(l);
	return NULL;
}

/*
 * Runs calls until none is left, as freeing of memory is often deferred and
 * there is no later turn; bounded, in case calls defer for ever.
 */
static void
loop_run_last_calls(struct loop *l)
{
	int round;

	while (!calls_are_empty(&l->at_free))
		loop_calls_run_one(&l->at_free);
	for (round = 0; round < LOOP_FREE_ROUNDS; round++) {
		loop_take_posted(l);
		if (calls_are_empty(&l->deferred) && !loop_has_slow(l) &&
		    calls_are_empty(&l->bulk.waiting))
			return;
		loop_run_deferred(l);
		while (!calls_are_empty(&l->bulk.waiting))
			loop_calls_run_one(&l->bulk.waiting);
		loop_run_slow(l);
	}
}

void
loop_free(struct loop *l)
{
	struct loop_signal *s;

	if (l == NULL)
		return;
	if (l->base != NULL)
		loop_run_last_calls(l);
	while ((s = l->signals) != NULL) {
		l->signals = s->next;
		event_free(s->ev);
		free(s);
	}
	if (l->post_fd >= 0) {
		if (event_initialized(&l->post_ev))
			event_del(&l->post_ev);
		close(l->post_fd);
	}
	if (l->urgent_fd >= 0)
		close(l->urgent_fd);
	if (event_initialized(&l->turn))
		event_del(&l->turn);
	loop_timers_done(l);
	if (l->base != NULL)
		event_base_free(l->base);
	pthread_mutex_destroy(&l->post_lock);
	free(l->scratch);
	free(l);
}

struct event_base *
loop_base(struct loop *l)
{
	return l->base;
}

uint8_t *
loop_scratch(struct loop *l)
{
	return l->scratch;
}

uint8_t *
loop_cork(struct loop *l)
{
	return l->cork;
}

void
loop_watch_urgent(struct loop *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP };

	/* On failure it is served after the rest, as all other input. */
	if (l->urgent_fd >= 0)
		(void)epoll_ctl(l->urgent_fd, EPOLL_CTL_ADD, fd, &ev);
}

void
loop_set_paced(struct loop *l)
{
	if (l->urgent_fd < 0)
		l->urgent_fd = epoll_create1(EPOLL_CLOEXEC);
	loop_watch_urgent(l, l->post_fd);
}

void
loop_count_read(struct loop *l, size_t n)
{
	loop_pace_read(&l->pace, n);
}

/* Rests as loop_pace says, unless a call waits for the next turn. */
static void
loop_rest(struct loop *l)
{
	struct pollfd urgent = { .fd = l->urgent_fd, .events = POLLIN };
	uint64_t now, until;
	struct timespec left;

	if (!loop_pace_is_due(&l->pace) ||
	    event_pending(&l->turn, EV_TIMEOUT, NULL))
		return;
	now = loop_clock_ns();
	until = loop_pace_turn(&l->pace, now);
	if (l->timers.n > 0 && l->timers.heap[0]->due_ns < until)
		until = l->timers.heap[0]->due_ns;
	if (until <= now)
		return;
	left.tv_sec = (time_t)((until - now) / 1000000000u);
	left.tv_nsec = (long)((until - now) % 1000000000u);
	(void)ppoll(&urgent, 1, &left, NULL);
}

void
loop_run(struct loop *l)
{
	/* Turn by turn: each has a time budget of its own for input. */
	while (!l->stopping) {
		loop_input_begin_turn(l);
		event_base_loop(l->base,
		    EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
		if (l->urgent_fd >= 0 && !l->stopping)
			loop_rest(l);
	}
	l->stopping = false;
}

void
loop_run_once(struct loop *l)
{
	/* ONCE: one turn, even when its calls make more work at once. */
	loop_input_begin_turn(l);
	event_base_loop(l->base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

void
loop_stop(struct loop *l)
{
	/* libevent forgets a break that comes before its loop. */
	l->stopping = true;
	event_base_loopbreak(l->base);
}

uint64_t
loop_now_ms(void)
{
	return loop_clock_ns() / 1000000u;
}

uint64_t
loop_turn_ms(struct loop *l)
{
	struct timeval at;

	/* Cached: it stays the same within a turn. */
	if (event_base_gettimeofday_cached(l->base, &at) != 0)
		return loop_now_ms();
	if (at.tv_sec != l->turn_at.tv_sec ||
	    at.tv_usec != l->turn_at.tv_usec) {
		l->turn_at = at;
		l->turn_ms = loop_now_ms();
	}
	return l->turn_ms;
}

uint64_t
loop_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

void
loop_defer(struct loop *l, struct loop_call *c, loop_fn fn, void *arg)
{
	if (calls_are_empty(&l->deferred))
		loop_want_turn(l);
	loop_calls_add(&l->deferred, c, fn, arg);
}

void
loop_defer_slow(struct loop *l, struct loop_call *c, bool goes_on, loop_fn fn,
    void *arg)
{
	loop_calls_add(&l->slow[goes_on], c, fn, arg);
	loop_want_turn(l);
}

static void
posted_cancel(struct loop *l, const void *arg)
{
	struct loop_post **at, *p;

	for (at = &l->posted; (p = *at) != NULL;) {
		if (p->arg == arg) {
			*at = p->next;
			p->posted = false;
		} else {
			at = &p->next;
		}
	}
	l->posted_end = at;
}

void
loop_cancel(struct loop *l, void *arg)
{
	calls_cancel(&l->deferred, arg);
	calls_cancel(&l->running, arg);
	calls_cancel(&l->bulk.waiting, arg);
	calls_cancel(&l->slow[0], arg);
	calls_cancel(&l->slow[1], arg);
	calls_cancel(&l->at_free, arg);
	pthread_mutex_lock(&l->post_lock);
	posted_cancel(l, arg);
	pthread_mutex_unlock(&l->post_lock);
}

void
loop_at_free(struct loop *l, struct loop_call *c, loop_fn fn, void *arg)
{
	loop_calls_add(&l->at_free, c, fn, arg);
}

void
loop_post(struct loop *l, struct loop_post *p, loop_fn fn, void *arg)
{
	bool first;
	uint64_t one = 1;

	pthread_mutex_lock(&l->post_lock);
	p->fn = fn;
	p->arg = arg;
	if (!p->posted) {
		first = l->posted == NULL;
		p->posted = true;
		p->next = NULL;
		*l->posted_end = p;
		l->posted_end = &p->next;
		/* Inside the lock: the loop is not freed before the write. */
		if (first && write(l->post_fd, &one, sizeof(one)) < 0) {
			/* Full: then it is awake already. */
		}
	}
	pthread_mutex_unlock(&l->post_lock);
}

static void
signal_cb(evutil_socket_t fd, short what, void *arg)
{
	struct loop_signal *s = arg;

	s->fn(s->arg);
}

int
loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg)
{
	struct loop_signal *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return -1;
	s->fn = fn;
	s->arg = arg;
	if ((s->ev = evsignal_new(l->base, signo, signal_cb, s)) == NULL)
		goto fail;
	if (evsignal_add(s->ev, NULL) != 0)
		goto fail;
	s->next = l->signals;
	l->signals = s;
	return 0;

fail:
	if (s->ev != NULL)
		event_free(s->ev);
	free(s);
	return -1;
}
