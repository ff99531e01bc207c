#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/port/consumer_internal.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static enum rpc_verdict
enable_refused(struct consumer_port *p, struct rpc_call call, int fd,
    const char *error)
{
	struct pb_writer w;

	refusals_count(&p->service->refusals, error);
	log_limited(&p->service->refused_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "%s: EnableTracing refused: %s", rpc_conn_peer(p->conn)->text,
	    error);
	if (fd >= 0)
		close(fd);
	pb_writer_init(&w);
	pb_put_uint(&w, EnableTracingResponse_disabled, 1);
	pb_put_string(&w, EnableTracingResponse_error, error);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	return RPC_OK;
}

enum rpc_verdict
consumer_enable_tracing(void *ctx, struct rpc_call call, const uint8_t *args,
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

	PB_FOREACH(&f, &r, args, len) {
		if (f.number == EnableTracingRequest_trace_config &&
		    f.wire == PB_BYTES) {
			bytes = f.data;
			n = f.len;
		} else if (f.number ==
		    EnableTracingRequest_attach_notification_only &&
		    f.wire == PB_VARINT) {
			notify_only = f.value != 0;
		} else if (f.number <=
		    EnableTracingRequest_attach_notification_only) {
			return RPC_BAD_ARGS;
		}
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (notify_only) {
		if (p->session == NULL)
			return RPC_REJECT;
		/*
		 * A later call replaces the one that waits, which is rejected.
		 */
		if (p->enable.conn != NULL)
			rpc_reject(p->enable);
		p->enable = call;
		if (p->session->state == SESSION_DISABLED)
			consumer_reply_disabled(p, p->session->end_error);
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
	p->session = session_new(p->service, &(struct session_request){
		.config = config,
		.fd = fd,
		.owner = &p->who,
		.ops = &consumer_session_ops,
		.port = p,
	    }, err, sizeof(err));
	if (p->session == NULL)
		return enable_refused(p, call, -1, err);
	p->discarded = false;
	p->enable = call;
	return RPC_OK;
}

enum rpc_verdict
consumer_start_tracing(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->session == NULL || session_start(p->session) != 0)
		return RPC_REJECT;
	return consumer_done(call);
}

enum rpc_verdict
consumer_change_config(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	char err[320];

	if (p->session == NULL)
		return RPC_REJECT;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number != ChangeTraceConfigRequest_trace_config)
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
	return r.bad ? RPC_BAD_ARGS : consumer_done(call);
}

enum rpc_verdict
consumer_disable_tracing(void *ctx, struct rpc_call call,
    const uint8_t *args, size_t len)
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

enum rpc_verdict
consumer_free_buffers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	struct session *s = p->session;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	p->discarded = false;
	if (s != NULL) {
		/*
		 * Before session_free(): the reply has the session's warnings.
		 */
		consumer_reply_disabled(p, NULL);
		consumer_let_go(p);
		session_free(s);
	}
	return consumer_done(call);
}

/* DetachRequest and AttachRequest have the key in the same field. */
_Static_assert((int)DetachRequest_key == (int)AttachRequest_key, "one reader");

static bool
key_field(const uint8_t *args, size_t len, char **key)
{
	struct pb_reader r;
	struct pb_field f;

	*key = NULL;
	PB_FOREACH(&f, &r, args, len) {
		if (f.number != AttachRequest_key)
			continue;
		free(*key);
		*key = f.wire == PB_BYTES ?
		    strndup((const char *)f.data, f.len) : NULL;
		if (*key == NULL)
			return false;
	}
	return !r.bad;
}

enum rpc_verdict
consumer_detach(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct consumer_port *p = ctx;
	char *key, err[80];
	enum rpc_verdict v = RPC_BAD_ARGS;

	if (!key_field(args, len, &key))
		goto out;
	v = RPC_AGAIN;
	if (p->session != NULL && session_awaits_file(p->session))
		goto out;
	v = RPC_REJECT;
	if (p->session == NULL || session_detach(p->session,
	    key != NULL ? key : "", err, sizeof(err)) != 0)
		goto out;
	consumer_let_go(p);
	/* The consumer that attaches calls EnableTracing for the end. */
	p->enable.conn = NULL;
	v = consumer_done(call);
out:
	free(key);
	return v;
}

enum rpc_verdict
consumer_attach(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
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
	p->session = session_attach(p->service, key, &p->who,
	    &consumer_session_ops, p);
	if (p->session == NULL)
		goto out;
	pb_writer_init(&w);
	pb_put_bytes(&w, AttachResponse_trace_config, p->session->config->bytes,
	    p->session->config->len);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	v = RPC_OK;
out:
	free(key);
	return v;
}
