#include "transport/stream/stream_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/tls/tls.h"

#define STREAM_HARD_DEFAULT (1024u * 1024u)
#define STREAM_LOW_DEFAULT  (64u * 1024u)
#define STREAM_FLUSH_MS     1000u

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
	case ARMED_TURN:
		break;
	case ARMED_READ:
		if (event_assign(&s->ev, loop_base(s->loop), s->fd,
			EV_READ | EV_PERSIST, stream_read_cb, s) != 0 ||
		    event_add(&s->ev, NULL) != 0) {
			stream_end_later(s, STREAM_NO_MEMORY);
			return;
		}
		break;
	case ARMED_END:
		/* Without it the end is found on resume. */
		if (event_assign(&s->ev, loop_base(s->loop), s->fd,
			EV_CLOSED | EV_ET, stream_end_watch_cb, s) != 0 ||
		    event_add(&s->ev, NULL) != 0)
			return;
		break;
	}
	s->armed = armed;
}

void
stream_arm_turn(struct stream *s)
{
	if (s->armed == ARMED_READ && !s->opening && !s->out_wants_read)
		stream_arm(s, ARMED_TURN);
}

static enum stream_armed
stream_input_wanted(const struct stream *s)
{
	if (s->state != ST_OPEN && s->state != ST_FLUSHING)
		return ARMED_NONE;
	if (s->opening)
		return s->in_wants_write || s->shake_due ? ARMED_NONE :
		    ARMED_READ;
	if (s->out_wants_read)
		return ARMED_READ;
	if (s->state != ST_OPEN)
		return ARMED_NONE;
	if (stream_held(s) || s->rest != NULL)
		return ARMED_END;
	return s->in_wants_write ? ARMED_NONE : ARMED_READ;
}

void
stream_arm_input(struct stream *s)
{
	if (s->far != NULL)
		stream_far_hold(s);
	else
		stream_arm(s, stream_input_wanted(s));
}

static bool
stream_output_wanted(const struct stream *s)
{
	if (s->state != ST_OPEN && s->state != ST_FLUSHING)
		return false;
	if (s->in_wants_write)
		return !s->shake_due;
	return s->out.bytes > 0 && !s->opening && !s->out_wants_read;
}

void
stream_arm_output(struct stream *s)
{
	bool wanted = stream_output_wanted(s);

	if (wanted == (s->wev != NULL))
		return;
	if (!wanted) {
		event_free(s->wev);
		s->wev = NULL;
		if (s->armed == ARMED_NONE)
			stream_arm_input(s);
		return;
	}
	if (s->armed == ARMED_END)
		stream_arm(s, ARMED_NONE);
	s->wev = event_new(loop_base(s->loop), s->fd, EV_WRITE | EV_PERSIST,
	    stream_write_cb, s);
	if (s->wev == NULL || event_add(s->wev, NULL) != 0)
		stream_end_later(s, STREAM_NO_MEMORY);
}

/* ---- the end ---- */

static void
free_cb(void *arg)
{
	struct stream *s = arg;

	if (s->tls != NULL) {
		tls_conn_free(s->tls);
		close(s->fd);
	}
	stream_child_free(s);
	stream_far_free(s);
	input_rest_free(&s->kept);
	free(s);
}

/*
 * The kept input stays until free_cb: data() may be looking at it right now.
 * So does TLS, whose certificate names the peer, with the socket for its
 * goodbye.
 */
void
stream_die(struct stream *s)
{
	s->state = ST_DEAD;
	stream_arm_input(s);
	stream_arm_output(s);
	stream_leave_budgets(s);
	output_queue_done(&s->out);
	fd_queue_done(&s->fds);
	loop_timer_free(s->rest);
	s->rest = NULL;
	loop_timer_free(s->flush_timer);
	s->flush_timer = NULL;
	loop_call_cancel(&s->at_free);
	loop_call_cancel(&s->tls_call);
	loop_call_cancel(&s->reshow_call);
	loop_call_cancel(&s->read_call);
	loop_call_cancel(&s->look_call);
	loop_call_cancel(&s->end_call);
	s->shake_due = false;
	if (s->far != NULL) {
		stream_far_drop(s);
	} else if (s->tls == NULL) {
		close(s->fd);
		s->fd = -1;
	}
	stream_child_drop(s);
	loop_defer(s->loop, &s->end_call, free_cb, s);
}

void
stream_end_now(struct stream *s, enum stream_end why)
{
	if (s->child != NULL && s->state != ST_LAST &&
	    (why == STREAM_EOF || why == STREAM_RESET)) {
		stream_child_end(s, why);
		return;
	}
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

void
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
	stream_arm_input(s);
	stream_arm_output(s);
	output_queue_done(&s->out);
	stream_count(s);
	loop_defer(s->loop, &s->end_call, end_cb, s);
}

static void
flush_over_cb(void *arg)
{
	stream_die(arg);
}

void
stream_flushed(struct stream *s)
{
	if (s->child != NULL)
		stream_child_flush(s);
	else
		stream_die(s);
}

static int
stream_begin_flush(struct stream *s)
{
	s->flush_timer = loop_timer_new(s->loop, flush_over_cb, s);
	if (s->flush_timer == NULL)
		return -1;
	loop_timer_set(s->flush_timer, STREAM_FLUSH_MS, 0);
	loop_at_free(s->loop, &s->at_free, flush_over_cb, s);
	s->state = ST_FLUSHING;
	/* Its owner may take them away now. */
	stream_leave_budgets(s);
	stream_arm_input(s);
	stream_arm_output(s);
	if (s->out.bytes == 0)
		stream_flushed(s);
	return 0;
}

void
stream_close(struct stream *s, bool flush)
{
	stream_uncork(s);
	switch (s->state) {
	case ST_OPEN:
		/* Its thread does it. */
		if (flush && s->far != NULL)
			stream_far_flush(s);
		/* What a child has got, it has not sent yet. */
		if (flush && (s->out.bytes > 0 || s->child != NULL) &&
		    stream_begin_flush(s) == 0)
			return;
		stream_die(s);
		return;
	case ST_ENDING:
	case ST_LAST:
		stream_die(s);
		return;
	case ST_FLUSHING:
	case ST_DEAD:
		return;
	}
}

bool
stream_may_retry(const struct stream *s, int error)
{
	/* TLS calls again by itself where the socket was interrupted. */
	return s->tls != NULL ? error == EAGAIN : sock_error_is_transient(error);
}

bool
stream_is_over(const struct stream *s)
{
	return s->state != ST_OPEN;
}

void
stream_set_limits(struct stream *s, size_t hard, size_t low)
{
	s->hard = hard;
	s->low = low;
}

/* It waits behind all others no more. */
static void
stream_advance(struct stream *s, struct loop_call *c)
{
	if (!loop_call_waits(c))
		return;
	loop_call_cancel(c);
	loop_defer(s->loop, c, c->fn, c->arg);
}

void
stream_set_urgent(struct stream *s)
{
	if (s->urgent)
		return;
	s->urgent = true;
	if (s->fd >= 0)
		loop_watch_urgent(s->loop, s->fd);
	stream_advance(s, &s->read_call);
	stream_advance(s, &s->reshow_call);
	if (s->more)
		stream_advance(s, &s->tls_call);
	if (s->far != NULL)
		stream_far_hurry(s);
}

size_t
stream_memory(const struct stream *s)
{
	if (s->far != NULL)
		return stream_far_memory(s);
	return s->kept.cap + s->out.memory;
}

/* ---- the beginning ---- */

/* Who is there, and what follows from it for the socket. */
static void
stream_meet_peer(struct stream *s, const struct stream_setup *setup)
{
	if (setup != NULL && setup->peer != NULL)
		s->peer = *setup->peer;
	else
		peer_from_socket(&s->peer, s->fd);
	if (s->peer.kind == ADDR_TCP || s->peer.kind == ADDR_TLS)
		sock_tune_tcp(s->fd);
}

struct stream *
stream_new_over(struct loop *l, int fd, const struct stream_setup *setup,
    const struct stream_ops *ops, void *arg)
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
	s->last_in_ms = loop_turn_ms(l);
	output_queue_init(&s->out);
	stream_meet_peer(s, setup);
	if (setup != NULL && setup->io != NULL) {
		if (stream_far_begin(s, setup) != 0)
			goto fail;
		return s;
	}
	if (event_assign(&s->ev, loop_base(l), fd, EV_READ | EV_PERSIST,
		stream_read_cb, s) != 0)
		goto fail;
	if (setup != NULL && setup->child != NULL &&
	    stream_child_begin(s, setup->child, setup->child_addr) != 0)
		goto fail;
	if (event_add(&s->ev, NULL) != 0)
		goto fail;

	/* Cannot fail from here on. */
	s->armed = ARMED_READ;
	if (setup != NULL && setup->tls != NULL)
		stream_tls_begin(s, setup->tls);
	return s;

fail:
	free(s->child);
	free(s);
	return NULL;
}

struct stream *
stream_new(struct loop *l, int fd, const struct stream_ops *ops, void *arg)
{
	return stream_new_over(l, fd, NULL, ops, arg);
}

bool
stream_is_opening(const struct stream *s)
{
	return s->opening;
}

const char *
stream_end_detail(const struct stream *s)
{
	if (s->far != NULL)
		return stream_far_detail(s);
	return s->tls != NULL ? tls_conn_error(s->tls) : stream_child_detail(s);
}

const struct peer *
stream_peer(const struct stream *s)
{
	return &s->peer;
}

struct tls_identity *
stream_take_identity(struct stream *s)
{
	return tls_conn_take_identity(s->tls);
}

int
stream_local_address(const struct stream *s, struct sockaddr_storage *out)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);

	if (s->fd < 0 || getsockname(s->fd, (struct sockaddr *)&sa, &len) != 0)
		return -1;
	*out = sa;
	return 0;
}

void
stream_set_forwarded(struct stream *s)
{
	static const char note[] = " (forwarded)";
	size_t len = strlen(s->peer.text);

	if (s->peer.forwarded)
		return;
	s->peer.forwarded = true;
	s->peer.can_pass_fds = false;
	fd_queue_done(&s->fds);
	if (len + sizeof(note) <= sizeof(s->peer.text))
		memcpy(s->peer.text + len, note, sizeof(note));
}
