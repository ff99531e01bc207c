/* session: sessions of a service (<tributary/session.h>). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/session.h>
#include <unistd.h>

#include "client/tracing/session/session_config.h"
#include "client/tracing/session/session_wire.h"
#include "protos/fields.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

/* The service's own time-out ends before ours. */
#define ANSWER_MS 10000u
/* Packets are written to a file in pieces of this size at least. */
#define WRITE_BYTES (256u * 1024u)

struct tributary_session {
	struct session_wire wire;
	char why[400];

	bool runs;    /* or waits for its start */
	bool started; /* all data sources have */
	bool ended;   /* and has an error, or not: */
	char error[300];

	/* The call that is waited for. */
	bool answered;
	bool ok;
	char refusal[300]; /* of a clone or reading; "": none */

	tributary_packet_fn packet; /* NULL: no more are wanted */
	void *packet_arg;
	tributary_message_fn message;
	void *message_arg;
};

static bool
fail(struct tributary_session *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	return false;
}

/* ---- What the consumer tells ---- */

static void
connected_cb(void *arg)
{
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct tributary_session *s = arg;

	/* No memory for a call: it will not be answered. */
	session_wire_leave(&s->wire, why);
}

static void
tracing_disabled_cb(void *arg, const char *error)
{
	struct tributary_session *s = arg;

	s->ended = true;
	s->runs = false;
	snprintf(s->error, sizeof(s->error), "%s", error != NULL ? error : "");
}

static void
observed_cb(void *arg, const uint8_t *events, size_t len)
{
	struct tributary_session *s = arg;

	s->started |= session_config_has_started(events, len);
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct tributary_session *s = arg;

	if (s->packet != NULL && !s->packet(data, len, s->packet_arg))
		s->packet = NULL;
}

static void
answer(struct tributary_session *s, bool ok, const char *refusal)
{
	s->answered = true;
	s->ok = ok;
	snprintf(s->refusal, sizeof(s->refusal), "%s",
	    refusal != NULL ? refusal : "");
}

static void
read_done_cb(void *arg, const char *error)
{
	answer(arg, error == NULL, error);
}

static void
done_cb(void *arg, bool ok)
{
	answer(arg, ok, NULL);
}

static void
message_cb(void *arg, const uint8_t *data, size_t len)
{
	struct tributary_session *s = arg;

	if (data != NULL && s->message != NULL)
		s->message(data, len, s->message_arg);
	answer(s, data != NULL, NULL);
}

static void
cloned_cb(void *arg, const struct consumer_cloned *r)
{
	answer(arg, r->error == NULL, r->error);
}

static const struct consumer_ops ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.tracing_disabled = tracing_disabled_cb,
	.packet = packet_cb,
	.read_done = read_done_cb,
	.observed = observed_cb,
};

/* ---- Waiting ---- */

/* false: the connection is lost, and why says so. */
static bool
is_connected(struct tributary_session *s)
{
	return s->wire.down[0] == '\0' || fail(s, s->wire.down);
}

/*
 * Waits for the answer to the last call; a service that does not give one is
 * left, as a later answer could be to anything.  refused: a sentence for an
 * answer that says no and not why.
 */
static bool
wait_for_answer(struct tributary_session *s, unsigned timeout_ms,
    const char *refused)
{
	while (!s->answered && session_wire_turn(&s->wire,
	    session_wire_now() + timeout_ms))
		;
	if (!s->answered)
		session_wire_leave(&s->wire,
		    "the service did not answer in time");
	if (!s->answered)
		return is_connected(s);
	if (!s->ok)
		return fail(s, s->refusal[0] != '\0' ? s->refusal : refused);
	return true;
}

/* Before a call that is answered. */
static bool
prepare(struct tributary_session *s)
{
	s->answered = s->ok = false;
	s->refusal[0] = '\0';
	return is_connected(s);
}

static bool
wait_until_ended(struct tributary_session *s, unsigned timeout_ms)
{
	uint64_t until_ms = session_wire_now() + timeout_ms;

	while (!s->ended && session_wire_turn(&s->wire, until_ms))
		;
	if (!s->ended)
		return is_connected(s) &&
		    fail(s, "the session has not ended in time");
	return s->error[0] == '\0' || fail(s, s->error);
}

static bool
wait_until_started(struct tributary_session *s, unsigned timeout_ms)
{
	uint64_t until_ms = session_wire_now() + timeout_ms;

	while (!s->started && !s->ended &&
	    session_wire_turn(&s->wire, until_ms))
		;
	if (s->started)
		return true;
	if (s->ended && s->error[0] != '\0')
		return fail(s, s->error);
	if (s->ended)
		return true; /* short: started and over */
	return is_connected(s) &&
	    fail(s, "not all data sources have started in time");
}

/* ---- Life ---- */

struct tributary_session *
tributary_session_connect(const char *address, unsigned timeout_ms, char *why,
    size_t why_len)
{
	struct tributary_session *s;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		snprintf(why, why_len, "out of memory");
		return NULL;
	}
	if (session_wire_connect(&s->wire, address != NULL ? address :
	    addr_default_consumer(), timeout_ms, &ops, s))
		return s;
	snprintf(why, why_len, "%s", s->wire.down);
	tributary_session_free(s);
	return NULL;
}

void
tributary_session_free(struct tributary_session *s)
{
	if (s == NULL)
		return;
	session_wire_done(&s->wire);
	free(s);
}

const char *
tributary_session_why(const struct tributary_session *s)
{
	return s->why;
}

/* ---- The recording ---- */

bool
tributary_session_start(struct tributary_session *s, const void *config,
    size_t len, int fd, unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	if (s->runs)
		return fail(s, "the connection has a session already");
	if (fd >= 0 && !consumer_can_pass_fds(s->wire.consumer))
		return fail(s, "a file can be handed to the service through a "
		    "UNIX socket only");
	if (s->ended)
		consumer_free_buffers(s->wire.consumer, NULL, NULL);
	s->runs = true;
	s->started = s->ended = false;
	consumer_observe_events(s->wire.consumer,
	    ObservableEvents_TYPE_ALL_DATA_SOURCES_STARTED);
	/* A request with a descriptor finds nothing queued before it. */
	if (!port_wire_send(&s->wire.port)) {
		session_wire_leave(&s->wire, "the connection to the service "
		    "broke");
		return is_connected(s);
	}
	consumer_enable_tracing(s->wire.consumer, config, len, fd);
	if (!session_config_waits(config, len))
		return wait_until_started(s, timeout_ms);
	/* The refusal of a config comes before this answer. */
	s->message = NULL;
	consumer_get_trace_stats(s->wire.consumer, message_cb, s);
	(void)wait_for_answer(s, timeout_ms, "");
	if (s->ended && s->error[0] != '\0')
		return fail(s, s->error);
	return is_connected(s);
}

bool
tributary_session_start_simple(struct tributary_session *s,
    const struct tributary_session_options *options, unsigned timeout_ms)
{
	struct pb_writer w;
	bool ok;

	pb_writer_init(&w);
	session_config_put(&w, options);
	ok = w.failed ? fail(s, "out of memory") :
	    tributary_session_start(s, w.data, w.len, -1, timeout_ms);
	pb_writer_done(&w);
	return ok;
}

bool
tributary_session_begin(struct tributary_session *s, unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	consumer_start_tracing(s->wire.consumer, done_cb, s);
	return wait_for_answer(s, ANSWER_MS, "the service refused to start the "
	    "session") && wait_until_started(s, timeout_ms);
}

bool
tributary_session_flush(struct tributary_session *s, unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	consumer_flush(s->wire.consumer, timeout_ms, 0, done_cb, s);
	return wait_for_answer(s, timeout_ms + ANSWER_MS, "not all data sources "
	    "handed over their newest data in time");
}

bool
tributary_session_stop(struct tributary_session *s, unsigned timeout_ms)
{
	if (!is_connected(s))
		return false;
	if (!s->runs && !s->ended)
		return fail(s, "there is no session");
	if (s->runs)
		consumer_disable_tracing(s->wire.consumer, NULL, NULL);
	return wait_until_ended(s, timeout_ms);
}

bool
tributary_session_wait(struct tributary_session *s, unsigned timeout_ms)
{
	if (!s->runs && !s->ended)
		return is_connected(s) && fail(s, "there is no session");
	return wait_until_ended(s, timeout_ms);
}

static bool
clone(struct tributary_session *s, const struct consumer_clone *which,
    unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	consumer_clone_session(s->wire.consumer, which, cloned_cb, s);
	return wait_for_answer(s, timeout_ms, "the service refused to clone "
	    "the session");
}

bool
tributary_session_clone(struct tributary_session *s, uint64_t id,
    unsigned timeout_ms)
{
	return clone(s, &(struct consumer_clone){ .session_id = id, .fd = -1 },
	    timeout_ms);
}

bool
tributary_session_clone_named(struct tributary_session *s, const char *name,
    unsigned timeout_ms)
{
	return clone(s, &(struct consumer_clone){ .name = name, .fd = -1 },
	    timeout_ms);
}

bool
tributary_session_detach(struct tributary_session *s, const char *key,
    unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	consumer_detach(s->wire.consumer, key, done_cb, s);
	if (!wait_for_answer(s, timeout_ms, "the service did not detach the "
	    "session"))
		return false;
	s->runs = s->ended = false;
	return true;
}

bool
tributary_session_attach(struct tributary_session *s, const char *key,
    unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	s->message = NULL;
	consumer_attach(s->wire.consumer, key, message_cb, s);
	if (!wait_for_answer(s, timeout_ms, "no session is detached under this "
	    "key"))
		return false;
	s->runs = s->started = true;
	s->ended = false;
	consumer_watch_tracing(s->wire.consumer);
	return true;
}

/* ---- Reading ---- */

bool
tributary_session_read(struct tributary_session *s, tributary_packet_fn packet,
    void *arg, unsigned timeout_ms)
{
	bool ok;

	if (!prepare(s))
		return false;
	s->packet = packet;
	s->packet_arg = arg;
	consumer_read_buffers(s->wire.consumer);
	ok = wait_for_answer(s, timeout_ms, "the service refused to hand out "
	    "the trace");
	if (ok && s->packet == NULL)
		ok = fail(s, "the reading was ended");
	s->packet = NULL;
	return ok;
}

/* Packets on their way to a file. */
struct file {
	int fd;
	int error; /* errno; 0: none */
	struct pb_writer w;
};

static bool
write_out(struct file *f)
{
	size_t done = 0;
	ssize_t n;

	while (done < f->w.len && f->error == 0) {
		n = write(f->fd, f->w.data + done, f->w.len - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			f->error = errno;
	}
	pb_writer_reset(&f->w);
	return f->error == 0;
}

static bool
add_packet(const void *data, size_t len, void *arg)
{
	struct file *f = arg;

	pb_put_bytes(&f->w, Trace_packet, data, len);
	if (f->w.failed) {
		f->error = ENOMEM;
		return false;
	}
	return f->w.len < WRITE_BYTES || write_out(f);
}

bool
tributary_session_write(struct tributary_session *s, int fd,
    unsigned timeout_ms)
{
	struct file f = { .fd = fd };
	bool ok;

	pb_writer_init(&f.w);
	ok = tributary_session_read(s, add_packet, &f, timeout_ms);
	/* Packets of a trace that was cut short are kept. */
	if (f.error == 0)
		(void)write_out(&f);
	pb_writer_done(&f.w);
	return f.error == 0 ? ok : fail(s, strerror(f.error));
}

/* ---- Questions ---- */

bool
tributary_session_query(struct tributary_session *s,
    tributary_message_fn message, void *arg, unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	s->message = message;
	s->message_arg = arg;
	consumer_query_service_state(s->wire.consumer, false, message_cb, s);
	return wait_for_answer(s, timeout_ms, "the service does not tell its "
	    "state");
}

bool
tributary_session_stats(struct tributary_session *s,
    tributary_message_fn message, void *arg, unsigned timeout_ms)
{
	if (!prepare(s))
		return false;
	s->message = message;
	s->message_arg = arg;
	consumer_get_trace_stats(s->wire.consumer, message_cb, s);
	return wait_for_answer(s, timeout_ms, "the service has no statistics of "
	    "this session");
}
