#include "service/port/consumer_port.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/log.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "transport/roles.h"
#include "transport/rpc_host.h"
#include "service/port/observer.h"
#include "service/session/clone.h"
#include "service/session/config.h"
#include "service/session/flush.h"
#include "service/session/model.h"
#include "service/session/packet_out.h"
#include "service/session/principal.h"
#include "service/session/query.h"
#include "service/session/readback.h"
#include "service/session/session.h"
#include "service/session/session_stats.h"
#include "service/session/settings.h"
#include "service/trust.h"

/* Replies of a read that are queued before the reader must catch up. */
#define READ_QUEUE_BYTES (256u * 1024u)
#define READ_LOW_BYTES (64u * 1024u)
/* Replies made in one turn of the loop: others want their turn too. */
#define READ_REPLIES_PER_TURN 4u
#define FLUSHES_MAX 16u
#define FLUSH_TIMEOUT_DEFAULT_MS 5000u
/* Parts of a service state; the frame adds little. */
#define STATE_PART_BYTES (64u * 1024u)

struct flush_call {
	TAILQ_ENTRY(flush_call) link;
	struct consumer_port *port;
	struct rpc_call call;
};

struct consumer_port {
	struct service *service;
	struct rpc_conn *conn;
	struct principal who;
	struct session *session; /* NULL: none, or detached */
	struct rpc_call enable;  /* EnableTracing; conn NULL: none is open */
	struct rpc_call clone;   /* CloneSession in progress */
	struct packet_out *out;  /* ReadBuffers in progress, else NULL */
	struct rpc_call read;
	bool read_done;          /* the last packet is in out */
	TAILQ_HEAD(, flush_call) flushes;
	size_t n_flushes;
	struct observer observer;
	struct query *query;     /* QueryServiceState in progress, else NULL */
	struct rpc_call state;
};

static enum rpc_verdict
done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/* ---- what a session tells ---- */

static void
reply_disabled(struct consumer_port *p, const char *error)
{
	struct rpc_call call = p->enable;
	struct pb_writer w;

	if (call.conn == NULL)
		return;
	p->enable.conn = NULL;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, 1);
	if (error != NULL)
		pb_put_string(&w, 3, error);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
}

static void
on_disabled(void *port, const char *error)
{
	reply_disabled(port, error);
}

static void
on_instance_changed(void *port, const char *producer, const char *data_source,
    bool started)
{
	observer_instance(&((struct consumer_port *)port)->observer, producer,
	    data_source, started);
}

static void
on_all_started(void *port)
{
	observer_all_started(&((struct consumer_port *)port)->observer);
}

static void
on_clone_trigger(void *port, uint64_t session, const struct clone_trigger *t)
{
	observer_clone_trigger(&((struct consumer_port *)port)->observer,
	    session, t);
}

static const struct consumer_ops ops = {
	.disabled = on_disabled,
	.instance_changed = on_instance_changed,
	.all_started = on_all_started,
	.clone_trigger_hit = on_clone_trigger,
};

/* ---- ReadBuffers ---- */

static void
read_end(struct consumer_port *p)
{
	packet_out_free(p->out);
	p->out = NULL;
	p->read.conn = NULL;
}

static void
read_some(void *arg)
{
	struct consumer_port *p = arg;
	const uint8_t *msg;
	size_t len;
	unsigned n;
	bool more;

	for (n = 0; p->out != NULL && n < READ_REPLIES_PER_TURN; n++) {
		if (rpc_conn_queued(p->conn) >= READ_QUEUE_BYTES)
			return; /* drained() goes on */
		if (!p->read_done && packet_out_room(p->out))
			p->read_done = readback_fill(p->session->readback,
			    p->out, NULL) == READBACK_DONE;
		more = !p->read_done || packet_out_pending(p->out);
		msg = packet_out_reply(p->out, &len);
		rpc_reply(p->read, msg, len, more, -1);
		if (!more) {
			read_end(p);
			return;
		}
		packet_out_next(p->out);
	}
	if (p->out != NULL)
		loop_defer(p->service->loop, read_some, p);
}

/* ---- QueryServiceState ---- */

static void
query_end(struct consumer_port *p)
{
	query_free(p->query);
	p->query = NULL;
	p->state.conn = NULL;
}

/* As read_some(): ten thousand producers are megabytes. */
static void
query_some(void *arg)
{
	struct consumer_port *p = arg;
	const struct pb_writer *part;
	unsigned n;
	bool last;

	for (n = 0; p->query != NULL && n < READ_REPLIES_PER_TURN; n++) {
		if (rpc_conn_queued(p->conn) >= READ_QUEUE_BYTES)
			return; /* drained() goes on */
		if ((part = query_next(p->query, STATE_PART_BYTES,
			 &last)) == NULL) {
			rpc_reject(p->state);
			query_end(p);
			return;
		}
		rpc_reply(p->state, part->data, part->len, !last, -1);
		if (last)
			query_end(p);
	}
	if (p->query != NULL)
		loop_defer(p->service->loop, query_some, p);
}

static void
drained(void *ctx)
{
	struct consumer_port *p = ctx;

	if (p->out != NULL)
		read_some(p);
	if (p->query != NULL)
		query_some(p);
}

static enum rpc_verdict
read_buffers(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL || p->out != NULL)
		return RPC_REJECT;
	/* Reading would steal what belongs into the file. */
	if (p->session->state != SESSION_CLONED &&
	    p->session->config->pb->write_into_file)
		return RPC_REJECT;
	if (session_reads_nothing(p->session)) {
		if (p->session->state != SESSION_DISABLED)
			return RPC_REJECT;
		/* Its trigger never came: clients wait for an empty trace. */
		return done(call);
	}
	if ((p->out = packet_out_new_reply()) == NULL)
		return RPC_REJECT;
	p->read = call;
	p->read_done = false;
	readback_begin(p->session->readback);
	read_some(p);
	return RPC_OK;
}

/* ---- the session of this consumer ---- */

static void
fail_flushes(struct consumer_port *p)
{
	struct flush_call *f;

	while ((f = TAILQ_FIRST(&p->flushes)) != NULL) {
		flush_forget(p->session, f);
		TAILQ_REMOVE(&p->flushes, f, link);
		rpc_reject(f->call);
		free(f);
	}
	p->n_flushes = 0;
}

/* Whatever is under way for the session stops; it lives on. */
static void
let_go(struct consumer_port *p)
{
	if (p->out != NULL) {
		rpc_reject(p->read);
		read_end(p);
	}
	loop_cancel(p->service->loop, p);
	/* A question about the service is none about the session. */
	if (p->query != NULL)
		loop_defer(p->service->loop, query_some, p);
	if (p->session != NULL)
		fail_flushes(p);
	p->session = NULL;
}

static enum rpc_verdict
enable_refused(struct consumer_port *p, struct rpc_call call, int fd,
    const char *error)
{
	struct pb_writer w;

	log_limited(&p->service->refused_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "%s: EnableTracing refused: %s", rpc_conn_peer(p->conn)->text,
	    error);
	if (fd >= 0)
		close(fd);
	pb_writer_init(&w);
	pb_put_uint(&w, 1, 1);
	pb_put_string(&w, 3, error);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
enable_tracing(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	struct config *config;
	const uint8_t *bytes = NULL;
	size_t n = 0;
	bool notify_only = false;
	char err[320];
	int fd;

	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES) {
			bytes = f.data;
			n = f.len;
		} else if (f.number == 2 && f.wire == PB_VARINT) {
			notify_only = f.value != 0;
		} else if (f.number <= 2) {
			return RPC_BAD_ARGS;
		}
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (notify_only) {
		if (p->session == NULL)
			return RPC_REJECT;
		p->enable = call;
		if (p->session->said_disabled)
			reply_disabled(p, p->session->end_error);
		return RPC_OK;
	}
	fd = rpc_take_fd(call);
	if (p->session != NULL)
		return enable_refused(p, call, fd, "This consumer has a "
		    "tracing session already: call FreeBuffers first");
	if (p->clone.conn != NULL)
		return enable_refused(p, call, fd, "This consumer waits for "
		    "its CloneSession");
	config = config_new(bytes != NULL ? bytes : (const uint8_t *)"", n,
	    fd >= 0, &p->service->settings->limits, err, sizeof(err));
	if (config == NULL)
		return enable_refused(p, call, fd, err);
	p->session = session_new(p->service, config, fd, &p->who, &ops, p, err,
	    sizeof(err));
	if (p->session == NULL)
		return enable_refused(p, call, -1, err);
	p->enable = call;
	return RPC_OK;
}

static enum rpc_verdict
start_tracing(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL || session_start(p->session) != 0)
		return RPC_REJECT;
	return done(call);
}

static enum rpc_verdict
change_config(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	char err[320];

	if (p->session == NULL)
		return RPC_REJECT;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		if (f.wire != PB_BYTES)
			return RPC_BAD_ARGS;
		if (session_change_config(p->session, f.data, f.len, err,
		    sizeof(err)) != 0) {
			log_limited(&p->service->refused_log, loop_now_ms(),
			    LOG_LEVEL_INFO, "%s: ChangeTraceConfig refused: %s",
			    rpc_conn_peer(p->conn)->text, err);
			return RPC_REJECT;
		}
	}
	return r.bad ? RPC_BAD_ARGS : done(call);
}

static enum rpc_verdict
disable_tracing(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	/* The reply goes first: EnableTracing's own may follow at once. */
	rpc_reply(call, NULL, 0, false, -1);
	if (p->session != NULL)
		session_disable(p->session, NULL);
	return RPC_OK;
}

static enum rpc_verdict
free_buffers(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct session *s = p->session;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (s != NULL) {
		let_go(p);
		session_free(s);
		reply_disabled(p, NULL);
	}
	return done(call);
}

static void
flush_done(struct session *s, bool success, void *arg)
{
	struct flush_call *f = arg;

	TAILQ_REMOVE(&f->port->flushes, f, link);
	f->port->n_flushes--;
	if (success)
		rpc_reply(f->call, NULL, 0, false, -1);
	else
		rpc_reject(f->call);
	free(f);
}

static enum rpc_verdict
flush(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	struct flush_call *fc;
	uint64_t timeout = 0, flags = 0;

	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			timeout = f.value;
		else if (f.number == 2)
			flags = f.value;
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (p->session == NULL || p->session->state != SESSION_STARTED ||
	    p->n_flushes >= FLUSHES_MAX ||
	    (fc = calloc(1, sizeof(*fc))) == NULL)
		return RPC_REJECT;
	fc->port = p;
	fc->call = call;
	TAILQ_INSERT_TAIL(&p->flushes, fc, link);
	p->n_flushes++;
	flush_start(p->session, timeout == 0 || timeout > UINT32_MAX ?
	    FLUSH_TIMEOUT_DEFAULT_MS : (uint32_t)timeout, flags != 0 ? flags :
	    FLUSH_EXPLICIT, flush_done, fc);
	return RPC_OK;
}

static bool
key_field(const uint8_t *args, size_t len, char **key)
{
	struct pb_reader r;
	struct pb_field f;

	*key = NULL;
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		free(*key);
		*key = f.wire == PB_BYTES ?
		    strndup((const char *)f.data, f.len) : NULL;
		if (*key == NULL)
			return false;
	}
	return !r.bad;
}

static enum rpc_verdict
detach(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	char *key, err[80];
	enum rpc_verdict v = RPC_BAD_ARGS;

	if (!key_field(args, len, &key))
		goto out;
	v = RPC_REJECT;
	if (p->session == NULL || session_detach(p->session,
	    key != NULL ? key : "", err, sizeof(err)) != 0)
		goto out;
	let_go(p);
	/* Whoever attaches asks again for the end of tracing. */
	p->enable.conn = NULL;
	v = done(call);
out:
	free(key);
	return v;
}

static enum rpc_verdict
attach(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_writer w;
	char *key;
	enum rpc_verdict v = RPC_BAD_ARGS;

	if (!key_field(args, len, &key))
		goto out;
	v = RPC_REJECT;
	if (p->session != NULL || p->clone.conn != NULL || key == NULL)
		goto out;
	p->session = session_attach(p->service, key, &p->who, &ops, p);
	if (p->session == NULL)
		goto out;
	pb_writer_init(&w);
	pb_put_bytes(&w, 1, p->session->config->bytes, p->session->config->len);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	v = RPC_OK;
out:
	free(key);
	return v;
}

static enum rpc_verdict
get_trace_stats(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_writer w;
	size_t mark;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL)
		return RPC_REJECT;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	session_stats_message(p->session, &w);
	pb_nest_end(&w, mark);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
observe_events(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct session *s = p->session;
	const struct ds_instance *i;
	uint32_t mask;

	if (!observer_parse(args, len, &mask))
		return RPC_BAD_ARGS;
	observer_set(&p->observer, call, mask);
	if (s == NULL)
		return RPC_OK;
	/* What happened before the question is told too. */
	TAILQ_FOREACH(i, &s->instances, of_session)
		if (i->state == INSTANCE_STARTED)
			observer_instance(&p->observer, i->producer->name,
			    i->name, true);
	if (s->all_started_said)
		observer_all_started(&p->observer);
	return RPC_OK;
}

static enum rpc_verdict
query_state(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	bool sessions_only = false;

	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		if (f.number == 1)
			sessions_only = f.value != 0;
	if (r.bad)
		return RPC_BAD_ARGS;
	if (!call.wants_reply)
		return RPC_OK;
	/* One answer at a time. */
	if (p->query != NULL ||
	    (p->query = query_new(p->service, &p->who, sessions_only)) == NULL)
		return RPC_REJECT;
	p->state = call;
	query_some(p);
	return RPC_OK;
}

static enum rpc_verdict
query_caps(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct pb_writer w;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	pb_writer_init(&w);
	query_capabilities(&w);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
save_for_bugreport(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct pb_writer w;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, 0);
	pb_put_string(&w, 2, "SaveTraceForBugreport is not supported by this "
	    "service: use CloneSession with for_bugreport");
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

/* ---- CloneSession ---- */

static void
clone_done(void *arg, struct session *clone, bool was_file, const char *error)
{
	struct consumer_port *p = arg;
	struct rpc_call call = p->clone;
	struct pb_writer w;

	p->clone.conn = NULL;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, clone != NULL);
	if (clone == NULL) {
		pb_put_string(&w, 2, error);
	} else {
		pb_put_int(&w, 3, (int64_t)clone->uuid_msb);
		pb_put_int(&w, 4, (int64_t)clone->uuid_lsb);
		if (was_file)
			pb_put_uint(&w, 5, 1);
		clone->ops = &ops;
		clone->port = p;
		p->session = clone;
	}
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
}

static enum rpc_verdict
clone_refused(struct rpc_call call, const char *error)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, 0);
	pb_put_string(&w, 2, error);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static bool
parse_clone(const uint8_t *args, size_t len, struct clone_request *q,
    struct clone_trigger *t, char **name, char **trigger, char **producer)
{
	struct pb_reader r;
	struct pb_field f;
	char **text;

	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case 1:
			q->session_id = f.value;
			break;
		case 3:
			q->for_bugreport = f.value != 0;
			break;
		case 4:
		case 5:
		case 6:
			if (f.wire != PB_BYTES)
				return false;
			text = f.number == 4 ? name : f.number == 5 ? trigger :
			    producer;
			free(*text);
			*text = strndup((const char *)f.data, f.len);
			if (*text == NULL)
				return false;
			break;
		case 7:
			t->producer_uid = (int32_t)f.value;
			break;
		case 8:
			t->boot_time_ns = f.value;
			break;
		case 9:
			t->delay_ms = f.value;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

static enum rpc_verdict
clone_session(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct clone_request q = { .fd = -1, .who = &p->who };
	struct clone_trigger t = { 0 };
	char *name = NULL, *trigger = NULL, *producer = NULL;
	enum rpc_verdict v = RPC_BAD_ARGS;

	if (!parse_clone(args, len, &q, &t, &name, &trigger, &producer))
		goto out;
	if (p->session != NULL) {
		v = clone_refused(call, "The consumer is already attached to "
		    "another tracing session");
		goto out;
	}
	if (p->clone.conn != NULL) {
		v = clone_refused(call, "This consumer waits for another "
		    "CloneSession");
		goto out;
	}
	v = RPC_OK;
	p->clone = call;
	q.name = name;
	if (trigger != NULL) {
		t.name = trigger;
		t.producer_name = producer != NULL ? producer : "";
		q.trigger = &t;
	}
	q.fd = rpc_take_fd(call);
	clone_start(p->service, &q, clone_done, p);
out:
	free(name);
	free(trigger);
	free(producer);
	return v;
}

/* In the order of wire-format.md: ids are position + 1. */
static const struct rpc_method methods[] = {
	{ "EnableTracing", enable_tracing },
	{ "DisableTracing", disable_tracing },
	{ "ReadBuffers", read_buffers },
	{ "FreeBuffers", free_buffers },
	{ "Flush", flush },
	{ "StartTracing", start_tracing },
	{ "ChangeTraceConfig", change_config },
	{ "Detach", detach },
	{ "Attach", attach },
	{ "GetTraceStats", get_trace_stats },
	{ "ObserveEvents", observe_events },
	{ "QueryServiceState", query_state },
	{ "QueryCapabilities", query_caps },
	{ "SaveTraceForBugreport", save_for_bugreport },
	{ "CloneSession", clone_session },
};

/* Of all consumers together. */
static struct log_limit over_quota;

static void
log_over_quota(const struct rpc_conn *c, const struct principal *who)
{
	char text[96];

	log_limited(&over_quota, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: refused: %s has as many connections as "
	    "limits.max_consumers_per_uid allows", rpc_conn_peer(c)->text,
	    principal_text(who, text, sizeof(text)));
}

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	const struct peer *peer = rpc_conn_peer(c);
	struct service *s = arg;
	struct consumer_port *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	principal_of_peer(&p->who, peer,
	    trust_roles(s->trust, peer, false) & ROLE_ADMIN);
	if (!peer_quota_take(&s->consumers, principal_key(&p->who),
		s->settings->limits.max_consumers_per_uid)) {
		log_over_quota(c, &p->who);
		free(p);
		return NULL;
	}
	p->service = s;
	p->conn = c;
	TAILQ_INIT(&p->flushes);
	rpc_conn_set_limits(c,
	    (size_t)s->settings->limits.max_send_queue_kb * 1024,
	    READ_LOW_BYTES);
	return p;
}

static void
gone(void *ctx)
{
	struct consumer_port *p = ctx;
	struct session *s = p->session;

	clone_forget(p->service, p);
	query_end(p);
	let_go(p);
	p->enable.conn = NULL;
	if (s != NULL)
		session_free(s);
	peer_quota_give(&p->service->consumers, principal_key(&p->who), 1);
	free(p);
}

void
consumer_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = "ConsumerPort",
		.alias = "consumer_port",
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_port,
		.gone = gone,
		.drained = drained,
		.arg = s,
	};
}
