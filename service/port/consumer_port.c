#include "service/port/consumer_port.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "service/access/principal.h"
#include "service/access/trust.h"
#include "service/model/model.h"
#include "service/onlookers/clone.h"
#include "service/port/consumer_internal.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/socket/roles.h"
#include "transport/wire/pb_writer.h"

#define READ_LOW_BYTES (64u * 1024u)

enum rpc_verdict
consumer_done(struct rpc_call call)
{
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

/* ---- what a session tells ---- */

void
consumer_reply_disabled(struct consumer_port *p, const char *error)
{
	const struct session *s = p->session;
	struct rpc_call call = p->enable;
	struct pb_writer w;
	size_t i;

	if (call.conn == NULL)
		return;
	p->enable.conn = NULL;
	pb_writer_init(&w);
	pb_put_uint(&w, EnableTracingResponse_disabled, 1);
	if (error != NULL)
		pb_put_string(&w, EnableTracingResponse_error, error);
	for (i = 0; s != NULL && i < s->n_warnings; i++)
		pb_put_string(&w, EnableTracingResponse_warnings,
		    s->warnings[i]);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
}

/* Shows a Detach again that got RPC_AGAIN (session_awaits_file()). */
static void
on_file_known(void *port)
{
	rpc_conn_resume(((struct consumer_port *)port)->conn);
}

static void
on_disabled(void *port, const char *error)
{
	consumer_reply_disabled(port, error);
	on_file_known(port);
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

/*
 * A StopSession command discards the session.  Perfetto's clients wait for ever
 * for a read that is refused: a read under way ends with the data sent so far.
 */
static void
on_freed(void *port)
{
	struct consumer_port *p = port;

	consumer_cut_read(p);
	consumer_let_go(p);
	p->discarded = true;
	consumer_reply_disabled(p, NULL);
	on_file_known(p);
}

const struct consumer_ops consumer_session_ops = {
	.disabled = on_disabled,
	.instance_changed = on_instance_changed,
	.all_started = on_all_started,
	.clone_trigger_hit = on_clone_trigger,
	.freed = on_freed,
	.file_known = on_file_known,
};

/* In the order of wire-format.md: a method's id is its position + 1. */
static const struct rpc_method methods[] = {
	{ "EnableTracing", consumer_enable_tracing },
	{ "DisableTracing", consumer_disable_tracing },
	{ "ReadBuffers", consumer_read_buffers },
	{ "FreeBuffers", consumer_free_buffers },
	{ "Flush", consumer_flush },
	{ "StartTracing", consumer_start_tracing },
	{ "ChangeTraceConfig", consumer_change_config },
	{ "Detach", consumer_detach },
	{ "Attach", consumer_attach },
	{ "GetTraceStats", consumer_get_trace_stats },
	{ "ObserveEvents", consumer_observe_events },
	{ "QueryServiceState", consumer_query_state },
	{ "QueryCapabilities", consumer_query_caps },
	{ "SaveTraceForBugreport", consumer_save_for_bugreport },
	{ "CloneSession", consumer_clone_session },
};

/* Limit of refusals that are logged, of all consumers together. */
static struct log_limit over_quota;

static void
refuse_over_quota(struct service *s, const struct rpc_conn *c,
    const struct principal *who)
{
	static const char limit[] = "limits.max_consumers_per_uid";
	char text[96];

	refusals_count(&s->refusals, limit);
	log_limited(&over_quota, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: refused: %s has as many connections as %s allows",
	    rpc_conn_peer(c)->text, principal_text(who, text, sizeof(text)),
	    limit);
}

static void *
bind_port(struct rpc_conn *c, void *arg)
{
	const struct peer *peer = rpc_conn_peer(c);
	struct service *s = arg;
	struct consumer_port *p;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	principal_of_peer(&p->who, peer,
	    trust_roles(s->trust, peer, false) & ROLE_ADMIN);
	if (!per_peer_count_take(&s->consumers, principal_key(&p->who),
		s->settings->limits.max_consumers_per_uid)) {
		if (per_peer_count_has(&s->consumers, principal_key(&p->who)) <
		    s->settings->limits.max_consumers_per_uid)
			rpc_conn_refuse(c, "the collector is out of memory");
		else
			refuse_over_quota(s, c, &p->who);
		free(p);
		return NULL;
	}
	p->service = s;
	p->conn = c;
	TAILQ_INIT(&p->flushes);
	observer_init(&p->observer, s->loop, c,
	    (size_t)s->settings->limits.max_send_queue_kb * 1024);
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
	consumer_query_end(p);
	consumer_let_go(p);
	p->enable.conn = NULL;
	if (s != NULL)
		session_free(s);
	observer_done(&p->observer);
	per_peer_count_give(&p->service->consumers, principal_key(&p->who), 1);
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
		.drained = consumer_drained,
		.arg = s,
	};
}
