#include "transport/stream.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/fdq.h"
#include "transport/kept.h"
#include "transport/loop.h"
#include "transport/outq.h"
#include "transport/sock.h"

#define STREAM_HARD_DEFAULT (1024u * 1024u)
#define STREAM_LOW_DEFAULT  (64u * 1024u)
#define STREAM_FLUSH_MS     1000u
#define STREAM_IOV_MAX      16
/* Sends per readiness event: one fast reader does not hold the loop. */
#define STREAM_SENDS_MAX    8

/* data() ended the stream. */
#define STREAM_GONE SIZE_MAX

enum stream_state {
	ST_OPEN,     /* armed says what is watched on the input side */
	ST_ENDING,   /* nothing armed; end_cb is deferred */
	ST_FLUSHING, /* the owner is done; write event and timer armed */
	ST_DEAD,     /* fd closed; free_cb is deferred */
};

enum stream_armed {
	ARMED_NONE,
	ARMED_READ,
	ARMED_END, /* paused: only the peer's end is watched */
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

	struct peer peer;
};

static void read_cb(evutil_socket_t fd, short what, void *arg);
static void end_watch_cb(evutil_socket_t fd, short what, void *arg);
static void write_cb(evutil_socket_t fd, short what, void *arg);

const char *
stream_end_text(enum stream_end why)
{
	switch (why) {
	case STREAM_EOF:
		return "closed by the peer";
	case STREAM_RESET:
		return "connection lost";
	case STREAM_SLOW:
		return "too slow: its queue of output is full";
	case STREAM_REFUSED:
		return "refused";
	case STREAM_BUDGET:
		return "memory for connections is used up";
	case STREAM_PROTOCOL:
		return "protocol violation";
	case STREAM_NO_MEMORY:
		return "out of memory";
	case STREAM_SHUTDOWN:
		return "shutting down";
	}
	return "unknown";
}

/* ---- events ---- */

static void stream_end_later(struct stream *s, enum stream_end why);

static void
stream_arm(struct stream *s, enum stream_armed armed)
{
	/*
	 * The end is watched edge-triggered (a reset is reported as an error
	 * that libevent would not hand to such an event, again and again), and
	 * libevent allows no mix of both kinds: queued output goes first, it
	 * finds a dead peer too.
	 */
	if (armed == ARMED_END && s->wev != NULL)
		armed = ARMED_NONE;
	if (s->armed == armed)
		return;
	if (s->armed != ARMED_NONE)
		event_del(&s->ev);
	s->armed = ARMED_NONE;
	switch (armed) {
	case ARMED_NONE:
		return;
	case ARMED_READ:
		if (event_assign(&s->ev, loop_base(s->loop), s->fd,
			EV_READ | EV_PERSIST, read_cb, s) != 0 ||
		    event_add(&s->ev, NULL) != 0) {
			stream_end_later(s, STREAM_NO_MEMORY);
			return;
		}
		break;
	case ARMED_END:
		/* Without it the end is found on resume. */
		if (event_assign(&s->ev, loop_base(s->loop), s->fd,
			EV_CLOSED | EV_ET, end_watch_cb, s) != 0 ||
		    event_add(&s->ev, NULL) != 0)
			return;
		break;
	}
	s->armed = armed;
}

static void
stream_arm_write(struct stream *s)
{
	if (s->wev != NULL)
		return;
	if (s->armed == ARMED_END)
		stream_arm(s, ARMED_NONE);
	s->wev = event_new(loop_base(s->loop), s->fd, EV_WRITE | EV_PERSIST,
	    write_cb, s);
	if (s->wev == NULL || event_add(s->wev, NULL) != 0)
		stream_end_later(s, STREAM_NO_MEMORY);
}

static void
stream_disarm_write(struct stream *s)
{
	if (s->wev == NULL)
		return;
	event_free(s->wev);
	s->wev = NULL;
	if (s->state == ST_OPEN && s->paused)
		stream_arm(s, ARMED_END);
}

/* ---- the end ---- */

static void
free_cb(void *arg)
{
	struct stream *s = arg;

	kept_free(&s->kept);
	free(s);
}

/*
 * Into ST_DEAD.  The kept input stays until free_cb: data() may be looking at
 * it right now.
 */
static void
stream_die(struct stream *s)
{
	s->state = ST_DEAD;
	stream_arm(s, ARMED_NONE);
	stream_disarm_write(s);
	outq_done(&s->out);
	fdq_done(&s->fds);
	if (s->flush_timer != NULL) {
		loop_timer_free(s->flush_timer);
		loop_cancel(s->loop, s);
		s->flush_timer = NULL;
	}
	close(s->fd);
	s->fd = -1;
	loop_defer(s->loop, free_cb, s);
}

/* From an event callback: tells the owner at once. */
static void
stream_end_now(struct stream *s, enum stream_end why)
{
	stream_die(s);
	s->ops->closed(s, why, s->arg);
}

static void
end_cb(void *arg)
{
	struct stream *s = arg;

	if (s->state == ST_ENDING)
		stream_end_now(s, s->why);
}

/* From inside a call of the owner. */
static void
stream_end_later(struct stream *s, enum stream_end why)
{
	if (s->state == ST_FLUSHING) {
		stream_die(s);
		return;
	}
	if (s->state != ST_OPEN)
		return;
	s->state = ST_ENDING;
	s->why = why;
	stream_arm(s, ARMED_NONE);
	stream_disarm_write(s);
	outq_done(&s->out);
	loop_defer(s->loop, end_cb, s);
}

static void
flush_over_cb(void *arg)
{
	stream_die(arg);
}

static int
stream_begin_flush(struct stream *s)
{
	s->flush_timer = loop_timer_new(s->loop, flush_over_cb, s);
	if (s->flush_timer == NULL)
		return -1;
	loop_timer_set(s->flush_timer, STREAM_FLUSH_MS, 0);
	loop_at_free(s->loop, flush_over_cb, s);
	s->state = ST_FLUSHING;
	stream_arm(s, ARMED_NONE);
	return 0;
}

void
stream_close(struct stream *s, bool flush)
{
	switch (s->state) {
	case ST_OPEN:
		if (flush && s->out.bytes > 0 && stream_begin_flush(s) == 0)
			return;
		stream_die(s);
		return;
	case ST_ENDING:
		stream_die(s);
		return;
	case ST_FLUSHING:
	case ST_DEAD:
		return;
	}
}

/* ---- input ---- */

/* Shows buf to the owner.  Returns what it consumed or STREAM_GONE. */
static size_t
stream_show(struct stream *s, const uint8_t *buf, size_t len)
{
	size_t n;

	s->want = 0;
	s->shown = buf;
	n = s->ops->data(s, buf, len, s->arg);
	s->shown = NULL;
	if (s->state != ST_OPEN)
		return STREAM_GONE;
	if (n > len)
		n = len;
	s->consumed += n;
	fdq_drop_until(&s->fds, s->consumed);
	return n;
}

/* Nothing may be shown now: everything that is there is kept. */
static bool
stream_held(const struct stream *s)
{
	return s->paused || s->reshow;
}

/* Keeps len bytes more, with room for the whole unit when that is known. */
static int
stream_keep(struct stream *s, const uint8_t *data, size_t len)
{
	if (kept_add(&s->kept, data, len, s->want) == 0)
		return 0;
	stream_end_later(s, STREAM_NO_MEMORY);
	return -1;
}

/*
 * Shows the kept bytes, completed from *data, as long as that gets on.  fresh:
 * they hold bytes that the owner did not see yet.  Returns true when nothing
 * is kept any more and the rest of *data is to be shown where it is.
 */
static bool
stream_feed_kept(struct stream *s, const uint8_t **data, size_t *len,
    bool fresh)
{
	size_t have, take, n;

	while ((have = kept_len(&s->kept)) > 0) {
		take = *len;
		if (!stream_held(s) && have < s->want && take > s->want - have)
			take = s->want - have;
		if (take > 0) {
			if (stream_keep(s, *data, take) != 0)
				return false;
			*data += take;
			*len -= take;
			have += take;
			fresh = true;
		}
		if (stream_held(s) || !fresh || have < s->want)
			return false;
		n = stream_show(s, kept_data(&s->kept), have);
		if (n == STREAM_GONE)
			return false;
		kept_drop(&s->kept, n);
		fresh = false;
	}
	kept_free(&s->kept);
	return true;
}

static void
stream_feed(struct stream *s, const uint8_t *data, size_t len, bool fresh)
{
	size_t n;

	if (!stream_feed_kept(s, &data, &len, fresh)) {
		/* What a long pause piled up may have ended in a small unit. */
		if (s->state == ST_OPEN && !stream_held(s))
			kept_shrink(&s->kept, s->want);
		return;
	}
	if (len == 0)
		return;
	n = stream_show(s, data, len);
	if (n != STREAM_GONE && n < len)
		(void)!stream_keep(s, data + n, len - n);
}

/* As readv(); files the descriptors that came along. */
static ssize_t
stream_receive(struct stream *s, struct iovec *iov, int niov)
{
	int fds[SOCK_FDS_MAX], n_fds, i;
	ssize_t n;

	n = sock_receive(s->fd, iov, niov,
	    s->peer.can_pass_fds ? fds : NULL, &n_fds);
	if (n > 0)
		s->received += (uint64_t)n;
	for (i = 0; i < n_fds; i++)
		fdq_add(&s->fds, fds[i], s->received);
	return n;
}

/* One read an event, so that a busy peer starves nobody. */
static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;
	uint8_t *scratch = loop_scratch(s->loop);
	struct iovec iov[2];
	size_t have = kept_len(&s->kept), to_kept = 0;
	int niov = 0;
	ssize_t n;

	/*
	 * A unit that began in an earlier read is completed in its place.  Its
	 * length may have become known only when the kept bytes were shown:
	 * then they are not in memory of that size yet.
	 */
	if (have > 0 && have < s->want) {
		if (stream_keep(s, NULL, 0) != 0)
			return;
		to_kept = s->want - have;
		iov[niov].iov_base = s->kept.mem + s->kept.end;
		iov[niov++].iov_len = to_kept;
	}
	iov[niov].iov_base = scratch;
	iov[niov++].iov_len = LOOP_SCRATCH_BYTES;
	n = stream_receive(s, iov, niov);
	if (n < 0) {
		if (!sock_error_is_transient(errno))
			stream_end_now(s, STREAM_RESET);
		return;
	}
	if (n == 0) {
		stream_end_now(s, STREAM_EOF);
		return;
	}
	if (to_kept > (size_t)n)
		to_kept = (size_t)n;
	s->kept.end += to_kept;
	stream_feed(s, scratch, (size_t)n - to_kept, to_kept > 0);
}

/*
 * Whether the peer has left and no byte of it is to be shown any more (those
 * are for resume, which then finds the end behind them).
 */
static bool
stream_peer_left(const struct stream *s, enum stream_end *why)
{
	char byte;
	ssize_t n;

	if (kept_len(&s->kept) > 0)
		return false;
	n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	*why = n == 0 ? STREAM_EOF : STREAM_RESET;
	return n == 0 || (n < 0 && !sock_error_is_transient(errno));
}

static void
end_watch_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;
	enum stream_end why;

	s->armed = ARMED_NONE; /* it was for one time */
	if (stream_peer_left(s, &why))
		stream_end_now(s, why);
}

static void
reshow_cb(void *arg)
{
	struct stream *s = arg;

	s->reshow = false;
	if (s->state != ST_OPEN || s->paused)
		return;
	stream_feed(s, NULL, 0, true);
	if (s->state == ST_OPEN && !stream_held(s))
		stream_arm(s, ARMED_READ);
}

int
stream_take_fd(struct stream *s)
{
	return fdq_take(&s->fds);
}

int
stream_take_fd_of(struct stream *s, const uint8_t *unit, size_t len)
{
	uint64_t start;

	if (s->shown == NULL)
		return -1;
	start = s->consumed + (uint64_t)(unit - s->shown);
	return fdq_take_of(&s->fds, start, start + len);
}

void
stream_want(struct stream *s, size_t total)
{
	s->want = total;
}

void
stream_pause(struct stream *s)
{
	s->paused = true;
	if (s->state == ST_OPEN)
		stream_arm(s, ARMED_END);
}

void
stream_resume(struct stream *s)
{
	if (!s->paused)
		return;
	s->paused = false;
	if (s->state != ST_OPEN || s->reshow)
		return;
	s->reshow = true;
	loop_defer(s->loop, reshow_cb, s);
}

/* ---- output ---- */

/*
 * The socket refused output for good.  What the peer sent before it left is
 * still to be read, and reading finds the end behind it; a stream that is
 * paused, or an error of another kind, is not left waiting for that.
 */
static void
stream_output_failed(struct stream *s, int error)
{
	enum stream_end why = STREAM_RESET;

	s->out_dead = true;
	outq_done(&s->out);
	stream_disarm_write(s);
	if (s->state == ST_FLUSHING)
		stream_die(s);
	else if ((error != EPIPE && error != ECONNRESET) ||
	    (s->paused && stream_peer_left(s, &why)))
		stream_end_later(s, why);
}

/* Copies what the socket did not take, from byte `sent` of a and b on. */
static void
stream_queue(struct stream *s, size_t sent, const void *a, size_t alen,
    const void *b, size_t blen, int fd)
{
	size_t skip_a = sent < alen ? sent : alen;
	size_t skip_b = sent - skip_a;
	int own_fd = -1;

	if (fd >= 0 && sent == 0) {
		if ((own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
			goto fail;
	}
	if (outq_add(&s->out, (const char *)a + skip_a, alen - skip_a,
		(const char *)b + skip_b, blen - skip_b, own_fd) != 0)
		goto fail;
	if (s->out.bytes > s->hard) {
		stream_end_later(s, STREAM_SLOW);
		return;
	}
	if (s->out.bytes > s->low)
		s->over_low = true;
	stream_arm_write(s);
	return;

fail:
	if (own_fd >= 0)
		close(own_fd);
	stream_end_later(s, STREAM_NO_MEMORY);
}

void
stream_write2(struct stream *s, const void *a, size_t alen, const void *b,
    size_t blen, int fd)
{
	struct iovec iov[2] = {
		{ (void *)a, alen },
		{ (void *)b, blen },
	};
	ssize_t n = 0;

	if (s->state != ST_OPEN || s->out_dead || alen + blen == 0)
		return;
	if (!s->peer.can_pass_fds)
		fd = -1;
	if (s->out.bytes == 0) {
		n = sock_send(s->fd, iov, blen > 0 ? 2 : 1, fd);
		if (n < 0) {
			if (!sock_error_is_transient(errno)) {
				stream_output_failed(s, errno);
				return;
			}
			n = 0;
		}
		if ((size_t)n == alen + blen)
			return;
	}
	stream_queue(s, (size_t)n, a, alen, b, blen, fd);
}

void
stream_write(struct stream *s, const void *data, size_t len, int fd)
{
	stream_write2(s, data, len, "", 0, fd);
}

/* Sends what is queued until the socket is full; -1 when the stream is done. */
static int
stream_drain(struct stream *s)
{
	struct iovec iov[STREAM_IOV_MAX];
	int rounds, niov, fd;
	ssize_t n;

	for (rounds = 0; rounds < STREAM_SENDS_MAX && s->out.bytes > 0;
	     rounds++) {
		niov = outq_peek(&s->out, iov, STREAM_IOV_MAX, &fd);
		n = sock_send(s->fd, iov, niov, fd);
		if (n < 0) {
			if (sock_error_is_transient(errno))
				return 0;
			stream_output_failed(s, errno);
			return -1;
		}
		outq_consume(&s->out, (size_t)n);
	}
	return 0;
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	if (stream_drain(s) != 0)
		return;
	if (s->out.bytes == 0) {
		if (s->state == ST_FLUSHING) {
			stream_die(s);
			return;
		}
		stream_disarm_write(s);
	}
	if (s->state == ST_OPEN && s->over_low && s->out.bytes <= s->low) {
		s->over_low = false;
		if (s->ops->drained != NULL)
			s->ops->drained(s, s->arg);
	}
}

bool
stream_is_over(const struct stream *s)
{
	return s->state != ST_OPEN;
}

size_t
stream_queued(const struct stream *s)
{
	return s->out.bytes;
}

void
stream_set_limits(struct stream *s, size_t hard, size_t low)
{
	s->hard = hard;
	s->low = low;
}

size_t
stream_memory(const struct stream *s)
{
	return s->kept.cap + s->out.memory;
}

/* ---- the beginning ---- */

struct stream *
stream_new(struct loop *l, int fd, const struct stream_ops *ops, void *arg)
{
	struct stream *s;

	if (sock_prepare(fd) != 0)
		return NULL;
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->loop = l;
	s->ops = ops;
	s->arg = arg;
	s->fd = fd;
	s->state = ST_OPEN;
	s->hard = STREAM_HARD_DEFAULT;
	s->low = STREAM_LOW_DEFAULT;
	outq_init(&s->out);
	peer_from_socket(&s->peer, fd);
	if (s->peer.kind == ADDR_TCP)
		sock_tune_tcp(fd);
	if (event_assign(&s->ev, loop_base(l), fd, EV_READ | EV_PERSIST,
		read_cb, s) != 0 ||
	    event_add(&s->ev, NULL) != 0) {
		free(s);
		return NULL;
	}
	s->armed = ARMED_READ;
	return s;
}

const struct peer *
stream_peer(const struct stream *s)
{
	return &s->peer;
}
