/*
 * loop_internal: shared by the files of the loop: loop.c (the loop, and calls
 * that wait), loop_input.c (input in turns), loop_timers.c (timers).  Private
 * to these.
 */
#ifndef TRANSPORT_LOOP_LOOP_INTERNAL_H
#define TRANSPORT_LOOP_LOOP_INTERNAL_H

#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#include "transport/base/compiler.h"
#include "transport/loop/delays.h"
#include "transport/loop/loop.h"
#include "transport/loop/loop_pace.h"

/* A queue, first in, first out: a circular list with its head in it. */
struct loop_calls {
	struct loop_call head;
};

struct loop_timer {
	struct loop *loop;
	int fd; /* a timerfd, for CLOCK_BOOTTIME; else -1 */
	struct event ev; /* on fd */
	loop_fn fn;
	void *arg;
	/* Without fd: */
	size_t at; /* in the heap, or nowhere */
	uint64_t due_ns;
	uint64_t every_ns; /* 0: once */
};

/*
 * Timers of CLOCK_MONOTONIC in a binary heap by due time, behind one event of
 * libevent's.  The heap has room for each timer that exists, armed or not, so
 * that arming one allocates nothing.
 */
struct loop_timers {
	struct loop_timer **heap; /* owned; the n timers that are armed */
	size_t n;
	size_t cap;
	size_t existing;
	struct event ev;
	uint64_t ev_due_ns; /* 0: it is not armed */
	struct delays delays;
};

/* Streams whose input waits for its turn, and the time budget of a turn. */
struct loop_input {
	struct loop_calls waiting;
	/*
	 * Stands in the queue itself: when it runs, every call that was queued
	 * before it has had its turn: a round is over.
	 */
	struct loop_call marker;
	/* While calls run: those queued during this turn are behind it. */
	struct loop_call end;
	/* Read by other threads, too (loop_lag_ms()). */
	atomic_uint_fast64_t marked_ns; /* of the marker; 0: no call waits */
	atomic_uint_fast64_t lag_ns;    /* of the last round */
	size_t round;    /* calls that ran in the last round */
	size_t ran;      /* calls that ran since the marker was queued */
	uint64_t until_ns, urgent_until_ns; /* of this turn; 0: not begun */
	bool held;       /* loop_hold_input() */
	_Atomic(enum loop_hold) hold;
	/* A round that takes so long calls alarm(); 0: none does. */
	uint64_t alarm_ns;
	loop_fn alarm;
	void *alarm_arg;
	struct loop_call alarm_call;
};

struct loop_signal;

struct loop {
	struct event_base *base;
	uint8_t *scratch;
	uint8_t cork[LOOP_CORK_BYTES];
	bool stopping;

	struct timeval turn_at; /* libevent's time of the turn of turn_ms */
	uint64_t turn_ms;

	struct loop_calls deferred; /* for the next turn */
	struct loop_calls running;  /* being called now */
	struct loop_calls slow[2];  /* loop_defer_slow()'s, by goes_on */
	unsigned slow_passed;       /* calls of slow[1] since one of slow[0] */
	struct event turn; /* a timer of 0: pending while any of them wait */

	struct loop_input bulk;
	struct loop_pace pace;
	int urgent_fd; /* epoll of what ends a rest; -1: the loop never rests */

	struct loop_calls at_free;

	pthread_mutex_t post_lock;
	struct loop_post *posted;  /* under post_lock, as is posted_end */
	struct loop_post **posted_end;
	int post_fd; /* an eventfd, owned */
	struct event post_ev;

	struct loop_timers timers;
	struct loop_signal *signals;

	uint64_t (*clock)(void *arg); /* for tests; NULL: the real one */
	void *clock_arg;
};

void loop_calls_add(struct loop_calls *q, struct loop_call *c, loop_fn fn,
    void *arg);
/*
 * Takes the first call out of the queue and calls it.  It may queue itself
 * again, or free its owner.
 */
void loop_calls_run_one(struct loop_calls *q);

/* The turn event will run, after the sockets. */
void loop_want_turn(struct loop *l);
/* Nanoseconds of the clock that measures the time of a turn. */
uint64_t loop_budget_ns(const struct loop *l);

/* ---- loop_input.c ---- */

void loop_input_begin_turn(struct loop *l);
void loop_input_run(struct loop *l);

uint64_t loop_clock_ns(void);

/*
 * Needs l->base.  -1: no memory.  loop_timers_done() is legal without
 * loop_timers_init().
 */
int loop_timers_init(struct loop *l) MUST_CHECK;
void loop_timers_done(struct loop *l);

#endif /* TRANSPORT_LOOP_LOOP_INTERNAL_H */
