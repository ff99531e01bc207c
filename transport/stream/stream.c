#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/loop/loop.h"
#include "transport/stream/stream_internal.h"

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

void
stream_watch(struct stream *s, enum stream_armed armed)
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

int
stream_watch_first(struct stream *s)
{
	if (event_assign(&s->ev, loop_base(s->loop), s->fd,
		EV_READ | EV_PERSIST, stream_read_cb, s) != 0 ||
	    event_add(&s->ev, NULL) != 0)
		return -1;
	s->armed = ARMED_READ;
	return 0;
}

void
stream_arm_turn(struct stream *s)
{
	/* A watched socket would be ready, for nothing, in every turn. */
	if (s->armed == ARMED_READ && loop_holds_input(s->loop))
		stream_watch(s, ARMED_TURN);
}

enum stream_armed
stream_input_wanted(const struct stream *s)
{
	if (!stream_is_live(s))
		return ARMED_NONE;
	return stream_held(s) || s->rest != NULL ? ARMED_END : ARMED_READ;
}

void
stream_arm_input(struct stream *s)
{
	s->backend->arm_input(s);
}

static bool
stream_room_wanted(const struct stream *s)
{
	if (!stream_is_connected(s))
		return false;
	return s->backend->wants_room != NULL ? s->backend->wants_room(s) :
	    s->out.bytes > 0;
}

void
stream_arm_output(struct stream *s)
{
	bool wanted = stream_room_wanted(s);

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
		stream_watch(s, ARMED_NONE);
	s->wev = event_new(loop_base(s->loop), s->fd, EV_WRITE | EV_PERSIST,
	    stream_write_cb, s);
	if (s->wev == NULL || event_add(s->wev, NULL) != 0)
		stream_end_later(s, STREAM_NO_MEMORY);
}

void
stream_set_state(struct stream *s, enum stream_state state)
{
	s->state = state;
	stream_arm_input(s);
	stream_arm_output(s);
}

/* ---- the end ---- */

static void
free_cb(void *arg)
{
	struct stream *s = arg;

	if (s->backend->free != NULL)
		s->backend->free(s);
	input_rest_free(&s->kept);
	free(s);
}

/*
 * The kept input stays until free_cb, as data() may be looking at it right now;
 * so does input that a backend has shown.
 */
void
stream_die(struct stream *s)
{
	stream_set_state(s, ST_DEAD);
	stream_leave_budgets(s);
	output_queue_done(&s->out);
	fd_queue_done(&s->fds);
	loop_timer_free(s->rest);
	s->rest = NULL;
	loop_timer_free(s->flush_timer);
	s->flush_timer = NULL;
	loop_call_cancel(&s->at_free);
	loop_call_cancel(&s->reshow_call);
	loop_call_cancel(&s->read_call);
	loop_call_cancel(&s->look_call);
	loop_call_cancel(&s->end_call);
	if (s->backend->drop != NULL)
		s->backend->drop(s);
	loop_defer(s->loop, &s->end_call, free_cb, s);
}

void
stream_end_now(struct stream *s, enum stream_end why)
{
	if (s->backend->put_off_end != NULL && s->backend->put_off_end(s, why))
		return;
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
	if (!stream_is_live(s))
		return;
	s->why = why;
	stream_set_state(s, ST_ENDING);
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
	if (s->backend->flushed != NULL)
		s->backend->flushed(s);
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
	/* The owner may free the budgets now. */
	stream_leave_budgets(s);
	stream_set_state(s, ST_FLUSHING);
	if (s->state == ST_FLUSHING && s->out.bytes == 0)
		stream_flushed(s);
	return 0;
}

/* Whether output is left, or the backend has to finish it. */
static bool
stream_has_to_flush(const struct stream *s)
{
	return s->out.bytes > 0 || s->backend->flushed != NULL;
}

void
stream_close(struct stream *s, bool flush)
{
	stream_uncork(s);
	switch (s->state) {
	case ST_OPENING:
	case ST_OPEN:
		if (flush && s->backend->flush != NULL)
			s->backend->flush(s);
		if (flush && stream_has_to_flush(s) &&
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
stream_is_over(const struct stream *s)
{
	return !stream_is_live(s);
}

void
stream_set_limits(struct stream *s, size_t hard, size_t low)
{
	s->hard = hard;
	s->low = low;
}

void
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
	if (s->backend->hurry != NULL)
		s->backend->hurry(s);
}

size_t
stream_memory(const struct stream *s)
{
	if (s->backend->memory != NULL)
		return s->backend->memory(s);
	return s->kept.cap + s->out.memory;
}

bool
stream_is_opening(const struct stream *s)
{
	return s->state == ST_OPENING;
}

const char *
stream_end_detail(const struct stream *s)
{
	return s->backend->detail != NULL ? s->backend->detail(s) : "";
}

const struct peer *
stream_peer(const struct stream *s)
{
	return &s->peer;
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
