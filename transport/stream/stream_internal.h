/*
 * stream_internal: the parts of one stream, which are in several files: its
 * life (stream.c), input (stream_in.c), output (stream_out.c), what lies
 * between it and its socket (stream_tls.c, stream_child.c, stream_far.c), and
 * what it may use of its budgets (stream_budget.c).  Nobody else includes it.
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

#define STREAM_IOV_MAX 16

enum stream_state {
	ST_OPEN,     /* armed says what is watched on the input side */
	ST_ENDING,   /* nothing armed; end_cb is deferred */
	ST_LAST,     /* nothing armed; the child's last words are awaited */
	ST_FLUSHING, /* the owner is done; output (or the child) and a timer */
	ST_DEAD,     /* free_cb is deferred */
};

enum stream_armed {
	ARMED_NONE,
	ARMED_READ,
	ARMED_END, /* paused or resting: only the peer's end is watched */
	ARMED_TURN, /* nothing: it is readable, and waits for its turn */
};

struct stream_child;
struct stream_far;

struct stream {
	struct loop *loop;
	const struct stream_ops *ops;
	void *arg;
	int fd;
	enum stream_state state;
	enum stream_armed armed;
	enum stream_end why; /* ST_ENDING, ST_LAST */
	bool paused;
	bool reshow;   /* resumed; reshow_cb is deferred */
	bool urgent;   /* its input does not wait behind others' */
	bool out_dead; /* the peer takes no output; its input may go on */
	bool over_low;
	/* TLS only. */
	bool opening;        /* the handshake is under way */
	bool shake_due;      /* a step of it is deferred; nothing is watched */
	bool shake_began;    /* a step of it was taken */
	bool more;           /* input lies there; more_cb is deferred */
	bool in_wants_write; /* input (or the handshake) waits for room */
	bool out_wants_read; /* output waits for input */
	struct loop_call end_call; /* end_cb, then free_cb */
	struct loop_call tls_call; /* shake_cb while it opens, then more_cb */
	struct loop_call reshow_call, look_call;
	struct loop_call read_call; /* there is input, here or far */
	struct loop_call at_free; /* while it flushes */
	struct event ev;   /* as armed says */
	struct event *wev; /* only while something waits for room */

	struct tls_conn *tls;       /* owned; NULL: plain */
	struct stream_child *child; /* owned; NULL: a socket like others */
	/*
	 * Owned; NULL: the socket is here.  Else fd is -1, and nothing is ever
	 * armed, kept or queued here.
	 */
	struct stream_far *far;

	struct input_rest kept; /* input that data() did not consume */
	size_t want; /* total of the unit it begins with; 0: unknown */

	uint64_t received; /* input offset after the last byte read */
	uint64_t consumed; /* input offset of the first byte not consumed */
	const uint8_t *shown; /* inside data(): where its buf begins */
	struct fd_queue fds;

	/* Inside data(): what it writes is gathered, and sent as one. */
	bool corking;
	size_t corked; /* bytes in loop_cork() */

	struct output_queue out;
	size_t hard;
	size_t low;
	struct loop_timer *flush_timer;

	struct budget *budgets[2]; /* borrowed; NULL: none */
	size_t counted;            /* the memory that they know of */
	struct loop_timer *rest;   /* owned; NULL unless it rests */

	uint64_t last_in_ms;  /* the last byte arrived */
	uint64_t last_out_ms; /* output was taken, or began to wait */

	struct peer peer;
};

/* ---- stream.c ---- */

/* Watch what its state says: input, its end only, or nothing; and room. */
void stream_arm_input(struct stream *s);
/* A call that waits is to read it: until then nothing is watched. */
void stream_arm_turn(struct stream *s);
void stream_arm_output(struct stream *s);
/* From an event callback: tells the owner at once. */
void stream_end_now(struct stream *s, enum stream_end why);
/* From inside a call of the owner. */
void stream_end_later(struct stream *s, enum stream_end why);
/* ST_FLUSHING, and nothing is queued any more. */
void stream_flushed(struct stream *s);
/* Into ST_DEAD, without a word. */
void stream_die(struct stream *s);

/* Whether the socket's or TLS's call may work later. */
bool stream_may_retry(const struct stream *s, int error);

static inline void
stream_moved(struct stream *s)
{
	if (s->ops->moved != NULL && s->state == ST_OPEN)
		s->ops->moved(s, s->arg);
}

/* ---- stream_in.c ---- */

/* Nothing may be shown now: everything that is there is kept. */
static inline bool
stream_held(const struct stream *s)
{
	return s->paused || s->reshow;
}

/* stream_show(): data() ended the stream. */
#define STREAM_GONE SIZE_MAX
/* Shows buf to the owner.  Returns what it consumed or STREAM_GONE. */
size_t stream_show(struct stream *s, const uint8_t *buf, size_t len);
/* Reads once and shows it. */
void stream_read(struct stream *s);
/* Its turn has come: what stream_arm_turn() left unwatched is watched again. */
void stream_turn_came(struct stream *s);
/* fn(s) when it is the turn of this stream's input. */
void stream_defer_input(struct stream *s, struct loop_call *c, loop_fn fn);
/* Keeps len bytes; -1: that ended it. */
int stream_keep(struct stream *s, const uint8_t *data, size_t len) MUST_CHECK;
void stream_read_cb(evutil_socket_t fd, short what, void *s);
void stream_end_watch_cb(evutil_socket_t fd, short what, void *s);
/*
 * Whether the peer has left and no byte of it is to be shown any more (those
 * are for resume, which then finds the end behind them).  Not over TLS.
 */
bool stream_peer_left(const struct stream *s, enum stream_end *why);

/* ---- stream_out.c ---- */

void stream_write_cb(evutil_socket_t fd, short what, void *s);
/* Some of it; calls drained(), or ends it. */
void stream_send_queued(struct stream *s);
/* From now on writes wait for stream_uncork(), those of a few bytes. */
void stream_cork(struct stream *s);
void stream_uncork(struct stream *s);

/* ---- stream_tls.c ---- */

/* The peer is known by its address only, and the handshake begins soon. */
void stream_tls_begin(struct stream *s, struct tls_conn *tls);
/* The same, where the handshake is another's. */
void stream_tls_await(struct stream *s);
/* The certificate says who it is; where it is, was known before. */
void stream_tls_name_peer(struct stream *s, const struct tls_identity *id);
ssize_t stream_tls_receive(struct stream *s, struct iovec *iov, int niov)
    MUST_CHECK;
ssize_t stream_tls_send(struct stream *s, struct iovec *iov, int niov)
    MUST_CHECK;
/*
 * The socket became readable: does what goes before reading.  Returns whether
 * to read.
 */
bool stream_tls_is_readable(struct stream *s);
/* The same for room; whether to go on with output. */
bool stream_tls_is_writable(struct stream *s);
/* Reads on a later turn what lies in the TLS layer, if it may read now. */
void stream_tls_come_back(struct stream *s);
/*
 * As stream_peer_left(), for a stream that is held: what the peer sent last is
 * read (a little) to find its goodbye.  Not inside a call of the owner.
 */
bool stream_tls_peer_left(struct stream *s, enum stream_end *why);
/* The same on a later turn, and ends the stream. */
void stream_tls_look_later(struct stream *s);

/* ---- stream_child.c ---- */

/* -1: no memory; the child stays the caller's. */
int stream_child_begin(struct stream *s, struct child *child,
    const struct addr *a) MUST_CHECK;
/* Into ST_LAST; then stream_end_now(). */
void stream_child_end(struct stream *s, enum stream_end why);
/* All was written: the child is let end by itself, then s dies. */
void stream_child_flush(struct stream *s);
/* Legal twice, and without a child. */
void stream_child_drop(struct stream *s);
const char *stream_child_detail(const struct stream *s);
void stream_child_free(struct stream *s);

/* ---- stream_far.c, stream_far_in.c ---- */

/* -1: no memory; what is handed over stays the caller's. */
int stream_far_begin(struct stream *s, const struct stream_setup *setup)
    MUST_CHECK;
/*
 * What waits is shown, as far as that is wanted, and as much as is due at once;
 * the rest when it is its turn again.  May end it.
 */
void stream_far_feed(struct stream *s);
/* Whether input is wanted may have changed. */
void stream_far_hold(struct stream *s);
/* It is urgent: on its thread, too.  Once. */
void stream_far_hurry(struct stream *s);
void stream_far_write(struct stream *s, const void *a, size_t alen,
    const void *b, size_t blen);
size_t stream_far_queued(const struct stream *s);
size_t stream_far_memory(const struct stream *s);
uint64_t stream_far_idle_ms(const struct stream *s, uint64_t now_ms);
uint64_t stream_far_stalled_ms(const struct stream *s, uint64_t now_ms);
/* The stream dies; what is queued goes out (after a flush), or does not. */
void stream_far_flush(struct stream *s);
void stream_far_drop(struct stream *s);
const char *stream_far_detail(const struct stream *s);
/* NULL is fine. */
void stream_far_free(struct stream *s);

/* ---- stream_budget.c ---- */

void stream_recount(struct stream *s);

/* Its memory may have changed; may end it later. */
static inline void
stream_count(struct stream *s)
{
	if (stream_memory(s) != s->counted)
		stream_recount(s);
}

/* n bytes were read: it may have to rest. */
void stream_spend(struct stream *s, size_t n, uint64_t now_ms);
/* Gives back what is counted; the budgets may go away. */
void stream_leave_budgets(struct stream *s);

#endif /* TRANSPORT_STREAM_STREAM_INTERNAL_H */
