#include "client/library/control.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "protos/control.pb-c.h"
#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

enum call_kind {
	CALL_MACHINES,
	CALL_SESSIONS,
	CALL_PRODUCERS,
	CALL_RECORDINGS,
	CALL_METRICS,
	CALL_DRAIN,
	CALL_COMMAND,
};

static const struct {
	const ProtobufCMessageDescriptor *reply;
	const char *refusal;
} kinds[] = {
	[CALL_MACHINES] = { &tributary__query_machines_reply__descriptor,
		"the collector does not say which machines it knows" },
	[CALL_SESSIONS] = { &tributary__query_sessions_reply__descriptor,
		"the collector does not say which sessions it has" },
	[CALL_PRODUCERS] = { &tributary__query_producers_reply__descriptor,
		"the collector does not say which producers it has" },
	[CALL_RECORDINGS] = { &tributary__query_recordings_reply__descriptor,
		"the collector does not say which recordings it has" },
	[CALL_METRICS] = { &tributary__query_metrics_reply__descriptor,
		"the collector does not say how it fares" },
	[CALL_DRAIN] = { &tributary__drain_reply__descriptor,
		"the collector cannot be drained" },
	[CALL_COMMAND] = { &tributary__session_command_reply__descriptor,
		"the collector does not take this command" },
};

/* A question or command that is not answered yet. */
struct control_call {
	TAILQ_ENTRY(control_call) link;
	struct control *c; /* back-pointer */
	enum call_kind kind;
	const char *method;
	union {
		control_machines_fn machines;
		control_sessions_fn sessions;
		control_producers_fn producers;
		control_recordings_fn recordings;
		control_metrics_fn metrics;
		control_drain_fn drain;
		control_done_fn done;
	} fn;
	void *arg;
	uint32_t *segment; /* a command's; NULL: not wanted */
	struct pb_writer args;
	struct pb_writer answer; /* reply so far: its parts, concatenated */
	bool sent;
	bool too_long;           /* the rest of the reply is dropped */
	const char *failure;     /* to be told by fail_cb(); static */
	struct loop_call fail_call;
};

/* Only forward. */
enum control_state {
	CONTROL_CONNECTING,
	CONTROL_READY,  /* calls are sent */
	CONTROL_DOWN,   /* there is no connection any more: why_down */
	CONTROL_CLOSED, /* the owner is gone; freed when busy is 0 */
};

/*
 * While busy is not 0 a callback of ours is on the stack, and control_free()
 * only marks the control closed; the outermost leave() frees it.
 */
struct control {
	struct loop *loop;
	struct rpc_client *rpc; /* owned */
	TAILQ_HEAD(, control_call) calls;
	enum control_state state;
	bool asking;  /* a question is under way */
	bool foreign; /* control_is_foreign() */
	char why_down[320];
	unsigned busy;
	struct loop_call send_call;
};

static void
call_free(struct control_call *k)
{
	TAILQ_REMOVE(&k->c->calls, k, link);
	pb_writer_done(&k->args);
	pb_writer_done(&k->answer);
	free(k);
}

static void
really_free(struct control *c)
{
	struct control_call *k;

	loop_cancel(c->loop, c);
	rpc_client_free(c->rpc);
	while ((k = TAILQ_FIRST(&c->calls)) != NULL) {
		loop_cancel(c->loop, k);
		call_free(k);
	}
	free(c);
}

static void
set_state(struct control *c, enum control_state to)
{
	assert(to > c->state);
	c->state = to;
}

/* False: c was freed. */
static bool
leave(struct control *c)
{
	if (--c->busy > 0 || c->state != CONTROL_CLOSED)
		return c->state != CONTROL_CLOSED;
	really_free(c);
	return false;
}

/* ---- answers ---- */

static void
call_fn(const struct control_call *k, const ProtobufCMessage *m,
    const char *why)
{
	switch (k->kind) {
	case CALL_MACHINES:
		k->fn.machines(k->arg,
		    (const Tributary__QueryMachinesReply *)m, why);
		break;
	case CALL_SESSIONS:
		k->fn.sessions(k->arg,
		    (const Tributary__QuerySessionsReply *)m, why);
		break;
	case CALL_PRODUCERS:
		k->fn.producers(k->arg,
		    (const Tributary__QueryProducersReply *)m, why);
		break;
	case CALL_RECORDINGS:
		k->fn.recordings(k->arg,
		    (const Tributary__QueryRecordingsReply *)m, why);
		break;
	case CALL_METRICS:
		k->fn.metrics(k->arg,
		    (const Tributary__QueryMetricsReply *)m, why);
		break;
	case CALL_DRAIN:
		k->fn.drain(k->arg, (const Tributary__DrainReply *)m, why);
		break;
	case CALL_COMMAND:
		if (m != NULL && k->segment != NULL)
			*k->segment = ((const Tributary__SessionCommandReply *)
			    m)->segment;
		k->fn.done(k->arg, m == NULL ? why :
		    ((const Tributary__SessionCommandReply *)m)->error);
		break;
	}
}

static void send_waiting(struct control *c);

/*
 * Ends a call: tells its owner the decoded answer, or why there is none.
 * False: the control was freed.
 */
static bool
give(struct control_call *k, const char *why)
{
	struct control *c = k->c;
	ProtobufCMessage *m = NULL;

	c->busy++;
	if (k->sent && k->kind != CALL_COMMAND)
		c->asking = false;
	if (why == NULL && c->state != CONTROL_CLOSED) {
		m = protobuf_c_message_unpack(kinds[k->kind].reply, NULL,
		    k->answer.len, k->answer.data);
		if (m == NULL)
			why = "the collector's answer makes no sense";
	}
	if (c->state != CONTROL_CLOSED)
		call_fn(k, m, why);
	if (m != NULL)
		protobuf_c_message_free_unpacked(m, NULL);
	call_free(k);
	if (!leave(c))
		return false;
	send_waiting(c);
	return true;
}

static void
fail_cb(void *arg)
{
	struct control_call *k = arg;

	(void)give(k, k->failure);
}

/*
 * Fails the call on a later turn: where the connection ended, down_cb() comes
 * first and gives its better reason.
 */
static void
fail_later(struct control_call *k, const char *why)
{
	if (k->failure != NULL)
		return;
	k->failure = why;
	loop_defer(k->c->loop, &k->fail_call, fail_cb, k);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct control_call *k = arg;

	if (fd >= 0)
		close(fd);
	if (k->failure != NULL)
		return;
	if (!ok) {
		fail_later(k, kinds[k->kind].refusal);
		return;
	}
	if (k->answer.len + len > CONTROL_MAX_ANSWER)
		k->too_long = true;
	if (!k->too_long)
		pb_put_raw(&k->answer, msg, len);
	if (more)
		return;
	if (k->too_long || k->answer.failed)
		fail_later(k, "the collector's answer is too long");
	else
		(void)give(k, NULL);
}

/* ---- the connection ---- */

static void
send_call(struct control *c, struct control_call *k)
{
	k->sent = true;
	if (!rpc_client_offers(c->rpc, k->method)) {
		c->foreign = true;
		fail_later(k, "the collector is older than this command: it "
		    "does not know this request");
		return;
	}
	if (k->kind != CALL_COMMAND)
		c->asking = true;
	rpc_invoke(c->rpc, k->method, k->args.data, k->args.len, reply_cb, k);
}

static void
send_waiting(struct control *c)
{
	struct control_call *k, *next;

	if (c->state != CONTROL_READY)
		return;
	for (k = TAILQ_FIRST(&c->calls); k != NULL; k = next) {
		next = TAILQ_NEXT(k, link);
		if (!k->sent && (k->kind == CALL_COMMAND || !c->asking))
			send_call(c, k);
	}
}

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct control *c = arg;

	set_state(c, CONTROL_READY);
	send_waiting(c);
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	struct control *c = arg;
	struct control_call *k;

	c->foreign = c->foreign || rpc_client_service_unknown(rpc);
	set_state(c, CONTROL_DOWN);
	snprintf(c->why_down, sizeof(c->why_down), "%s", text);
	c->busy++;
	while ((k = TAILQ_FIRST(&c->calls)) != NULL &&
	    c->state != CONTROL_CLOSED) {
		loop_cancel(c->loop, k);
		(void)give(k, text);
	}
	(void)leave(c);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

struct control *
control_new(struct loop *l, const struct addr *a,
    const struct dial_options *how, char *err, size_t err_size)
{
	struct control *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->loop = l;
	TAILQ_INIT(&c->calls);
	c->rpc = rpc_client_new(l, &(struct rpc_client_setup){ .addr = a,
	    .how = how, .service = "TributaryControl", .ops = &rpc_ops,
	    .arg = c }, err, err_size);
	if (c->rpc == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	set_state(c, CONTROL_CLOSED);
	if (c->busy == 0)
		really_free(c);
}

bool
control_is_foreign(const struct control *c)
{
	return c->foreign;
}

/* ---- questions and commands ---- */

static void
send_cb(void *arg)
{
	send_waiting(arg);
}

/* Queues the call; its answer comes from the loop, never from inside. */
static void
ask(struct control_call *k)
{
	struct control *c = k->c;

	TAILQ_INSERT_TAIL(&c->calls, k, link);
	if (k->args.failed)
		fail_later(k, "out of memory");
	else if (c->state == CONTROL_DOWN)
		fail_later(k, c->why_down);
	else
		loop_defer(c->loop, &c->send_call, send_cb, c);
}

/*
 * Lack of memory ends the process: a command serves one person, who is told.
 */
static struct control_call *
call_new(struct control *c, enum call_kind kind, const char *method, void *arg)
{
	struct control_call *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		log_error("out of memory");
		exit(1);
	}
	k->c = c;
	k->kind = kind;
	k->method = method;
	k->arg = arg;
	pb_writer_init(&k->args);
	pb_writer_init(&k->answer);
	return k;
}

void
control_query_machines(struct control *c, control_machines_fn fn, void *arg)
{
	struct control_call *k = call_new(c, CALL_MACHINES, "QueryMachines",
	    arg);

	k->fn.machines = fn;
	ask(k);
}

void
control_query_producers(struct control *c, control_producers_fn fn, void *arg)
{
	struct control_call *k = call_new(c, CALL_PRODUCERS, "QueryProducers",
	    arg);

	k->fn.producers = fn;
	ask(k);
}

void
control_query_recordings(struct control *c, control_recordings_fn fn,
    void *arg)
{
	struct control_call *k = call_new(c, CALL_RECORDINGS,
	    "QueryRecordings", arg);

	k->fn.recordings = fn;
	ask(k);
}

void
control_query_metrics(struct control *c, control_metrics_fn fn, void *arg)
{
	struct control_call *k = call_new(c, CALL_METRICS, "QueryMetrics", arg);

	k->fn.metrics = fn;
	ask(k);
}

void
control_drain(struct control *c, const struct control_drain_order *o,
    control_drain_fn fn, void *arg)
{
	struct control_call *k = call_new(c, CALL_DRAIN, "Drain", arg);

	k->fn.drain = fn;
	if (o != NULL) {
		pb_put_uint(&k->args, DrainRequest_drain, o->drain);
		pb_put_uint(&k->args, DrainRequest_after_ms, o->after_ms);
	}
	ask(k);
}

void
control_query_sessions(struct control *c, const struct control_sessions *which,
    control_sessions_fn fn, void *arg)
{
	struct control_call *k = call_new(c, CALL_SESSIONS, "QuerySessions",
	    arg);

	k->fn.sessions = fn;
	if (which->id != 0)
		pb_put_uint(&k->args, QuerySessionsRequest_id, which->id);
	if (which->name != NULL)
		pb_put_string(&k->args,
		    QuerySessionsRequest_unique_session_name, which->name);
	if (which->with_stats)
		pb_put_uint(&k->args, QuerySessionsRequest_with_stats, 1);
	ask(k);
}

void
control_command(struct control *c, const struct control_order *o,
    control_done_fn fn, void *arg)
{
	static const char *const methods[] = {
		[CONTROL_START] = "StartSession",
		[CONTROL_FLUSH] = "FlushSession",
		[CONTROL_STOP] = "StopSession",
		[CONTROL_CUT] = "CutSession",
	};
	struct control_call *k = call_new(c, CALL_COMMAND, methods[o->verb],
	    arg);

	k->fn.done = fn;
	k->segment = o->segment;
	pb_put_uint(&k->args, SessionCommand_id, o->id);
	if (o->timeout_ms != 0)
		pb_put_uint(&k->args, SessionCommand_timeout_ms, o->timeout_ms);
	if (o->discard)
		pb_put_uint(&k->args, SessionCommand_discard, 1);
	ask(k);
}

void
control_recording(struct control *c, enum control_recording_verb verb,
    const char *name, control_done_fn fn, void *arg)
{
	static const char *const methods[] = {
		[CONTROL_RECORDING_START] = "StartRecording",
		[CONTROL_RECORDING_STOP] = "StopRecording",
		[CONTROL_RECORDING_ROTATE] = "RotateRecording",
	};
	struct control_call *k = call_new(c, CALL_COMMAND, methods[verb], arg);

	k->fn.done = fn;
	pb_put_string(&k->args, RecordingCommand_name, name);
	ask(k);
}
