#include "transport/loop.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* loop_free() runs what is deferred, and what that defers, this many times. */
#define LOOP_FREE_ROUNDS 64


struct call {
	loop_fn fn; /* NULL: cancelled */
	void *arg;
};

/* A growing list of calls; keeps its memory. */
struct call_list {
	struct call *calls;
	size_t n;
	size_t cap;
};

/* First in, first out. */
struct call_queue {
	struct call_list list;
	size_t at; /* the first that waits */
};

/* Of calls that begin something, one comes after so many that go on. */
#define LOOP_SLOW_SHARE 3u

struct loop_signal {
	struct event *ev;
	loop_fn fn;
	void *arg;
	struct loop_signal *next;
};

struct loop {
	struct event_base *base;
	uint8_t *scratch;
	uint8_t cork[LOOP_CORK_BYTES];
	bool stopping;

	struct timeval turn_at; /* libevent's time of the turn of turn_ms */
	uint64_t turn_ms;


	struct call_list deferred; /* for the next turn */
	struct call_list running;  /* being called now, from running_at on */
	size_t running_at;
	struct call_queue slow[2]; /* wait for a turn with room; [1]: go on */
	unsigned slow_passed;      /* calls of slow[1] since one of slow[0] */
	struct event turn; /* a timer of 0: pending while any of them wait */

	struct call_list at_free;

	pthread_mutex_t post_lock;
	struct call_list posted; /* under post_lock */
	int post_fd;
	struct event post_ev;

	struct loop_signal *signals;
};

struct loop_timer {
	struct loop *loop;
	struct event ev;
	int fd; /* a timerfd, for CLOCK_BOOTTIME; else -1 */
	loop_fn fn;
	void *arg;
	uint64_t due_ms; /* loop_now_ms() */
};

static void
calls_add(struct call_list *list, loop_fn fn, void *arg)
{
	if (list->n == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 16;
		list->calls =
		    realloc(list->calls, list->cap * sizeof(list->calls[0]));
		if (list->calls == NULL)
			abort();
	}
	list->calls[list->n].fn = fn;
	list->calls[list->n].arg = arg;
	list->n++;
}

static void
calls_cancel(struct call_list *list, size_t from, const void *arg)
{
	size_t i;

	for (i = from; i < list->n; i++) {
		if (list->calls[i].arg == arg)
			list->calls[i].fn = NULL;
	}
}

/* Runs what was deferred before this turn; what is added meanwhile waits. */
static void
loop_run_deferred(struct loop *l)
{
	struct call_list batch = l->deferred;
	struct call c;

	l->deferred = l->running;
	l->deferred.n = 0;
	l->running = batch;
	for (l->running_at = 0; l->running_at < l->running.n;) {
		c = l->running.calls[l->running_at++];
		if (c.fn != NULL)
			c.fn(c.arg);
	}
	l->running.n = 0;
}

/*
 * A timer rather than event_active(): timers are looked at once a turn, after
 * the sockets, so calls that defer again starve nobody.
 */
static void
loop_want_turn(struct loop *l)
{
	static const struct timeval now = { 0, 0 };

	if (event_add(&l->turn, &now) != 0)
		abort();
}

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool
queue_is_empty(const struct call_queue *q)
{
	return q->at == q->list.n;
}

static void
queue_add(struct call_queue *q, loop_fn fn, void *arg)
{
	/* Those that ran leave their room to those that come. */
	if (q->list.n == q->list.cap && q->at > q->list.n / 2) {
		q->list.n -= q->at;
		memmove(q->list.calls, q->list.calls + q->at,
		    q->list.n * sizeof(q->list.calls[0]));
		q->at = 0;
	}
	calls_add(&q->list, fn, arg);
}

static struct call
queue_take(struct call_queue *q)
{
	struct call c = q->list.calls[q->at++];

	if (queue_is_empty(q))
		q->list.n = q->at = 0;
	return c;
}

static bool
loop_has_slow(const struct loop *l)
{
	return !queue_is_empty(&l->slow[0]) || !queue_is_empty(&l->slow[1]);
}

static struct call
loop_take_slow(struct loop *l)
{
	if (queue_is_empty(&l->slow[1]) || (!queue_is_empty(&l->slow[0]) &&
	    l->slow_passed >= LOOP_SLOW_SHARE)) {
		l->slow_passed = 0;
		return queue_take(&l->slow[0]);
	}
	l->slow_passed++;
	return queue_take(&l->slow[1]);
}

static void
loop_run_slow(struct loop *l)
{
	uint64_t until;
	struct call c;

	if (!loop_has_slow(l))
		return;
	until = clock_ns(CLOCK_MONOTONIC) + LOOP_SLOW_MS * 1000000u;
	do {
		c = loop_take_slow(l);
		if (c.fn != NULL)
			c.fn(c.arg);
	} while (loop_has_slow(l) && clock_ns(CLOCK_MONOTONIC) < until);
	if (loop_has_slow(l))
		loop_want_turn(l);
}

static void
turn_cb(evutil_socket_t fd, short what, void *arg)
{
	loop_run_deferred(arg);
	loop_run_slow(arg);
}

static void
loop_take_posted(struct loop *l)
{
	size_t i;

	pthread_mutex_lock(&l->post_lock);
	for (i = 0; i < l->posted.n; i++) {
		if (l->posted.calls[i].fn != NULL)
			loop_defer(l, l->posted.calls[i].fn,
			    l->posted.calls[i].arg);
	}
	l->posted.n = 0;
	pthread_mutex_unlock(&l->post_lock);
}

static void
post_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0) {
		/* Somebody woke us for nothing: harmless. */
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
	l->post_fd = -1;
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
	    event_add(&l->post_ev, NULL) != 0)
		goto fail;
	return l;

fail:
	loop_free(l);
	return NULL;
}

/* Memory that waits for a later turn has none after this one. */
static void
loop_run_last_calls(struct loop *l)
{
	size_t i;
	int round;

	for (i = 0; i < l->at_free.n; i++) {
		if (l->at_free.calls[i].fn != NULL)
			l->at_free.calls[i].fn(l->at_free.calls[i].arg);
	}
	for (round = 0; round < LOOP_FREE_ROUNDS; round++) {
		loop_take_posted(l);
		if (l->deferred.n == 0 && !loop_has_slow(l))
			return;
		loop_run_deferred(l);
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
	if (event_initialized(&l->turn))
		event_del(&l->turn);
	if (l->base != NULL)
		event_base_free(l->base);
	pthread_mutex_destroy(&l->post_lock);
	free(l->deferred.calls);
	free(l->running.calls);
	free(l->slow[0].list.calls);
	free(l->slow[1].list.calls);
	free(l->posted.calls);
	free(l->at_free.calls);
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
loop_run(struct loop *l)
{
	while (!l->stopping)
		event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
	l->stopping = false;
}

void
loop_run_once(struct loop *l)
{
	/* ONCE: one turn, even when its calls make more work at once. */
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
	return clock_ns(CLOCK_MONOTONIC) / 1000000u;
}

uint64_t
loop_turn_ms(struct loop *l)
{
	struct timeval at;

	/* It is the same within a turn, and costs no call then. */
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
loop_defer(struct loop *l, loop_fn fn, void *arg)
{
	calls_add(&l->deferred, fn, arg);
	if (l->deferred.n == 1)
		loop_want_turn(l);
}

void
loop_defer_slow(struct loop *l, bool goes_on, loop_fn fn, void *arg)
{
	queue_add(&l->slow[goes_on], fn, arg);
	loop_want_turn(l);
}

void
loop_cancel(struct loop *l, void *arg)
{
	calls_cancel(&l->deferred, 0, arg);
	calls_cancel(&l->running, l->running_at, arg);
	calls_cancel(&l->slow[0].list, l->slow[0].at, arg);
	calls_cancel(&l->slow[1].list, l->slow[1].at, arg);
	calls_cancel(&l->at_free, 0, arg);
	while (l->at_free.n > 0 &&
	    l->at_free.calls[l->at_free.n - 1].fn == NULL)
		l->at_free.n--;
	pthread_mutex_lock(&l->post_lock);
	calls_cancel(&l->posted, 0, arg);
	pthread_mutex_unlock(&l->post_lock);
}

void
loop_at_free(struct loop *l, loop_fn fn, void *arg)
{
	calls_add(&l->at_free, fn, arg);
}

void
loop_post(struct loop *l, loop_fn fn, void *arg)
{
	uint64_t one = 1;

	pthread_mutex_lock(&l->post_lock);
	calls_add(&l->posted, fn, arg);
	/* Inside the lock: the loop is not freed before its last post is in. */
	if (l->posted.n == 1 && write(l->post_fd, &one, sizeof(one)) < 0) {
		/* Full: then it is awake already. */
	}
	pthread_mutex_unlock(&l->post_lock);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;
	uint64_t n;

	/* Set again since it was seen due: not now. */
	if (fd >= 0 && read(fd, &n, sizeof(n)) < 0)
		return;
	t->fn(t->arg);
	/* t may be gone. */
}

struct loop_timer *
loop_timer_new(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->loop = l;
	t->fd = -1;
	t->fn = fn;
	t->arg = arg;
	if (event_assign(&t->ev, l->base, -1, 0, timer_cb, t) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

struct loop_timer *
loop_timer_new_boottime(struct loop *l, loop_fn fn, void *arg)
{
	struct loop_timer *t = loop_timer_new(l, fn, arg);

	if (t == NULL)
		return NULL;
	t->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->fd < 0 || event_assign(&t->ev, l->base, t->fd,
	    EV_READ | EV_PERSIST, timer_cb, t) != 0 ||
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
	if (timerfd_settime(t->fd, 0, &when, NULL) != 0)
		abort(); /* no time is out of its range */
}

void
loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic)
{
	struct timeval tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000),
	};

	if (t->fd >= 0) {
		boottime_set(t, ms > 0 ? ms : 1, periodic);
		return;
	}
	event_del(&t->ev);
	/* Else the time since this turn began would be missing. */
	event_base_update_cache_time(t->loop->base);
	if (event_assign(&t->ev, t->loop->base, -1, periodic ? EV_PERSIST : 0,
		timer_cb, t) != 0 ||
	    event_add(&t->ev, &tv) != 0)
		abort(); /* memory for one heap slot */
	t->due_ms = loop_now_ms() + ms;
}

bool
loop_timer_left(const struct loop_timer *t, uint64_t *ms)
{
	uint64_t now = loop_now_ms();
	struct itimerspec its;

	if (t == NULL)
		return false;
	if (t->fd >= 0) {
		/* It says how long it still runs; nothing when it does not. */
		if (timerfd_gettime(t->fd, &its) != 0 ||
		    (its.it_value.tv_sec == 0 && its.it_value.tv_nsec == 0))
			return false;
		*ms = (uint64_t)its.it_value.tv_sec * 1000 +
		    (uint64_t)its.it_value.tv_nsec / 1000000;
		return true;
	}
	if (!event_pending(&t->ev, EV_TIMEOUT, NULL))
		return false;
	*ms = t->due_ms > now ? t->due_ms - now : 0;
	return true;
}

void
loop_timer_clear(struct loop_timer *t)
{
	if (t->fd >= 0)
		boottime_set(t, 0, 0);
	else
		event_del(&t->ev);
}

void
loop_timer_free(struct loop_timer *t)
{
	if (t == NULL)
		return;
	event_del(&t->ev);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
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
