/*
 * loop: the event loop of one thread, over libevent.
 *
 * Owns the event_base and one scratch buffer that every stream on the loop
 * reads into, so that an idle connection owns no receive buffer.  All calls
 * come from the loop's own thread, except loop_post().
 */
#ifndef TRANSPORT_LOOP_LOOP_H
#define TRANSPORT_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct event_base;
struct loop;
struct loop_timer;

/* Bytes of the scratch buffer: one read from a socket is never larger. */
#define LOOP_SCRATCH_BYTES (128u * 1024u)

/* Also makes the process ignore SIGPIPE. */
struct loop *loop_new(void) MUST_CHECK;
/*
 * Runs what is still deferred or posted (memory that waits for a later turn
 * goes away here) and the loop_at_free() calls, then ends the loop.  Not from
 * inside a callback; no other thread may post any more.
 */
void loop_free(struct loop *l);
struct event_base *loop_base(struct loop *l);
uint8_t *loop_scratch(struct loop *l);
/* Room for what the stream that is reading writes meanwhile. */
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
 * As loop_now_ms(), but read once a turn of the loop: for what happens with
 * every event and needs no better.
 */
uint64_t loop_turn_ms(struct loop *l);

typedef void (*loop_fn)(void *arg);

/*
 * A call that waits for its turn.  It lies in its owner, so that there is no
 * memory to be missing: all zero at first, and its fields are the loop's.
 * While it waits it must not move or go away: who frees the owner calls
 * loop_cancel() first, or is the last call of it that waits.
 */
struct loop_call {
	loop_fn fn;
	void *arg;
	struct loop_call *next, *prev; /* NULL: it does not wait */
};

/*
 * Calls fn(arg) on a later turn of the loop, after the callbacks that are
 * running now.  Cannot fail.  One that waits already keeps its place, and runs
 * once, with the fn and arg that it was given last.
 */
void loop_defer(struct loop *l, struct loop_call *c, loop_fn fn, void *arg);
/*
 * As loop_defer(), for slow work, of about a millisecond a piece: a crowd of it
 * (TLS handshakes) shall not keep the loop from those who are served already.
 * In one turn as many of the calls run as LOOP_SLOW_MS have room for, at least
 * one.  They run in their order, but those that go on with something before
 * those that begin something: else all of a crowd would end late, and too late
 * when there are time-outs.  Every fourth is one that begins.
 */
#define LOOP_SLOW_MS 2u
void loop_defer_slow(struct loop *l, struct loop_call *c, bool goes_on,
    loop_fn fn, void *arg);

/*
 * Input, of which there may be more than the loop can take: ten thousand peers
 * that are ready at once shall not keep it from timers, files and those who ask
 * for something small (`urgent`).  Whoever is about to read asks loop_may_read()
 * first, and where it says no, reads in the call that loop_defer_read() brings:
 * in a turn of the loop so many of these run as LOOP_READ_MS have room for, in
 * their order, at least one.  A read takes loop_read_bytes() at most, which is
 * less the more there are that wait: so those are held back who send most, and
 * a round through all stays short.
 *
 * Urgent ones have as much time again, before all others; beyond that they wait
 * like everybody.
 */
#define LOOP_READ_MS 4u
bool loop_may_read(struct loop *l, bool urgent) MUST_CHECK;
void loop_defer_read(struct loop *l, struct loop_call *c, loop_fn fn,
    void *arg);
size_t loop_read_bytes(const struct loop *l);
/* Whether any waits for its turn. */
bool loop_input_waits(const struct loop *l);
/*
 * How long input waits for its turn at present, in milliseconds; 0: it does not
 * wait.  From any thread.
 */
uint64_t loop_lag_ms(const struct loop *l);
/*
 * While it is held, input waits that is not urgent, whatever time there is; what
 * waits is not watched then, so that the loop may sleep.
 */
void loop_hold_input(struct loop *l, bool hold);
bool loop_holds_input(const struct loop *l);

/*
 * From here on the loop rests between turns where that saves some
 * (loop_pace.h), for a millisecond at most.  Timers, calls from other threads and
 * those who are watched as urgent end a rest.  Without the descriptors that it
 * takes all is as before.
 */
void loop_set_paced(struct loop *l);
/* fd is somebody's who is urgent; until it is closed. */
void loop_watch_urgent(struct loop *l, int fd);
/* A read from somebody who is not brought n bytes. */
void loop_count_read(struct loop *l, size_t n);

/*
 * Calls fn(arg), on a later turn, when a round through all that wait took ms or
 * longer; as often as that happens.  ms 0: never.  One fn a loop.
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

/* Whether it waits for its turn. */
static inline bool
loop_call_waits(const struct loop_call *c)
{
	return c->next != NULL;
}

/* Drops every deferred, posted and loop_at_free() call with this arg. */
void loop_cancel(struct loop *l, void *arg);
/* Drops one of loop_defer() and loop_at_free(), if it waits; costs nothing. */
void loop_call_cancel(struct loop_call *c);
/* Calls fn(arg) from loop_free(), for things that may outlive their owner. */
void loop_at_free(struct loop *l, struct loop_call *c, loop_fn fn, void *arg);

/*
 * As loop_defer(), but from any thread (wakes the loop).  What is posted again
 * before it ran runs at least once after the last post.  All zero at first.
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
 * A timer.  timer_set (re)arms it: fires once after ms, or every ms when
 * periodic.  Not armed after loop_timer_new() or loop_timer_clear().  fn may
 * free its own timer.  Only the making of one can fail.
 */
struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *arg)
    MUST_CHECK;
/*
 * As loop_timer_new() by CLOCK_BOOTTIME: the time that the machine sleeps
 * counts.  A timer that fell due meanwhile fires when it wakes up, a periodic
 * one once.
 */
struct loop_timer *loop_timer_new_boottime(struct loop *l, loop_fn fn,
    void *arg) MUST_CHECK;
void loop_timer_set(struct loop_timer *t, uint64_t ms, int periodic);
void loop_timer_clear(struct loop_timer *t);
/*
 * How long until it fires, for one that is not periodic; false: it is not
 * armed.  t may be NULL.
 */
bool loop_timer_left(const struct loop_timer *t, uint64_t *ms);
void loop_timer_free(struct loop_timer *t);

/* SIGTERM, SIGINT, SIGHUP ...: fn runs on the loop.  One fn a signal. */
int loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg)
    MUST_CHECK;

#endif /* TRANSPORT_LOOP_LOOP_H */
