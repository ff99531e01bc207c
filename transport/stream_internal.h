/*
 * stream_internal: the parts of one stream, which are in several files: its
 * end (stream.c), input (stream_in.c), output (stream_out.c) and what it may
 * use of its budgets (stream_budget.c).  Nobody else includes it.
 */
#ifndef TRANSPORT_STREAM_INTERNAL_H
#define TRANSPORT_STREAM_INTERNAL_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/fdq.h"
#include "transport/kept.h"
#include "transport/outq.h"
#include "transport/stream.h"

#define STREAM_IOV_MAX 16

enum stream_state {
	ST_OPEN,     /* armed says what is watched on the input side */
	ST_ENDING,   /* nothing armed; end_cb is deferred */
	ST_FLUSHING, /* the owner is done; write event and timer armed */
	ST_DEAD,     /* fd closed; free_cb is deferred */
};

enum stream_armed {
	ARMED_NONE,
	ARMED_READ,
	ARMED_END, /* paused or resting: only the peer's end is watched */
};

struct stream {
	struct loop *loop;
	const struct stream_ops *ops;
	void *arg;
	int fd;
	enum stream_state state;
	enum stream_armed armed;
	enum stream_end why; /* ST_ENDING */
	bool paused;
	bool reshow;   /* resumed; reshow_cb is deferred */
	bool out_dead; /* the peer takes no output; its input may go on */
	bool over_low;
	bool opening; /* TLS: the handshake is under way */
	struct event ev;   /* as armed says */
	struct event *wev; /* only while output is queued */

	struct kept kept; /* input that data() did not consume */
	size_t want; /* total of the unit it begins with; 0: unknown */

	uint64_t received; /* input offset after the last byte read */
	uint64_t consumed; /* input offset of the first byte not consumed */
	const uint8_t *shown; /* inside data(): where its buf begins */
	struct fdq fds;

	struct outq out;
	size_t hard;
	size_t low;
	struct loop_timer *flush_timer;

	struct budget *budgets[2]; /* borrowed; NULL: none */
	size_t counted;            /* the memory that they know of */
	struct loop_timer *rest;   /* it rests from reading; else NULL */

	uint64_t last_in_ms;  /* the last byte arrived */
	uint64_t last_out_ms; /* output was taken, or began to wait */

	struct peer peer;
};

/* ---- stream.c ---- */

/* Watches what its state says: input, its end only, or nothing. */
void stream_arm_input(struct stream *s);
void stream_arm_write(struct stream *s);
void stream_disarm_write(struct stream *s);
/* From an event callback: tells the owner at once. */
void stream_end_now(struct stream *s, enum stream_end why);
/* From inside a call of the owner. */
void stream_end_later(struct stream *s, enum stream_end why);
/* Into ST_DEAD, without a word. */
void stream_die(struct stream *s);

/* ---- stream_in.c ---- */

/* Nothing may be shown now: everything that is there is kept. */
static inline bool
stream_held(const struct stream *s)
{
	return s->paused || s->reshow;
}

void stream_read_cb(evutil_socket_t fd, short what, void *s);
void stream_end_watch_cb(evutil_socket_t fd, short what, void *s);
/*
 * Whether the peer has left and no byte of it is to be shown any more (those
 * are for resume, which then finds the end behind them).
 */
bool stream_peer_left(const struct stream *s, enum stream_end *why);

/* ---- stream_out.c ---- */

void stream_write_cb(evutil_socket_t fd, short what, void *s);

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

#endif /* TRANSPORT_STREAM_INTERNAL_H */
