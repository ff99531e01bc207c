#include "client/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "client/slice_joiner.h"
#include "protos/consumer_port.pb-c.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/loop.h"
#include "transport/pb_reader.h"
#include "transport/pb_writer.h"
#include "transport/rpc_client.h"

enum call_kind {
	CALL_ENABLE,  /* EnableTracing: answered when the session ends */
	CALL_DONE,    /* an empty reply */
	CALL_READ,    /* ReadBuffers: a stream */
	CALL_STATS,
	CALL_STATE,   /* QueryServiceState: parts of one message */
	CALL_OBSERVE, /* ObserveEvents: a stream without end */
	CALL_ATTACH,
	CALL_CLONE,
};

struct call {
	LIST_ENTRY(call) link;
	struct consumer *c; /* back-pointer */
	enum call_kind kind;
	union {
		consumer_done_fn done;
		consumer_stats_fn stats;
		consumer_state_fn state;
		consumer_attach_fn attach;
		consumer_clone_fn clone;
	} fn;
	void *arg;
	struct pb_writer parts; /* CALL_STATE */
	bool failed;            /* to be reported by report_failed() */
};

/*
 * While busy is not 0 a callback of ours is on the stack, and consumer_free()
 * only marks the consumer closed; the outermost leave() frees it.
 */
struct consumer {
	struct loop *loop;
	struct rpc_client *rpc; /* owned */
	const struct consumer_ops *ops;
	void *arg;
	LIST_HEAD(, call) calls;
	struct slice_joiner joiner; /* CALL_READ */
	bool fds;                   /* can pass them */
	bool closed;
	unsigned busy;
};

static void
destroy(struct consumer *c)
{
	struct call *k;

	loop_cancel(c->loop, c);
	rpc_client_free(c->rpc);
	while ((k = LIST_FIRST(&c->calls)) != NULL) {
		LIST_REMOVE(k, link);
		pb_writer_done(&k->parts);
		free(k);
	}
	slice_joiner_done(&c->joiner);
	free(c);
}

static void
enter(struct consumer *c)
{
	c->busy++;
}

static void
leave(struct consumer *c)
{
	if (--c->busy == 0 && c->closed)
		destroy(c);
}

void
consumer_free(struct consumer *c)
{
	if (c == NULL || c->closed)
		return;
	c->closed = true;
	if (c->busy == 0)
		destroy(c);
}

/* Replies, one function for each kind of call. */

static void
enable_reply(struct consumer *c, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	char *error = NULL;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number != 3 || f.wire != PB_BYTES || f.len == 0)
			continue;
		free(error);
		error = strndup((const char *)f.data, f.len);
	}
	if (c->ops->tracing_disabled != NULL)
		c->ops->tracing_disabled(c->arg, error);
	free(error);
}

static void
read_ended(struct consumer *c, const char *error)
{
	slice_joiner_done(&c->joiner);
	if (c->ops->read_done != NULL)
		c->ops->read_done(c->arg, error);
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct consumer *c = arg;

	if (c->ops->packet != NULL)
		c->ops->packet(c->arg, data, len);
	return !c->closed;
}

static void
read_reply(struct consumer *c, const uint8_t *msg, size_t len, bool more)
{
	if (slice_joiner_feed(&c->joiner, msg, len, packet_cb, c) && !more)
		read_ended(c, slice_joiner_error(&c->joiner));
}

static void
stats_reply(const struct call *k, const uint8_t *msg, size_t len)
{
	Perfetto__Protos__GetTraceStatsResponse *m;

	m = perfetto__protos__get_trace_stats_response__unpack(NULL, len, msg);
	k->fn.stats(k->arg, m == NULL ? NULL : m->trace_stats);
	if (m != NULL)
		perfetto__protos__get_trace_stats_response__free_unpacked(m,
		    NULL);
}

/* The parts of the state are valid messages that merge into the whole. */
static void
state_reply(struct call *k, const uint8_t *msg, size_t len, bool more)
{
	Perfetto__Protos__QueryServiceStateResponse *m = NULL;

	if (k->parts.len + len <= CONSUMER_MAX_STATE)
		pb_put_raw(&k->parts, msg, len);
	else
		k->parts.failed = true;
	if (more)
		return;
	if (!k->parts.failed)
		m = perfetto__protos__query_service_state_response__unpack(NULL,
		    k->parts.len, k->parts.data);
	k->fn.state(k->arg, m == NULL ? NULL : m->service_state);
	if (m != NULL)
		perfetto__protos__query_service_state_response__free_unpacked(m,
		    NULL);
}

static void
observe_reply(struct consumer *c, const uint8_t *msg, size_t len)
{
	Perfetto__Protos__ObserveEventsResponse *m;

	m = perfetto__protos__observe_events_response__unpack(NULL, len, msg);
	if (m == NULL)
		return;
	if (m->events != NULL && c->ops->observed != NULL)
		c->ops->observed(c->arg, m->events);
	perfetto__protos__observe_events_response__free_unpacked(m, NULL);
}

static void
attach_reply(const struct call *k, const uint8_t *msg, size_t len)
{
	const uint8_t *config = (const uint8_t *)"";
	struct pb_reader r;
	struct pb_field f;
	size_t config_len = 0;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES) {
			config = f.data;
			config_len = f.len;
		}
	}
	k->fn.attach(k->arg, config, config_len);
}

static void
clone_reply(const struct call *k, const uint8_t *msg, size_t len)
{
	Perfetto__Protos__CloneSessionResponse *m;
	const char *error = "the answer of the collector is malformed";

	m = perfetto__protos__clone_session_response__unpack(NULL, len, msg);
	if (m != NULL && m->success)
		error = NULL;
	else if (m != NULL)
		error = m->error != NULL && m->error[0] != '\0' ? m->error :
			"the collector did not clone the session";
	k->fn.clone(k->arg, error);
	if (m != NULL)
		perfetto__protos__clone_session_response__free_unpacked(m,
		    NULL);
}

static void
good_reply(struct call *k, const uint8_t *msg, size_t len, bool more)
{
	switch (k->kind) {
	case CALL_ENABLE:
		if (!more)
			enable_reply(k->c, msg, len);
		break;
	case CALL_DONE:
		if (!more && k->fn.done != NULL)
			k->fn.done(k->arg, true);
		break;
	case CALL_READ:
		read_reply(k->c, msg, len, more);
		break;
	case CALL_STATS:
		stats_reply(k, msg, len);
		break;
	case CALL_STATE:
		state_reply(k, msg, len, more);
		break;
	case CALL_OBSERVE:
		observe_reply(k->c, msg, len);
		break;
	case CALL_ATTACH:
		attach_reply(k, msg, len);
		break;
	case CALL_CLONE:
		clone_reply(k, msg, len);
		break;
	}
}

static void
bad_reply(struct call *k)
{
	struct consumer *c = k->c;

	switch (k->kind) {
	case CALL_ENABLE:
		if (c->ops->tracing_disabled != NULL)
			c->ops->tracing_disabled(c->arg,
			    "the collector refused to start a session");
		break;
	case CALL_DONE:
		if (k->fn.done != NULL)
			k->fn.done(k->arg, false);
		break;
	case CALL_READ:
		read_ended(c, "the collector refused to hand out the trace");
		break;
	case CALL_STATS:
		k->fn.stats(k->arg, NULL);
		break;
	case CALL_STATE:
		k->fn.state(k->arg, NULL);
		break;
	case CALL_OBSERVE:
		break;
	case CALL_ATTACH:
		k->fn.attach(k->arg, NULL, 0);
		break;
	case CALL_CLONE:
		k->fn.clone(k->arg, "the collector refused to clone the "
		    "session");
		break;
	}
}

static void
end_call(struct call *k)
{
	LIST_REMOVE(k, link);
	pb_writer_done(&k->parts);
	free(k);
}

static void
report_failed(void *arg)
{
	struct consumer *c = arg;
	struct call *k, *next;

	enter(c);
	for (k = LIST_FIRST(&c->calls); k != NULL && !c->closed; k = next) {
		if (!k->failed) {
			next = LIST_NEXT(k, link);
			continue;
		}
		bad_reply(k);
		end_call(k);
		next = LIST_FIRST(&c->calls);
	}
	leave(c);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct call *k = arg;
	struct consumer *c = k->c;

	if (fd >= 0)
		close(fd);
	if (!ok) {
		/*
		 * Calls also fail when the connection ends, just before
		 * down_cb() tells why: wait for whether it does.
		 */
		k->failed = true;
		loop_defer(c->loop, report_failed, c);
		return;
	}
	enter(c);
	good_reply(k, msg, len, more);
	if (!more)
		end_call(k);
	leave(c);
}

static void
out_of_memory(void *arg)
{
	struct consumer *c = arg;

	enter(c);
	c->ops->disconnected(c->arg, "out of memory");
	leave(c);
}

/* NULL: no memory; disconnected() then follows instead of a reply. */
static struct call *
call_new(struct consumer *c, enum call_kind kind, void *arg)
{
	struct call *k;

	if ((k = calloc(1, sizeof(*k))) == NULL) {
		loop_cancel(c->loop, c);
		loop_defer(c->loop, out_of_memory, c);
		return NULL;
	}
	k->c = c;
	k->kind = kind;
	k->arg = arg;
	pb_writer_init(&k->parts);
	LIST_INSERT_HEAD(&c->calls, k, link);
	return k;
}

static void
invoke(struct call *k, const char *method, const struct pb_writer *args, int fd)
{
	if (args != NULL && args->failed) {
		k->failed = true;
		loop_defer(k->c->loop, report_failed, k->c);
		return;
	}
	rpc_invoke(k->c->rpc, method, args == NULL ? NULL : args->data,
	    args == NULL ? 0 : args->len, fd, reply_cb, k);
}

/* The connection. */

static void
ready_cb(struct rpc_client *rpc, void *arg)
{
	struct consumer *c = arg;

	c->fds = rpc_client_can_pass_fds(rpc);
	enter(c);
	c->ops->connected(c->arg);
	leave(c);
}

static void
down_cb(struct rpc_client *rpc, const char *text, void *arg)
{
	struct consumer *c = arg;

	loop_cancel(c->loop, c); /* what failed, failed for this reason */
	enter(c);
	c->ops->disconnected(c->arg, text);
	leave(c);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

static struct consumer *
consumer_alloc(struct loop *l, const struct consumer_ops *ops, void *arg)
{
	struct consumer *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->ops = ops;
	c->arg = arg;
	LIST_INIT(&c->calls);
	return c;
}

struct consumer *
consumer_new(struct loop *l, const struct addr *a,
    const struct consumer_ops *ops, void *arg, char *err, size_t err_size)
{
	struct consumer *c;

	if ((c = consumer_alloc(l, ops, arg)) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->rpc = rpc_client_new(l, a, "ConsumerPort", &rpc_ops, c, err,
	    err_size);
	if (c->rpc == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

struct consumer *
consumer_from_fd(struct loop *l, int fd, const struct consumer_ops *ops,
    void *arg)
{
	struct consumer *c;

	if ((c = consumer_alloc(l, ops, arg)) == NULL)
		return NULL;
	c->rpc = rpc_client_from_fd(l, fd, "ConsumerPort", &rpc_ops, c);
	if (c->rpc == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

bool
consumer_can_pass_fds(const struct consumer *c)
{
	return c->fds;
}

/* The calls. */

void
consumer_enable_tracing(struct consumer *c, const uint8_t *config, size_t len,
    int fd)
{
	struct call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_ENABLE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_bytes(&w, 1, config, len); /* trace_config */
	invoke(k, "EnableTracing", &w, fd);
	pb_writer_done(&w);
}

void
consumer_watch_tracing(struct consumer *c)
{
	struct call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_ENABLE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, 2, 1); /* attach_notification_only */
	invoke(k, "EnableTracing", &w, -1);
	pb_writer_done(&w);
}

static void
simple_call(struct consumer *c, const char *method,
    const struct pb_writer *args, consumer_done_fn fn, void *arg)
{
	struct call *k;

	if ((k = call_new(c, CALL_DONE, arg)) == NULL)
		return;
	k->fn.done = fn;
	invoke(k, method, args, -1);
}

void
consumer_start_tracing(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, "StartTracing", NULL, fn, arg);
}

void
consumer_flush(struct consumer *c, uint32_t timeout_ms, uint64_t flags,
    consumer_done_fn fn, void *arg)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, timeout_ms);
	pb_put_uint(&w, 2, flags);
	simple_call(c, "Flush", &w, fn, arg);
	pb_writer_done(&w);
}

void
consumer_disable_tracing(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, "DisableTracing", NULL, fn, arg);
}

void
consumer_free_buffers(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, "FreeBuffers", NULL, fn, arg);
}

void
consumer_read_buffers(struct consumer *c)
{
	struct call *k;

	if ((k = call_new(c, CALL_READ, NULL)) != NULL)
		invoke(k, "ReadBuffers", NULL, -1);
}

void
consumer_pause(struct consumer *c)
{
	rpc_client_pause(c->rpc);
}

void
consumer_resume(struct consumer *c)
{
	rpc_client_resume(c->rpc);
}

void
consumer_get_trace_stats(struct consumer *c, consumer_stats_fn fn, void *arg)
{
	struct call *k;

	if ((k = call_new(c, CALL_STATS, arg)) == NULL)
		return;
	k->fn.stats = fn;
	invoke(k, "GetTraceStats", NULL, -1);
}

void
consumer_query_service_state(struct consumer *c, bool sessions_only,
    consumer_state_fn fn, void *arg)
{
	struct call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_STATE, arg)) == NULL)
		return;
	k->fn.state = fn;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, sessions_only);
	invoke(k, "QueryServiceState", &w, -1);
	pb_writer_done(&w);
}

void
consumer_observe_events(struct consumer *c, uint32_t mask)
{
	struct call *k;
	struct pb_writer w;
	uint32_t bit;

	if ((k = call_new(c, CALL_OBSERVE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	for (bit = 1; bit != 0 && bit <= mask; bit <<= 1) {
		if ((mask & bit) != 0)
			pb_put_uint(&w, 1, bit);
	}
	invoke(k, "ObserveEvents", &w, -1);
	pb_writer_done(&w);
}

static void
keyed_call(struct call *k, const char *method, const char *key)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 1, key);
	invoke(k, method, &w, -1);
	pb_writer_done(&w);
}

void
consumer_detach(struct consumer *c, const char *key, consumer_done_fn fn,
    void *arg)
{
	struct call *k;

	if ((k = call_new(c, CALL_DONE, arg)) == NULL)
		return;
	k->fn.done = fn;
	keyed_call(k, "Detach", key);
}

void
consumer_attach(struct consumer *c, const char *key, consumer_attach_fn fn,
    void *arg)
{
	struct call *k;

	if ((k = call_new(c, CALL_ATTACH, arg)) == NULL)
		return;
	k->fn.attach = fn;
	keyed_call(k, "Attach", key);
}

void
consumer_clone_session(struct consumer *c, uint64_t session_id,
    const char *name, int fd, consumer_clone_fn fn, void *arg)
{
	struct call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_CLONE, arg)) == NULL)
		return;
	k->fn.clone = fn;
	pb_writer_init(&w);
	if (name != NULL)
		pb_put_string(&w, 4, name);
	else
		pb_put_uint(&w, 1, session_id);
	invoke(k, "CloneSession", &w, fd);
	pb_writer_done(&w);
}
