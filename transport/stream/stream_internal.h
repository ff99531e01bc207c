/*
 * stream_internal: one stream, which is in several files: its beginning
 * (stream_new.c), its life and what it watches (stream.c), input (stream_in.c),
 * output (stream_out.c), and its budgets (stream_budget.c).  What lies between
 * it and its peer is a backend (stream_backend.h).  Private to the room.
 */
#ifndef TRANSPORT_STREAM_STREAM_INTERNAL_H
#define TRANSPORT_STREAM_STREAM_INTERNAL_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"
#include "transport/socket/fd_queue.h"
#include "transport/socket/input_rest.h"
#include "transport/socket/output_queue.h"
#include "transport/stream/stream.h"
#include "transport/stream/stream_backend.h"

#define STREAM_IOV_MAX 16

/* Set by stream_set_state() only, which also (un)watches the socket for it. */
enum stream_state {
	ST_OPENING,  /* TLS handshake; output waits; input as armed says */
	ST_OPEN,     /* input as armed says; writability while output waits */
	ST_ENDING,   /* nothing is watched; end_cb is deferred */
	ST_LAST,     /* nothing is watched; the backend calls stream_end_now() */
	ST_FLUSHING, /* owner is done; writability, flush_timer, at_free */
	ST_DEAD,     /* nothing is watched; free_cb is deferred */
};

enum stream_armed {
	ARMED_NONE,
	ARMED_READ,
	ARMED_END, /* paused or resting: only the peer's end is watched */
	ARMED_TURN, /* nothing: it is readable, and waits for its turn */
};

/* Whether input is shown to the owner: stream_pause(), stream_resume(). */
enum stream_flow {
	FLOW_ON,
	FLOW_PAUSED,  /* reshow_call may still wait, and then does nothing */
	FLOW_RESUMED, /* reshow_call waits: what is kept is shown first */
};

enum stream_output {
	OUT_TAKEN,
	OUT_OVER_LOW, /* more than `low` was queued: drained() is owed */
	OUT_REFUSED,  /* the peer takes no more; its input may go on */
};

struct stream {
	struct loop *loop;
	const struct stream_ops *ops;
	void *arg;
	int fd;
	enum stream_state state;
	enum stream_armed armed;
	enum stream_end why; /* ST_ENDING, ST_LAST */
	enum stream_flow flow;
	enum stream_output output;
	bool urgent; /* read before others; stream_set_urgent() */

	const struct stream_backend *backend; /* between it and its peer */
	void *lower; /* the backend's state, owned by it; NULL: it has none */

	struct loop_call end_call; /* end_cb, then free_cb */
	struct loop_call reshow_call, look_call;
	struct loop_call read_call; /* there is input, and it waits its turn */
	struct loop_call at_free; /* while it flushes */
	struct event ev;   /* as armed says */
	struct event *wev; /* only while something waits for room */

	struct input_rest kept; /* input that data() did not consume */
	size_t want; /* total bytes of the unit that kept begins; 0: unknown */

	uint64_t received; /* input offset after the last byte read */
	uint64_t consumed; /* input offset of the first byte not consumed */
	const uint8_t *shown; /* inside data(): where its buf begins */
	struct fd_queue fds;

	/*
	 * Inside data(), in whatever state: the owner's writes are gathered and
	 * sent as one.
	 */
	bool corking;
	size_t corked; /* bytes in loop_cork() */

	struct output_queue out;
	size_t hard;
	size_t low;
	struct loop_timer *flush_timer;

	struct budget *budgets[2]; /* borrowed; NULL: none */
	size_t counted;            /* memory that the budgets know of, bytes */
	struct loop_timer *rest;   /* owned; NULL: does not rest from reading */

	uint64_t last_in_ms;  /* the last byte arrived */
	uint64_t last_out_ms; /* output was taken, or began to wait */

	struct peer peer;
};

/* ops may still be called. */
static inline bool
stream_is_live(const struct stream *s)
{
	return s->state == ST_OPENING || s->state == ST_OPEN;
}

/* The socket is used: bytes still go out, or come in. */
static inline bool
stream_is_connected(const struct stream *s)
{
	return stream_is_live(s) || s->state == ST_FLUSHING;
}

/* ---- stream.c ---- */

/* Changes the state, and (un)watches the socket by stream_arm_...() below. */
void stream_set_state(struct stream *s, enum stream_state state);
/* Begins to watch for input (ARMED_READ).  -1: no memory. */
int stream_watch_first(struct stream *s) MUST_CHECK;
/* Watches the socket for this; without memory, ends the stream later. */
void stream_watch(struct stream *s, enum stream_armed armed);
/* How a socket is to be watched in this state, flow and rest. */
enum stream_armed stream_input_wanted(const struct stream *s);
/* Watches input, its end only, or nothing. */
void stream_arm_input(struct stream *s);
/* Watches for writability, or stops it, as output requires. */
void stream_arm_output(struct stream *s);
/*
 * Where the loop holds input: stops watching for input, until the call that is
 * going to read runs and calls stream_turn_came().
 */
void stream_arm_turn(struct stream *s);
/* ST_FLUSHING, and nothing is queued any more. */
void stream_flushed(struct stream *s);
/* From an event callback: calls closed() at once, unless the end is put off. */
void stream_end_now(struct stream *s, enum stream_end why);
/* From inside a call of the owner: closed() comes on a later turn. */
void stream_end_later(struct stream *s, enum stream_end why);
/* Into ST_DEAD, without calling closed(). */
void stream_die(struct stream *s);
/*
 * The stream became urgent: a call that waits for its turn runs on the next
 * turn, ahead of input that is not urgent.
 */
void stream_advance(struct stream *s, struct loop_call *c);

static inline void
stream_moved(struct stream *s)
{
	if (s->ops->moved != NULL && stream_is_live(s))
		s->ops->moved(s, s->arg);
}

/* Input may be shown (again): the backend shows what it has buffered. */
static inline void
stream_go_on(struct stream *s)
{
	if (s->backend->go_on != NULL)
		s->backend->go_on(s);
}

/* ---- stream_in.c ---- */

/* True: input is kept, as it may not be shown now. */
static inline bool
stream_held(const struct stream *s)
{
	return s->flow != FLOW_ON;
}

/* stream_show(): data() ended the stream. */
#define STREAM_GONE SIZE_MAX
/* Shows buf to the owner.  Returns the bytes consumed, or STREAM_GONE. */
size_t stream_show(struct stream *s, const uint8_t *buf, size_t len);
/* Reads (twice, where that completes a unit) and shows the input. */
void stream_read(struct stream *s);
/* The turn has come: watches again, where stream_arm_turn() had stopped it. */
void stream_turn_came(struct stream *s);
/* Calls fn(s) when it is the turn of this stream's input. */
void stream_defer_input(struct stream *s, struct loop_call *c, loop_fn fn);
/* Copies len bytes into kept; -1: the stream is over (no memory, or budget). */
int stream_keep(struct stream *s, const uint8_t *data, size_t len) MUST_CHECK;
void stream_read_cb(evutil_socket_t fd, short what, void *s);
void stream_end_watch_cb(evutil_socket_t fd, short what, void *s);
/* After a write failed: ends the stream on a later turn, if its peer left. */
void stream_look_later(struct stream *s);

/* ---- stream_out.c ---- */

void stream_write_cb(evutil_socket_t fd, short what, void *s);
/* Sends a part of the queue; may call drained(), or end the stream. */
void stream_send_queued(struct stream *s);
/* Output that was over `low` fell to it: calls drained(), once. */
void stream_tell_drained(struct stream *s);
/* From now on small writes are gathered until stream_uncork() sends them. */
void stream_cork(struct stream *s);
void stream_uncork(struct stream *s);

/* ---- stream_budget.c ---- */

void stream_recount(struct stream *s);

/* Tells the budgets of a change in memory; may end the stream later. */
static inline void
stream_count(struct stream *s)
{
	if (stream_memory(s) != s->counted)
		stream_recount(s);
}

/* Takes tokens for n bytes that were read; the stream may have to rest. */
void stream_spend(struct stream *s, size_t n, uint64_t now_ms);
/* Gives back what is counted; the stream forgets its budgets. */
void stream_leave_budgets(struct stream *s);

#endif /* TRANSPORT_STREAM_STREAM_INTERNAL_H */
