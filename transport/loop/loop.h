/*
 * loop: the event loop of one thread, over libevent.
 *
 * Owns the event_base and one scratch buffer that every stream on the loop
 * reads into, so that an idle connection owns no receive buffer.  All calls
 * come from the loop's own thread, except loop_post(), loop_lag_ms() and
 * loop_hold_back(), which any thread may call.
 */
#ifndef TRANSPORT_LOOP_LOOP_H
#define TRANSPORT_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct delays;
struct event_base;
struct loop;
struct loop_timer;

/* Bytes of the scratch buffer: one read from a socket is never larger. */
#define LOOP_SCRATCH_BYTES (128u * 1024u)

/* Also makes the process ignore SIGPIPE.  NULL: no memory or no descriptor. */
struct loop *loop_new(void) MUST_CHECK;
/*
 * Runs what is still deferred or posted (memory that waits for a later turn
 * goes away here) and the loop_at_free() calls, then ends the loop.  Not from
 * inside a callback; no other thread may post any more.
 */
void loop_free(struct loop *l);
struct event_base *loop_base(struct loop *l);
uint8_t *loop_scratch(struct loop *l);
/* Buffer in which a stream gathers what is written inside its data(). */
#define LOOP_CORK_BYTES 2048u
uint8_t *loop_cork(struct loop *l);

/* Runs until loop_stop(). */
void loop_run(struct loop *l);
/* Handles what is ready without waiting (tests). */
void loop_run_once(struct loop *l);
void loop_stop(struct loop *l);

/* CLOCK_MONOTONIC / CLOCK_BOOTTIME now. */
uint64_t loop_now_ms(void);
uint64_t loop_boottime_ns(void);
/*
 * As loop_now_ms(), but read once a turn of the loop: cheap enough to be asked
 * with every event, and late by at most that turn.
 */
uint64_t loop_turn_ms(struct loop *l);

typedef void (*loop_fn)(void *arg);

/*
 * A call that waits for its turn.  Embedded in its owner, so that queueing it
 * allocates nothing and cannot fail: all zero at first, and its fields are the
 * loop's.  While it waits it must not move or be freed: cancel it before the
 * owner is freed (loop_cancel(), loop_call_cancel()), or free the owner in the
 * last of its calls.
 */
struct loop_call {
	loop_fn fn;
	void *arg;
	struct loop_call *next, *prev; /* NULL: it does not wait */
};

/*
 * Calls fn(arg) on a later turn of the loop, after the callbacks that are
 * running now.  Cannot fail.  A call that waits already keeps its place, and
 * runs once, with the fn and arg of the last loop_defer().
 */
void loop_defer(struct loop *l, struct loop_call *c, loop_fn fn, void *arg);
/*
 * As loop_defer(), for slow work, of about a millisecond a piece: many such
 * calls (TLS handshakes) shall not keep the loop from the connections that are
 * served already.  In one turn as many of the calls run as LOOP_SLOW_MS have
 * room for, at least one.  Two queues, each first in, first out: calls that
 * continue a piece of work (goes_on) run before calls that begin one, else all
 * of a crowd would end late, and run into their time-outs.  While both wait,
 * every fourth call is one that begins.
 */
#define LOOP_SLOW_MS 2u
void loop_defer_slow(struct loop *l, struct loop_call *c, bool goes_on,
    loop_fn fn, void *arg);

/*
 * Input, shared among streams by round robin with a time budget: ten thousand
 * sockets that are ready at once shall not keep the loop from timers, files and
 * connections with small requests (`urgent`).  A stream that is about to read
 * asks loop_may_read() first; if that is false, it reads in a call that it
 * queues by loop_defer_read().  In a turn of the loop as many of these calls
 * run as LOOP_READ_MS have room for, first in, first out, at least one.  A read
 * takes loop_read_bytes() at most, which is less the more streams wait: so the
 * peers that send most are held back, and a round through all stays short.
 *
 * Urgent streams have LOOP_READ_MS of their own in each turn, before all
 * others; beyond that they wait in the same queue.  While input is held
 * (loop_hold_input()) they never lack time.
 */
#define LOOP_READ_MS 4u
bool loop_may_read(struct loop *l, bool urgent) MUST_CHECK;
void loop_defer_read(struct loop *l, struct loop_call *c, loop_fn fn,
    void *arg);
size_t loop_read_bytes(const struct loop *l);
/* Whether a call of loop_defer_read() waits for its turn. */
bool loop_input_waits(const struct loop *l);
/*
 * How long input waits for its turn at present, in milliseconds; 0: it does not
 * wait.  From any thread.
 */
uint64_t loop_lag_ms(const struct loop *l);
/*
 * While input is held, streams that are not urgent wait, however much time is
 * left; streams do not watch their sockets while they wait, so that the loop
 * can sleep.
 */
void loop_hold_input(struct loop *l, bool hold);
bool loop_holds_input(const struct loop *l);

/*
 * From here on the loop rests between turns where that saves some of them
 * (loop_pace.h), for a millisecond at most: interrupt coalescing.  Timers,
 * calls from other threads (loop_post()) and descriptors of loop_watch_urgent()
 * end a rest.  Does nothing when the process has no descriptor left.
 */
void loop_set_paced(struct loop *l);
/*
 * Input on fd, the socket of an urgent stream, ends a rest, until fd is closed.
 * Does nothing without loop_set_paced().
 */
void loop_watch_urgent(struct loop *l, int fd);
/* Tells the pace that a read of a stream that is not urgent brought n bytes. */
void loop_count_read(struct loop *l, size_t n);

/*
 * Calls fn(arg), on a later turn, when a round through all streams that wait to
 * read took ms milliseconds or longer; as often as that happens.  ms 0: never.
 * One fn a loop.
 */
void loop_on_lag(struct loop *l, uint64_t ms, loop_fn fn, void *arg);

/*
 * Work that a loop puts off for the sake of the rest.  May be set from any
 * thread.
 */
enum loop_hold {
	LOOP_HOLD_NOTHING,
	LOOP_HOLD_SLOW,  /* one call of loop_defer_slow() a turn */
	LOOP_HOLD_READS, /* the same, and reads of a quarter of their length */
};
void loop_hold_back(struct loop *l, enum loop_hold hold);

/*
 * For tests: what the time of a turn is measured by (nanoseconds).  NULL: the
 * real clock again.
 */
void loop_set_clock(struct loop *l, uint64_t (*clock_ns)(void *arg), void *arg);

static inline bool
loop_call_waits(const struct loop_call *c)
{
	return c->next != NULL;
}

/*
 * Drops every call with this arg, however it was queued (loop_defer(),
 * loop_defer_slow(), loop_defer_read(), loop_post(), loop_at_free()).  Looks at
 * all calls that wait.
 */
void loop_cancel(struct loop *l, void *arg);
/*
 * Drops one call that was not queued by loop_post(), if it waits; in constant
 * time.
 */
void loop_call_cancel(struct loop_call *c);
/* Calls fn(arg) from loop_free(), for things that may outlive their owner. */
void loop_at_free(struct loop *l, struct loop_call *c, loop_fn fn, void *arg);

/*
 * As loop_defer(), but from any thread (wakes the loop).  A post that is posted
 * again before it ran runs at least once after the last loop_post(), with that
 * one's fn and arg.  Embedded in its owner; all zero at first.
 */
struct loop_post {
	loop_fn fn;
	void *arg;
	struct loop_post *next; /* while it is posted */
	bool posted;
	struct loop_call call;  /* the loop's side of it */
};
void loop_post(struct loop *l, struct loop_post *p, loop_fn fn, void *arg);

/*
 * A timer of CLOCK_MONOTONIC.  loop_timer_set() (re)arms it: fires once after
 * ms, or every ms when periodic.  Not armed after loop_timer_new() or
 * loop_timer_clear().  fn may free its own timer.  Only making one can fail
 * (NULL); arming allocates nothing.
 */
struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *arg)
    MUST_CHECK;
/*
 * As loop_timer_new() by CLOCK_BOOTTIME: the time that the machine is suspended
 * counts.  A timer that fell due meanwhile fires when the machine resumes, a
 * periodic one once.
 */
struct loop_timer *loop_timer_new_boottime(struct loop *l, loop_fn fn,
    void *arg) MUST_CHECK;
void loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic);
void loop_timer_clear(struct loop_timer *t);
/*
 * Stores in *ms how long until a timer that is not periodic fires.  False: t is
 * not armed, or NULL; *ms is untouched.
 */
bool loop_timer_left(const struct loop_timer *t, uint64_t *ms);
void loop_timer_free(struct loop_timer *t);
/*
 * How late timers of CLOCK_MONOTONIC have fired since loop_new(): the event loop
 * was busy.  Borrowed; valid until loop_free().
 */
const struct delays *loop_delays(const struct loop *l);

/*
 * SIGTERM, SIGINT, SIGHUP ...: fn runs on the loop, until loop_free().  One fn
 * a signal.  -1: no memory.
 */
int loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg)
    MUST_CHECK;

#endif /* TRANSPORT_LOOP_LOOP_H */
