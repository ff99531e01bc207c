#include "transport/stream/stream_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/tls/tls.h"

/*
 * What is read of a peer that left a held stream: its goodbye is a record of
 * under a hundred bytes; with more in front of it there is something to show.
 */
#define STREAM_LAST_BYTES 4096

/* ---- the handshake ---- */

void
stream_tls_name_peer(struct stream *s, const struct tls_identity *id)
{
	char where[sizeof(s->peer.text)];
	size_t room, n;

	s->peer.auth = PEER_CERT;
	s->peer.cert = id;
	memcpy(where, s->peer.text, sizeof(where));
	room = sizeof(s->peer.text) - strlen(where);
	if (room <= sizeof(" at ") + 4)
		return; /* an address of that length is enough */
	log_escape(s->peer.text, room - strlen(" at "), id->name,
	    strlen(id->name));
	n = strlen(s->peer.text);
	snprintf(s->peer.text + n, sizeof(s->peer.text) - n, " at %s", where);
}

static void
stream_opened(struct stream *s)
{
	s->opening = false;
	s->in_wants_write = false;
	s->last_in_ms = loop_turn_ms(s->loop);
	if (s->out.bytes > 0)
		s->last_out_ms = s->last_in_ms;
	stream_tls_name_peer(s, tls_conn_identity(s->tls));
	if (s->state == ST_OPEN && s->ops->opened != NULL)
		s->ops->opened(s, s->arg);
	stream_arm_input(s);
	stream_arm_output(s);
	stream_tls_come_back(s);
}

static void
say_how(const struct stream *s)
{
	char how[96];

	tls_conn_describe(s->tls, how, sizeof(how));
	log_debug("%s: %s", s->peer.text, how);
}

/* A step of the handshake; may open the stream or end it. */
static void
shake_cb(void *arg)
{
	struct stream *s = arg;
	int r;

	s->shake_due = false;
	s->shake_began = true;
	if (s->state != ST_OPEN && s->state != ST_FLUSHING)
		return;
	r = tls_conn_handshake(s->tls);
	if (r > 0) {
		say_how(s);
		stream_opened(s);
	} else if (r == 0) {
		s->in_wants_write = tls_conn_wants_write(s->tls);
		stream_arm_input(s);
		stream_arm_output(s);
	} else if (s->state == ST_FLUSHING) {
		stream_die(s);
	} else {
		stream_end_now(s, STREAM_REFUSED);
	}
}

/*
 * When its turn comes.  Meanwhile its socket is not watched: a thousand that
 * are ready would be looked at in every turn, for nothing.
 */
static void
stream_shake(struct stream *s)
{
	if (s->shake_due)
		return;
	s->shake_due = true;
	stream_arm_input(s);
	stream_arm_output(s);
	loop_defer_slow(s->loop, &s->tls_call, s->shake_began, shake_cb, s);
}

void
stream_tls_await(struct stream *s)
{
	s->opening = true;
	s->peer.kind = ADDR_TLS;
	s->peer.auth = PEER_NOBODY;
	s->peer.can_pass_fds = false;
	s->peer.forwarded = false;
	s->peer.uid = PEER_UID_UNKNOWN;
	s->peer.gid = PEER_UID_UNKNOWN;
	s->peer.pid = PEER_PID_UNKNOWN;
}

void
stream_tls_begin(struct stream *s, struct tls_conn *tls)
{
	s->tls = tls;
	stream_tls_await(s);
	if (tls_conn_speaks_first(tls))
		stream_shake(s);
}

/* ---- input ---- */

ssize_t
stream_tls_receive(struct stream *s, struct iovec *iov, int niov)
{
	ssize_t n = tls_conn_receive(s->tls, iov, niov);

	if (n > 0) {
		s->received += (uint64_t)n;
		s->last_in_ms = loop_turn_ms(s->loop);
	} else if (n < 0 && errno == EAGAIN && tls_conn_wants_write(s->tls)) {
		s->in_wants_write = true;
		stream_arm_input(s);
		stream_arm_output(s);
		errno = EAGAIN;
	}
	return n;
}

static bool
stream_may_read(const struct stream *s)
{
	return s->state == ST_OPEN && !s->opening && !stream_held(s) &&
	    s->rest == NULL && !s->in_wants_write;
}

static void
more_cb(void *arg)
{
	struct stream *s = arg;

	s->more = false;
	stream_turn_came(s);
	if (stream_may_read(s))
		stream_read(s);
}

void
stream_tls_come_back(struct stream *s)
{
	if (s->more || !stream_may_read(s) || !tls_conn_has_input(s->tls))
		return;
	s->more = true;
	stream_defer_input(s, &s->tls_call, more_cb);
}

bool
stream_tls_is_readable(struct stream *s)
{
	if (s->opening) {
		stream_shake(s);
		return false;
	}
	if (s->out_wants_read) {
		s->out_wants_read = false;
		stream_send_queued(s);
		stream_arm_input(s);
		stream_arm_output(s);
	}
	/* One read a turn: that of more_cb is due in this one. */
	return stream_may_read(s) && !s->more;
}

bool
stream_tls_peer_left(struct stream *s, enum stream_end *why)
{
	uint8_t last[STREAM_LAST_BYTES];
	struct iovec iov = { last, sizeof(last) };
	ssize_t n;

	if (!stream_held(s) || s->opening || input_rest_len(&s->kept) > 0)
		return false;
	n = stream_tls_receive(s, &iov, 1);
	if (n > 0) {
		(void)!stream_keep(s, last, (size_t)n);
		return false;
	}
	*why = n == 0 ? STREAM_EOF : STREAM_RESET;
	return n == 0 || !stream_may_retry(s, errno);
}

static void
look_cb(void *arg)
{
	struct stream *s = arg;
	enum stream_end why;

	if (s->state == ST_OPEN && stream_tls_peer_left(s, &why))
		stream_end_now(s, why);
}

void
stream_tls_look_later(struct stream *s)
{
	loop_defer(s->loop, &s->look_call, look_cb, s);
}

/* ---- output ---- */

ssize_t
stream_tls_send(struct stream *s, struct iovec *iov, int niov)
{
	ssize_t n = tls_conn_send(s->tls, iov, niov);

	if (n < 0 && errno == EAGAIN && !tls_conn_wants_write(s->tls)) {
		s->out_wants_read = true;
		stream_arm_input(s);
		errno = EAGAIN;
	}
	return n;
}

bool
stream_tls_is_writable(struct stream *s)
{
	if (s->opening) {
		stream_shake(s);
		return false;
	}
	if (!s->in_wants_write)
		return true;
	s->in_wants_write = false;
	if (stream_may_read(s))
		stream_read(s);
	stream_arm_input(s);
	stream_arm_output(s);
	return s->state == ST_OPEN || s->state == ST_FLUSHING;
}
