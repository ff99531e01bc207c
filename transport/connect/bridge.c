#include "transport/connect/bridge.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/loop/loop.h"

/* Then the other direction has its turn. */
#define BRIDGE_ROUNDS 8

/* One direction. */
struct way {
	struct bridge *bridge; /* back-pointer */
	int from, to;          /* -1: not there yet */
	bool eof;              /* of from */
	int error;             /* why, where from broke; else 0 */
	bool over;             /* carries no more bytes in this direction */
	bool reading, writing; /* the events are armed */
	bool again;            /* pump_again() is deferred */
	struct loop_call again_call;
	struct event read_ev, write_ev;
	size_t head, len;      /* begin and number of bytes in buf */
	uint8_t buf[BRIDGE_BUFFER_BYTES];
};

struct bridge {
	struct loop *loop;
	const struct bridge_ops *ops;
	void *arg;
	int fd;     /* the socket; -1: none yet */
	bool ended; /* tell() is deferred, or was called */
	int error;  /* for the owner */
	struct loop_timer *half;
	struct loop_call tell_call;
	struct way up, down; /* to the socket, from it */
};

static void pump(struct way *w);

/* ---- events ---- */

static void
pump_cb(evutil_socket_t fd, short what, void *arg)
{
	pump(arg);
}

static void
pump_again(void *arg)
{
	struct way *w = arg;

	w->again = false;
	pump(w);
}

static void
pump_later(struct way *w)
{
	if (!w->again)
		loop_defer(w->bridge->loop, &w->again_call, pump_again, w);
	w->again = true;
}

/* A file is always ready, which epoll says by refusing it. */
static void
watch(struct way *w, struct event *ev, bool *armed, bool wanted, int fd,
    short what)
{
	if (*armed == wanted)
		return;
	if (*armed) {
		event_del(ev);
		*armed = false;
	} else if (event_assign(ev, loop_base(w->bridge->loop), fd,
		       what | EV_PERSIST, pump_cb, w) == 0 &&
	    event_add(ev, NULL) == 0) {
		*armed = true;
	} else {
		pump_later(w);
	}
}

/* Room to read into: the buffer is filled and emptied in turns. */
static size_t
room(const struct way *w)
{
	if (w->len == 0)
		return sizeof(w->buf);
	return w->to < 0 ? sizeof(w->buf) - w->len : 0;
}

static void
arm(struct way *w)
{
	bool live = !w->over && !w->bridge->ended;

	watch(w, &w->read_ev, &w->reading,
	    live && w->from >= 0 && !w->eof && room(w) > 0, w->from, EV_READ);
	watch(w, &w->write_ev, &w->writing,
	    live && w->to >= 0 && w->len > 0, w->to, EV_WRITE);
}

/* ---- the end ---- */

static void
tell(void *arg)
{
	struct bridge *b = arg;

	if (b->fd < 0)
		b->ops->abandoned(b->arg);
	else
		b->ops->ended(b->arg, b->error);
}

static void
end(struct bridge *b, int error)
{
	if (b->ended)
		return;
	b->ended = true;
	b->error = error;
	arm(&b->up);
	arm(&b->down);
	loop_timer_clear(b->half);
	loop_defer(b->loop, &b->tell_call, tell, b);
}

static void
half_cb(void *arg)
{
	end(arg, 0);
}

/* Ends this direction of the bridge. */
static void
way_over(struct way *w, int error)
{
	struct bridge *b = w->bridge;

	w->over = true;
	if (w == &b->down || b->fd < 0) {
		end(b, error);
		return;
	}
	(void)shutdown(b->fd, SHUT_WR);
	loop_timer_set(b->half, BRIDGE_HALF_MS, 0);
}

/* ---- bytes ---- */

/* Reads into buf.  Whether there were bytes. */
static bool
fill(struct way *w)
{
	ssize_t n;

	if (w->len == 0)
		w->head = 0;
	n = read(w->from, w->buf + w->head + w->len, room(w));
	if (n > 0) {
		w->len += (size_t)n;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	w->eof = true;
	/* A read error of the input counts as its end; the socket's is told. */
	w->error = n < 0 && w == &w->bridge->down ? errno : 0;
	return false;
}

/* Writes from buf.  Whether bytes were taken. */
static bool
drain(struct way *w)
{
	ssize_t n = write(w->to, w->buf + w->head, w->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		/*
		 * The reader of this direction is gone.  If that is the socket,
		 * its last bytes may say why: the other direction goes on.
		 */
		way_over(w, 0);
		return false;
	}
	w->head += (size_t)n;
	w->len -= (size_t)n;
	return true;
}

static void
pump(struct way *w)
{
	struct bridge *b = w->bridge;
	bool moved = true;
	int rounds;

	for (rounds = 0; rounds < BRIDGE_ROUNDS && moved; rounds++) {
		moved = false;
		if (!w->over && w->len > 0 && w->to >= 0)
			moved |= drain(w);
		if (!w->over && !w->eof && w->from >= 0 && room(w) > 0)
			moved |= fill(w);
		if (moved && b->up.over && !b->ended)
			loop_timer_set(b->half, BRIDGE_HALF_MS, 0);
	}
	if (w->eof && !w->over && (w->len == 0 || w->to < 0))
		way_over(w, w->error);
	arm(w);
}

/* ---- life ---- */

static void
way_init(struct way *w, struct bridge *b, int from, int to)
{
	w->bridge = b;
	w->from = from;
	w->to = to;
}

struct bridge *
bridge_new(struct loop *l, int in, int out, const struct bridge_ops *ops,
    void *arg)
{
	struct bridge *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->loop = l;
	b->ops = ops;
	b->arg = arg;
	b->fd = -1;
	way_init(&b->up, b, in, -1);
	way_init(&b->down, b, -1, out);
	if ((b->half = loop_timer_new(l, half_cb, b)) == NULL) {
		free(b);
		return NULL;
	}
	pump_later(&b->up);
	return b;
}

void
bridge_attach(struct bridge *b, int fd)
{
	if (b->ended) {
		close(fd);
		return;
	}
	b->fd = fd;
	b->up.to = fd;
	b->down.from = fd;
	pump_later(&b->up);
	pump_later(&b->down);
}

static void
way_done(struct way *w)
{
	if (w->reading)
		event_del(&w->read_ev);
	if (w->writing)
		event_del(&w->write_ev);
	loop_cancel(w->bridge->loop, w);
}

void
bridge_free(struct bridge *b)
{
	if (b == NULL)
		return;
	way_done(&b->up);
	way_done(&b->down);
	loop_cancel(b->loop, b);
	loop_timer_free(b->half);
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}
