#include <errno.h>
#include <sys/uio.h>

#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/stream/stream_internal.h"

size_t
stream_show(struct stream *s, const uint8_t *buf, size_t len)
{
	size_t n;

	s->want = 0;
	s->shown = buf;
	n = s->ops->data(s, buf, len, s->arg);
	s->shown = NULL;
	if (!stream_is_live(s))
		return STREAM_GONE;
	if (n > len)
		n = len;
	s->consumed += n;
	fd_queue_drop_until(&s->fds, s->consumed);
	return n;
}

/* Makes room for the whole unit when its size is known. */
int
stream_keep(struct stream *s, const uint8_t *data, size_t len)
{
	if (input_rest_add(&s->kept, data, len, s->want) == 0)
		stream_count(s);
	else
		stream_end_later(s, STREAM_NO_MEMORY);
	return stream_is_live(s) ? 0 : -1;
}

/*
 * Shows the kept bytes, completed from *data, as long as the owner consumes
 * some.  fresh: they hold bytes that the owner has not been shown yet.  Returns
 * true when nothing is kept any more and the rest of *data is to be shown in
 * place.
 */
static bool
stream_feed_kept(struct stream *s, const uint8_t **data, size_t *len,
    bool fresh)
{
	size_t have, take, n;

	while ((have = input_rest_len(&s->kept)) > 0) {
		take = *len;
		if (!stream_held(s)) {
			if (have < s->want && take > s->want - have)
				take = s->want - have;
			/* A whole unit: what follows it is shown in place. */
			if (fresh && have >= s->want)
				take = 0;
		}
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
		n = stream_show(s, input_rest_data(&s->kept), have);
		if (n == STREAM_GONE)
			return false;
		input_rest_drop(&s->kept, n);
		fresh = false;
	}
	input_rest_free(&s->kept);
	return true;
}

static void
stream_feed_both(struct stream *s, const uint8_t *data, size_t len, bool fresh)
{
	size_t n;

	if (!stream_feed_kept(s, &data, &len, fresh)) {
		/*
		 * After a long pause the kept rest may be small in a large
		 * block.
		 */
		if (stream_is_live(s) && !stream_held(s))
			input_rest_shrink(&s->kept, s->want);
		return;
	}
	if (len == 0)
		return;
	/* The unit before it may have paused the stream. */
	n = stream_held(s) ? 0 : stream_show(s, data, len);
	if (n != STREAM_GONE && n < len)
		(void)!stream_keep(s, data + n, len - n);
}

static void
stream_feed(struct stream *s, const uint8_t *data, size_t len, bool fresh)
{
	stream_cork(s);
	stream_feed_both(s, data, len, fresh);
	stream_uncork(s);
}

/*
 * Reads once and shows the input.  most: bytes beyond the unit that is begun;
 * 0 only where there is such a unit.
 */
static void
read_once(struct stream *s, size_t most)
{
	uint8_t *scratch = loop_scratch(s->loop);
	struct iovec iov[2];
	size_t have = input_rest_len(&s->kept), to_kept = 0;
	bool lost = false;
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
	if (most > 0) {
		iov[niov].iov_base = scratch;
		iov[niov++].iov_len = most;
	}
	n = s->backend->read(s, iov, niov, &lost);
	if (n < 0) {
		if (!sock_error_is_transient(errno))
			stream_end_now(s, STREAM_RESET);
		return;
	}
	if (lost) {
		stream_end_now(s, STREAM_NO_MEMORY);
		return;
	}
	if (n == 0) {
		stream_end_now(s, STREAM_EOF);
		return;
	}
	if (!s->urgent)
		loop_count_read(s->loop, (size_t)n);
	if (to_kept > (size_t)n)
		to_kept = (size_t)n;
	s->kept.end += to_kept;
	stream_feed(s, scratch, (size_t)n - to_kept, to_kept > 0);
	stream_count(s);
	if (s->budgets[0] != NULL || s->budgets[1] != NULL)
		stream_spend(s, (size_t)n, s->last_in_ms);
	stream_moved(s);
	stream_go_on(s);
}

/*
 * Whether to read the rest of a unit that this turn has begun.  Where other
 * streams wait for their turn, each would keep the beginning of a unit until
 * its own next turn: much memory for nothing, as the kernel mostly has the
 * rest.
 */
static bool
is_to_finish(const struct stream *s, uint64_t from, size_t most)
{
	size_t have = input_rest_len(&s->kept);

	if (s->backend->reads_once || !stream_is_live(s) || stream_held(s) ||
	    s->rest != NULL || have == 0 || have >= s->want)
		return false;
	/* In total at most a unit that was begun, and the bytes behind it. */
	return loop_input_waits(s->loop) &&
	    s->received - from + s->want - have <= most + LOOP_SCRATCH_BYTES;
}

void
stream_read(struct stream *s)
{
	size_t most = s->urgent ? LOOP_SCRATCH_BYTES :
	    loop_read_bytes(s->loop);
	uint64_t from = s->received;

	read_once(s, most);
	if (is_to_finish(s, from, most))
		read_once(s, 0);
}

static bool
is_to_read(struct stream *s)
{
	return s->backend->readable == NULL || s->backend->readable(s);
}

static void
read_turn_cb(void *arg)
{
	struct stream *s = arg;

	stream_turn_came(s);
	/* The stream may be paused or over meanwhile. */
	if (s->armed == ARMED_READ && is_to_read(s))
		stream_read(s);
}

void
stream_turn_came(struct stream *s)
{
	if (s->armed == ARMED_TURN)
		stream_arm_input(s);
}

void
stream_defer_input(struct stream *s, struct loop_call *c, loop_fn fn)
{
	if (s->urgent && loop_may_read(s->loop, true))
		loop_defer(s->loop, c, fn, s);
	else
		loop_defer_read(s->loop, c, fn, s);
}

/* One read an event, so that a busy peer does not starve other streams. */
void
stream_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	/* One read a turn, and that of read_turn_cb() may be due. */
	if (!loop_call_waits(&s->read_call)) {
		if (!is_to_read(s))
			return;
		if (loop_may_read(s->loop, s->urgent)) {
			stream_read(s);
			return;
		}
		loop_defer_read(s->loop, &s->read_call, read_turn_cb, s);
	}
	stream_arm_turn(s);
}

static void
end_if_peer_left(struct stream *s)
{
	enum stream_end why;

	if (s->backend->peer_left(s, &why))
		stream_end_now(s, why);
}

void
stream_end_watch_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	s->armed = ARMED_NONE; /* the event was for one time */
	end_if_peer_left(s);
}

static void
look_cb(void *arg)
{
	struct stream *s = arg;

	if (stream_is_live(s))
		end_if_peer_left(s);
}

void
stream_look_later(struct stream *s)
{
	loop_defer(s->loop, &s->look_call, look_cb, s);
}

static void
reshow_cb(void *arg)
{
	struct stream *s = arg;

	if (!stream_is_live(s) || s->flow != FLOW_RESUMED)
		return;
	s->flow = FLOW_ON;
	stream_feed(s, NULL, 0, true);
	stream_count(s);
	stream_moved(s);
	stream_go_on(s);
	stream_arm_input(s);
}

int
stream_take_fd_of(struct stream *s, const uint8_t *unit, size_t len)
{
	uint64_t start;

	if (s->shown == NULL)
		return -1;
	start = s->consumed + (uint64_t)(unit - s->shown);
	return fd_queue_take_of(&s->fds, start, start + len);
}

void
stream_want(struct stream *s, size_t total)
{
	s->want = total;
}

void
stream_pause(struct stream *s)
{
	s->flow = FLOW_PAUSED;
	if (stream_is_live(s))
		stream_arm_input(s);
}

void
stream_resume(struct stream *s)
{
	if (s->flow != FLOW_PAUSED)
		return;
	s->flow = FLOW_RESUMED;
	/* A call that waits since an earlier resume keeps its place. */
	if (stream_is_live(s) && !loop_call_waits(&s->reshow_call))
		stream_defer_input(s, &s->reshow_call, reshow_cb);
}
