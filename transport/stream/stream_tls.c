#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/sock.h"
#include "transport/stream/stream_internal.h"
#include "transport/tls/tls.h"

/*
 * Read of a held stream to find the peer's goodbye, a record of under a hundred
 * bytes; with more in front of it there is something to show.
 */
#define STREAM_LAST_BYTES 4096

enum tls_phase {
	TLS_NEW,         /* input is awaited; no step was taken */
	TLS_DUE,         /* nothing is watched; call brings the next step */
	TLS_WANTS_INPUT, /* a step was taken, and the next waits for input */
	TLS_WANTS_ROOM,  /* the same, for room */
	TLS_OPEN,        /* call may wait: it reads what lies in tls_conn */
};

struct stream_tls {
	struct tls_conn *conn; /* owned */
	enum tls_phase phase;
	/*
	 * TLS_OPEN only.  Records of TLS's own may need the other direction;
	 * each direction may wait by itself.
	 */
	bool input_wants_room;
	bool output_wants_input;
	struct loop_call call; /* shake_cb, or more_cb when open */
};

static bool
stream_may_read(const struct stream *s)
{
	const struct stream_tls *t = s->lower;

	return s->state == ST_OPEN && !stream_held(s) && s->rest == NULL &&
	    !t->input_wants_room;
}

static void
more_cb(void *arg)
{
	struct stream *s = arg;

	stream_turn_came(s);
	if (stream_may_read(s))
		stream_read(s);
}

/* Reads on a later turn, if tls_conn has input that the socket has not. */
static void
tls_go_on(struct stream *s)
{
	struct stream_tls *t = s->lower;

	if (loop_call_waits(&t->call) || !stream_may_read(s) ||
	    !tls_conn_has_input(t->conn))
		return;
	stream_defer_input(s, &t->call, more_cb);
}

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
say_how(const struct stream *s)
{
	const struct stream_tls *t = s->lower;
	char how[96];

	tls_conn_describe(t->conn, how, sizeof(how));
	log_debug("%s: %s", s->peer.text, how);
}

static void
tls_opened(struct stream *s)
{
	struct stream_tls *t = s->lower;

	say_how(s);
	t->phase = TLS_OPEN;
	s->last_in_ms = loop_turn_ms(s->loop);
	if (s->out.bytes > 0)
		s->last_out_ms = s->last_in_ms;
	stream_tls_name_peer(s, tls_conn_identity(t->conn));
	/* A stream that flushes goes on to do so. */
	stream_set_state(s, s->state == ST_OPENING ? ST_OPEN : s->state);
	if (s->state == ST_OPEN && s->ops->opened != NULL)
		s->ops->opened(s, s->arg);
	tls_go_on(s);
}

/* A step of the handshake; may open the stream or end it. */
static void
shake_cb(void *arg)
{
	struct stream *s = arg;
	struct stream_tls *t = s->lower;
	int r;

	if (!stream_is_connected(s))
		return;
	r = tls_conn_handshake(t->conn);
	if (r > 0) {
		tls_opened(s);
	} else if (r == 0) {
		t->phase = tls_conn_wants_write(t->conn) ? TLS_WANTS_ROOM :
		    TLS_WANTS_INPUT;
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
	struct stream_tls *t = s->lower;
	bool goes_on = t->phase != TLS_NEW;

	if (t->phase == TLS_DUE)
		return;
	t->phase = TLS_DUE;
	stream_arm_input(s);
	stream_arm_output(s);
	loop_defer_slow(s->loop, &t->call, goes_on, shake_cb, s);
}

void
stream_tls_await(struct stream *s)
{
	s->state = ST_OPENING;
	s->peer.kind = ADDR_TLS;
	s->peer.auth = PEER_NOBODY;
	s->peer.can_pass_fds = false;
	s->peer.forwarded = false;
	s->peer.uid = PEER_UID_UNKNOWN;
	s->peer.gid = PEER_UID_UNKNOWN;
	s->peer.pid = PEER_PID_UNKNOWN;
}

struct tls_identity *
stream_take_identity(struct stream *s)
{
	struct stream_tls *t = s->lower;

	return tls_conn_take_identity(t->conn);
}

/* ---- bytes ---- */

/*
 * Where the socket was interrupted TLS has called again by itself, so that all
 * errors but EAGAIN stay what they are.
 */
static void
make_error_final(void)
{
	if (errno != EAGAIN && sock_error_is_transient(errno))
		errno = EIO;
}

static ssize_t
tls_read(struct stream *s, struct iovec *iov, int niov, bool *lost)
{
	struct stream_tls *t = s->lower;
	ssize_t n = tls_conn_receive(t->conn, iov, niov);

	if (n > 0) {
		s->received += (uint64_t)n;
		s->last_in_ms = loop_turn_ms(s->loop);
	} else if (n < 0 && errno == EAGAIN && tls_conn_wants_write(t->conn)) {
		t->input_wants_room = true;
		stream_arm_input(s);
		stream_arm_output(s);
		errno = EAGAIN;
	} else if (n < 0) {
		make_error_final();
	}
	return n;
}

static ssize_t
tls_write(struct stream *s, struct iovec *iov, int niov, int fd)
{
	struct stream_tls *t = s->lower;
	ssize_t n;

	if (t->phase != TLS_OPEN) {
		errno = EAGAIN;
		return -1;
	}
	n = tls_conn_send(t->conn, iov, niov);
	if (n < 0 && errno == EAGAIN && !tls_conn_wants_write(t->conn)) {
		t->output_wants_input = true;
		stream_arm_input(s);
		errno = EAGAIN;
	} else if (n < 0) {
		make_error_final();
	}
	return n;
}

/* ---- readiness ---- */

static enum stream_armed
input_to_watch(const struct stream *s)
{
	const struct stream_tls *t = s->lower;
	enum stream_armed wanted = stream_input_wanted(s);

	if (!stream_is_connected(s))
		return ARMED_NONE;
	switch (t->phase) {
	case TLS_NEW:
	case TLS_WANTS_INPUT:
		return ARMED_READ;
	case TLS_DUE:
	case TLS_WANTS_ROOM:
		return ARMED_NONE;
	case TLS_OPEN:
		break;
	}
	if (t->output_wants_input)
		return ARMED_READ;
	return wanted == ARMED_READ && t->input_wants_room ? ARMED_NONE :
	    wanted;
}

static void
tls_arm_input(struct stream *s)
{
	stream_watch(s, input_to_watch(s));
}

static bool
tls_wants_room(const struct stream *s)
{
	const struct stream_tls *t = s->lower;

	if (t->phase != TLS_OPEN)
		return t->phase == TLS_WANTS_ROOM;
	return t->input_wants_room ||
	    (s->out.bytes > 0 && !t->output_wants_input);
}

static bool
tls_readable(struct stream *s)
{
	struct stream_tls *t = s->lower;

	if (t->phase != TLS_OPEN) {
		stream_shake(s);
		return false;
	}
	if (t->output_wants_input) {
		t->output_wants_input = false;
		stream_send_queued(s);
		stream_arm_input(s);
		stream_arm_output(s);
	}
	if (!loop_call_waits(&t->call))
		return stream_may_read(s);
	/* One read a turn: that of more_cb is due in this one. */
	if (!t->output_wants_input)
		stream_arm_turn(s);
	return false;
}

static bool
tls_writable(struct stream *s)
{
	struct stream_tls *t = s->lower;

	if (t->phase != TLS_OPEN) {
		stream_shake(s);
		return false;
	}
	if (!t->input_wants_room)
		return true;
	t->input_wants_room = false;
	if (stream_may_read(s))
		stream_read(s);
	stream_arm_input(s);
	stream_arm_output(s);
	return stream_is_connected(s);
}

static bool
tls_peer_left(struct stream *s, enum stream_end *why)
{
	uint8_t last[STREAM_LAST_BYTES];
	struct iovec iov = { last, sizeof(last) };
	bool lost = false;
	ssize_t n;

	if (!stream_held(s) || s->state != ST_OPEN ||
	    input_rest_len(&s->kept) > 0)
		return false;
	n = tls_read(s, &iov, 1, &lost);
	if (n > 0) {
		(void)!stream_keep(s, last, (size_t)n);
		return false;
	}
	*why = n == 0 ? STREAM_EOF : STREAM_RESET;
	return n == 0 || errno != EAGAIN;
}

static void
tls_hurry(struct stream *s)
{
	struct stream_tls *t = s->lower;

	if (t->phase == TLS_OPEN)
		stream_advance(s, &t->call);
}

/* ---- its life ---- */

/* The certificate names the peer, and the goodbye needs the socket: to free(). */
static void
tls_drop(struct stream *s)
{
	struct stream_tls *t = s->lower;

	loop_call_cancel(&t->call);
}

static void
tls_done(struct stream *s)
{
	struct stream_tls *t = s->lower;

	tls_conn_free(t->conn);
	close(s->fd);
	free(t);
}

static const char *
tls_detail(const struct stream *s)
{
	const struct stream_tls *t = s->lower;

	return tls_conn_error(t->conn);
}

int
stream_tls_begin(struct stream *s, struct tls_conn *tls)
{
	static const struct stream_backend over_tls = {
		.read = tls_read,
		.write = tls_write,
		.arm_input = tls_arm_input,
		.wants_room = tls_wants_room,
		.readable = tls_readable,
		.writable = tls_writable,
		.go_on = tls_go_on,
		.peer_left = tls_peer_left,
		.hurry = tls_hurry,
		.reads_once = true,
		.drop = tls_drop,
		.free = tls_done,
		.detail = tls_detail,
	};
	struct stream_tls *t = calloc(1, sizeof(*t));

	if (t == NULL || stream_watch_first(s) != 0) {
		free(t);
		return -1;
	}
	t->conn = tls;
	s->backend = &over_tls;
	s->lower = t;
	stream_tls_await(s);
	if (tls_conn_speaks_first(tls))
		stream_shake(s);
	return 0;
}
