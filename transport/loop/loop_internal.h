/*
 * loop_internal: shared by the files of the loop: loop.c (the loop, and calls
 * that wait), loop_input.c (input in turns), loop_timers.c (timers).  Private to
 * these.
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
#include "transport/loop/loop.h"
#include "transport/loop/loop_pace.h"

/* First in, first out; a ring with its head in it. */
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
 * Timers of CLOCK_MONOTONIC, the next one first (a heap), behind one event of
 * libevent's.  There is a place for each that exists, armed or not, so that
 * none is needed when one is armed.
 */
struct loop_timers {
	struct loop_timer **heap; /* n that are armed */
	size_t n;
	size_t cap;
	size_t existing;
	struct event ev;
	uint64_t ev_due_ns; /* 0: it is not armed */
};

/* Input that waits for its turn, and the time of one. */
struct loop_input {
	struct loop_calls waiting;
	/*
	 * Stands in the queue itself: when it runs, all have had their turn that
	 * came before it was put there.
	 */
	struct loop_call marker;
	struct loop_call end; /* while they run: what came before this turn */
	/* Read by other threads, too (loop_lag_ms()). */
	atomic_uint_fast64_t marked_ns; /* 0: nobody waits */
	atomic_uint_fast64_t lag_ns;    /* how long it stood there last */
	size_t round;    /* calls that ran meanwhile */
	size_t ran;      /* since then */
	uint64_t until_ns, urgent_until_ns; /* of this turn; 0: all of it left */
	bool held;       /* loop_hold_input() */
	_Atomic(enum loop_hold) hold;
	/* A lag of so much calls alarm(); 0: none does. */
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
	struct loop_calls slow[2];  /* wait for a turn with room; [1]: go on */
	unsigned slow_passed;       /* calls of slow[1] since one of slow[0] */
	struct event turn; /* a timer of 0: pending while any of them wait */

	struct loop_input bulk;
	struct loop_pace pace;
	int urgent_fd; /* epoll of what ends a rest; -1: it never rests */

	struct loop_calls at_free;

	pthread_mutex_t post_lock;
	struct loop_post *posted;  /* under post_lock, as the next */
	struct loop_post **posted_end;
	int post_fd;
	struct event post_ev;

	struct loop_timers timers;
	struct loop_signal *signals;

	uint64_t (*clock)(void *arg); /* for tests; NULL: the real one */
	void *clock_arg;
};

void loop_calls_add(struct loop_calls *q, struct loop_call *c, loop_fn fn,
    void *arg);
/* The first of them; it may be gone, or wait again, when it was called. */
void loop_calls_run_one(struct loop_calls *q);

/* The turn event will run, after the sockets. */
void loop_want_turn(struct loop *l);
/* The clock that budgets of a turn go by. */
uint64_t loop_budget_ns(const struct loop *l);

/* ---- loop_input.c ---- */

void loop_input_begin_turn(struct loop *l);
void loop_input_run(struct loop *l);

uint64_t loop_clock_ns(void);

/* Needs l->base.  loop_timers_done() takes what was never initialized. */
int loop_timers_init(struct loop *l) MUST_CHECK;
void loop_timers_done(struct loop *l);

#endif /* TRANSPORT_LOOP_LOOP_INTERNAL_H */
