#include "tests/load/chaos_pair.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/loop/loop.h"

/* Of a way; a long, fast one holds this much in flight. */
#define QUEUE_MAX (4u << 20)
#define READ_MAX  (64u << 10)

struct piece {
	STAILQ_ENTRY(piece) next;
	uint64_t due_ns;
	size_t at, len;
	uint8_t data[];
};

/* One direction: from sides[way].fd to sides[!way].fd. */
struct way {
	STAILQ_HEAD(, piece) pieces;
	size_t queued;
	uint64_t last_due_ns;
	bool ended;    /* its source says no more */
	bool end_told; /* and its destination knows */
	struct event *due;
};

struct side {
	int fd; /* -1: closed */
	struct event *readable;
	struct event *writable;
};

struct chaos_pair {
	struct loop *loop;
	struct addr target;
	struct chaos_rules *rules;
	const struct chaos_pair_ops *ops;
	void *arg;
	/* By the way that begins there: the client is sides[CHAOS_UP]. */
	struct side sides[CHAOS_WAYS];
	struct way ways[CHAOS_WAYS];
	bool held;       /* not connected to the target yet */
	bool connecting;
	bool vanishing;  /* CHAOS_DROP, CHAOS_HALF_* */
	bool stalled;
	bool gone;
	struct loop_call free_call;
};

static void pump(struct chaos_pair *p, enum chaos_way way);

uint64_t
chaos_random(uint64_t *state, uint64_t below)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return below == 0 ? 0 : (x ^ x >> 31) % below;
}

static const char *const cut_names[CHAOS_CUTS] = {
	[CHAOS_RST] = "rst",
	[CHAOS_CLOSE] = "close",
	[CHAOS_DROP] = "drop",
	[CHAOS_HALF_CLIENT] = "half-client",
	[CHAOS_HALF_TARGET] = "half-target",
	[CHAOS_STALL] = "stall",
};

const char *
chaos_cut_text(enum chaos_cut c)
{
	return cut_names[c];
}

bool
chaos_cut_parse(const char *text, enum chaos_cut *out)
{
	int i;

	for (i = 0; i < CHAOS_CUTS; i++) {
		if (strcmp(text, cut_names[i]) != 0)
			continue;
		*out = (enum chaos_cut)i;
		return true;
	}
	return false;
}

static void
drop_queue(struct way *w)
{
	struct piece *piece;

	while ((piece = STAILQ_FIRST(&w->pieces)) != NULL) {
		STAILQ_REMOVE_HEAD(&w->pieces, next);
		free(piece);
	}
	w->queued = 0;
	if (w->due != NULL)
		event_del(w->due);
}

static void
free_cb(void *arg)
{
	struct chaos_pair *p = arg;
	int i;

	for (i = 0; i < CHAOS_WAYS; i++)
		if (p->ways[i].due != NULL)
			event_free(p->ways[i].due);
	free(p);
}

static void
close_side(struct chaos_pair *p, enum chaos_way which, bool reset)
{
	struct side *s = &p->sides[which];
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (s->fd < 0)
		return;
	if (s->readable != NULL)
		event_free(s->readable);
	if (s->writable != NULL)
		event_free(s->writable);
	s->readable = s->writable = NULL;
	if (reset)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now,
		    sizeof(now));
	close(s->fd);
	s->fd = -1;
	drop_queue(&p->ways[!which]);
}

static void
end_when_over(struct chaos_pair *p)
{
	if (p->gone || p->held || p->sides[0].fd >= 0 || p->sides[1].fd >= 0)
		return;
	p->gone = true;
	drop_queue(&p->ways[CHAOS_UP]);
	drop_queue(&p->ways[CHAOS_DOWN]);
	p->ops->gone(p->arg, p);
	loop_defer(p->loop, &p->free_call, free_cb, p);
}

static void
end_both(struct chaos_pair *p, bool reset)
{
	p->held = false;
	close_side(p, CHAOS_UP, reset);
	close_side(p, CHAOS_DOWN, reset);
	end_when_over(p);
}

static uint64_t
now_ns(void)
{
	return loop_boottime_ns();
}

static void
wake_at(struct way *w, uint64_t due_ns, uint64_t now)
{
	uint64_t wait = due_ns - now;
	struct timeval tv = {
		.tv_sec = (time_t)(wait / 1000000000u),
		.tv_usec = (suseconds_t)(wait / 1000u % 1000000u) + 1,
	};

	(void)event_add(w->due, &tv);
}

static void
set_reading(struct chaos_pair *p, enum chaos_way way)
{
	struct side *s = &p->sides[way];

	if (s->fd < 0 || s->readable == NULL)
		return;
	if (p->stalled || p->ways[way].ended ||
	    p->ways[way].queued >= QUEUE_MAX)
		event_del(s->readable);
	else
		(void)event_add(s->readable, NULL);
}

/* Hands a half-close on, and ends what has ended in both directions. */
static void
tell_end(struct chaos_pair *p, enum chaos_way way)
{
	struct way *w = &p->ways[way];

	if (!w->ended || w->end_told || w->queued > 0 || p->held ||
	    p->connecting || p->sides[!way].fd < 0)
		return;
	w->end_told = true;
	(void)shutdown(p->sides[!way].fd, SHUT_WR);
	if (p->ways[!way].end_told || p->sides[way].fd < 0)
		end_both(p, false);
}

/* 1: all of it is written, 0: later, -1: the destination is gone. */
static int
write_piece(struct chaos_pair *p, enum chaos_way way, struct piece *piece)
{
	struct side *to = &p->sides[!way];
	ssize_t n;

	n = send(to->fd, piece->data + piece->at, piece->len - piece->at,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -1;
	if (n > 0) {
		piece->at += (size_t)n;
		p->ways[way].queued -= (size_t)n;
		p->ops->carried(p->arg, way, (size_t)n);
	}
	if (piece->at == piece->len)
		return 1;
	(void)event_add(to->writable, NULL);
	return 0;
}

static void
pump(struct chaos_pair *p, enum chaos_way way)
{
	struct way *w = &p->ways[way];
	struct piece *piece;
	uint64_t now = now_ns();
	int rc;

	if (p->held || p->connecting || p->stalled || p->sides[!way].fd < 0)
		return;
	while ((piece = STAILQ_FIRST(&w->pieces)) != NULL) {
		if (piece->due_ns > now) {
			wake_at(w, piece->due_ns, now);
			break;
		}
		if ((rc = write_piece(p, way, piece)) < 0) {
			end_both(p, true);
			return;
		}
		if (rc == 0)
			break;
		STAILQ_REMOVE_HEAD(&w->pieces, next);
		free(piece);
	}
	set_reading(p, way);
	tell_end(p, way);
}

static void
due_up_cb(evutil_socket_t fd, short what, void *arg)
{
	pump(arg, CHAOS_UP);
}

static void
due_down_cb(evutil_socket_t fd, short what, void *arg)
{
	pump(arg, CHAOS_DOWN);
}

/* When the piece arrives: delay and jitter, then its place in the line. */
static uint64_t
due_time(struct chaos_pair *p, enum chaos_way way, size_t len)
{
	struct chaos_rules *r = p->rules;
	struct way *w = &p->ways[way];
	uint64_t due = now_ns() + 1000000u * r->delay_ms[way];

	if (r->jitter_ms[way] > 0)
		due += 1000u * chaos_random(&r->random,
		    1000u * (uint64_t)r->jitter_ms[way] + 1);
	if (due < w->last_due_ns)
		due = w->last_due_ns;
	if (r->rate[way] > 0)
		due += 1000000000u * (uint64_t)len / r->rate[way];
	return w->last_due_ns = due;
}

/* Slow lines are read in small pieces, so that they flow evenly. */
static size_t
read_size(const struct chaos_rules *r, enum chaos_way way)
{
	uint64_t tenth = r->rate[way] / 100;

	if (r->rate[way] == 0 || tenth > READ_MAX)
		return READ_MAX;
	return tenth < 16 ? 16 : (size_t)tenth;
}

static void
source_ended(struct chaos_pair *p, enum chaos_way way, bool broken)
{
	p->ways[way].ended = true;
	if (p->vanishing) {
		close_side(p, way, false);
		end_when_over(p);
		return;
	}
	/* What a held client said is still to come; it hears no answer. */
	if (p->held || p->connecting) {
		close_side(p, way, false);
		return;
	}
	if (broken) {
		end_both(p, true);
		return;
	}
	set_reading(p, way);
	tell_end(p, way);
}

static void
side_readable(struct chaos_pair *p, enum chaos_way way)
{
	struct way *w = &p->ways[way];
	struct piece *piece;
	size_t room = read_size(p->rules, way);
	ssize_t n;

	if ((piece = malloc(sizeof(*piece) + room)) == NULL) {
		end_both(p, true);
		return;
	}
	n = recv(p->sides[way].fd, piece->data, room, MSG_DONTWAIT);
	if (n <= 0 || p->vanishing) {
		free(piece);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			source_ended(p, way, n < 0);
		return;
	}
	piece->at = 0;
	piece->len = (size_t)n;
	piece->due_ns = due_time(p, way, piece->len);
	STAILQ_INSERT_TAIL(&w->pieces, piece, next);
	w->queued += piece->len;
	pump(p, way);
}

static void
client_readable_cb(evutil_socket_t fd, short what, void *arg)
{
	side_readable(arg, CHAOS_UP);
}

static void
target_readable_cb(evutil_socket_t fd, short what, void *arg)
{
	side_readable(arg, CHAOS_DOWN);
}

static void
client_writable_cb(evutil_socket_t fd, short what, void *arg)
{
	pump(arg, CHAOS_DOWN);
}

static void
target_writable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct chaos_pair *p = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	if (p->connecting) {
		p->connecting = false;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ||
		    error != 0) {
			end_both(p, true);
			return;
		}
		set_reading(p, CHAOS_DOWN);
	}
	pump(p, CHAOS_UP);
}

static int
adopt_side(struct chaos_pair *p, enum chaos_way which, int fd)
{
	static const event_callback_fn readable[CHAOS_WAYS] = {
		client_readable_cb, target_readable_cb };
	static const event_callback_fn writable[CHAOS_WAYS] = {
		client_writable_cb, target_writable_cb };
	struct side *s = &p->sides[which];
	int one = 1;

	/* A UNIX socket does not know it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	s->fd = fd;
	s->readable = event_new(loop_base(p->loop), fd, EV_READ | EV_PERSIST,
	    readable[which], p);
	s->writable = event_new(loop_base(p->loop), fd, EV_WRITE,
	    writable[which], p);
	return s->readable != NULL && s->writable != NULL ? 0 : -1;
}

static int
start_connect(struct chaos_pair *p)
{
	struct sockaddr_storage sa;
	socklen_t len;
	char err[256];
	int fd;

	if (addr_resolve(&p->target, &sa, &len, 1, err, sizeof(err)) < 1)
		return -1;
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (fd < 0)
		return -1;
	if (adopt_side(p, CHAOS_DOWN, fd) != 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&sa, len) != 0 &&
	    errno != EINPROGRESS)
		return -1;
	p->connecting = true;
	return event_add(p->sides[CHAOS_DOWN].writable, NULL);
}

struct chaos_pair *
chaos_pair_new(struct loop *l, int client, const struct addr *target,
    struct chaos_rules *rules, bool hold, const struct chaos_pair_ops *ops,
    void *arg)
{
	static const event_callback_fn due[CHAOS_WAYS] = { due_up_cb,
		due_down_cb };
	struct chaos_pair *p;
	int i;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		close(client);
		return NULL;
	}
	p->loop = l;
	p->target = *target;
	p->rules = rules;
	p->ops = ops;
	p->arg = arg;
	p->held = hold;
	for (i = 0; i < CHAOS_WAYS; i++) {
		p->sides[i].fd = -1;
		STAILQ_INIT(&p->ways[i].pieces);
		p->ways[i].due = evtimer_new(loop_base(l), due[i], p);
		if (p->ways[i].due == NULL)
			goto fail;
	}
	if (adopt_side(p, CHAOS_UP, client) != 0)
		goto fail;
	client = -1;
	if (!hold && start_connect(p) != 0)
		goto fail;
	set_reading(p, CHAOS_UP);
	return p;

fail:
	if (client >= 0)
		close(client);
	close_side(p, CHAOS_UP, true);
	close_side(p, CHAOS_DOWN, true);
	free_cb(p);
	return NULL;
}

void
chaos_pair_let_through(struct chaos_pair *p)
{
	if (!p->held)
		return;
	p->held = false;
	if (start_connect(p) != 0)
		end_both(p, true);
}

void
chaos_pair_cut(struct chaos_pair *p, enum chaos_cut how)
{
	if (p->gone)
		return;
	switch (how) {
	case CHAOS_RST:
		end_both(p, true);
		return;
	case CHAOS_CLOSE:
		end_both(p, false);
		return;
	case CHAOS_STALL:
		p->stalled = true;
		set_reading(p, CHAOS_UP);
		set_reading(p, CHAOS_DOWN);
		return;
	case CHAOS_DROP:
	case CHAOS_HALF_CLIENT:
	case CHAOS_HALF_TARGET:
		break;
	case CHAOS_CUTS:
		return;
	}
	p->vanishing = true;
	p->held = false;
	drop_queue(&p->ways[CHAOS_UP]);
	drop_queue(&p->ways[CHAOS_DOWN]);
	if (how == CHAOS_HALF_CLIENT)
		close_side(p, CHAOS_UP, true);
	if (how == CHAOS_HALF_TARGET)
		close_side(p, CHAOS_DOWN, true);
	/* Whose end was not handed on by now never hears of it. */
	set_reading(p, CHAOS_UP);
	set_reading(p, CHAOS_DOWN);
	end_when_over(p);
}

void
chaos_pair_go_on(struct chaos_pair *p)
{
	if (p->gone)
		return;
	if (p->vanishing) {
		close_side(p, CHAOS_UP, true);
		end_when_over(p);
		return;
	}
	if (!p->stalled)
		return;
	p->stalled = false;
	set_reading(p, CHAOS_UP);
	set_reading(p, CHAOS_DOWN);
	pump(p, CHAOS_UP);
	if (!p->gone)
		pump(p, CHAOS_DOWN);
}
