#include "client/library/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/library/consumer_reply.h"
#include "client/trace/slice_joiner.h"
#include "protos/fields.h"
#include "protos/service_state.pb-c.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_writer.h"

static void
destroy(struct consumer *c)
{
	struct consumer_call *k;

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

static void
end_call(struct consumer_call *k)
{
	LIST_REMOVE(k, link);
	pb_writer_done(&k->parts);
	free(k);
}

static void
report_failed(void *arg)
{
	struct consumer *c = arg;
	struct consumer_call *k, *next;

	enter(c);
	for (k = LIST_FIRST(&c->calls); k != NULL && !c->closed; k = next) {
		if (!k->failed) {
			next = LIST_NEXT(k, link);
			continue;
		}
		consumer_reply_bad(k);
		end_call(k);
		next = LIST_FIRST(&c->calls);
	}
	leave(c);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct consumer_call *k = arg;
	struct consumer *c = k->c;

	if (fd >= 0)
		close(fd);
	if (!ok) {
		/*
		 * Calls also fail when the connection ends, just before
		 * down_cb(), which tells why and cancels this report.
		 */
		k->failed = true;
		loop_defer(c->loop, &c->failed_call, report_failed, c);
		return;
	}
	enter(c);
	consumer_reply_good(k, msg, len, more);
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

/* NULL: no memory; disconnected() then follows instead of any reply. */
static struct consumer_call *
call_new(struct consumer *c, enum consumer_call_kind kind, void *arg)
{
	struct consumer_call *k;

	if ((k = calloc(1, sizeof(*k))) == NULL) {
		loop_cancel(c->loop, c);
		loop_defer(c->loop, &c->no_memory_call, out_of_memory, c);
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
invoke(struct consumer_call *k, const char *method,
    const struct pb_writer *args, int fd)
{
	if (args != NULL && args->failed) {
		k->failed = true;
		loop_defer(k->c->loop, &k->c->failed_call, report_failed, k->c);
		return;
	}
	rpc_invoke_with(k->c->rpc, &(struct rpc_request){ .method = method,
	    .args = args == NULL ? NULL : args->data,
	    .len = args == NULL ? 0 : args->len, .fd = fd, .fn = reply_cb,
	    .arg = k });
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

	loop_cancel(c->loop, c); /* text says why: no report_failed() */
	enter(c);
	c->ops->disconnected(c->arg, text);
	leave(c);
}

static const struct rpc_client_ops rpc_ops = {
	.ready = ready_cb,
	.down = down_cb,
};

struct consumer *
consumer_new(struct loop *l, const struct consumer_setup *setup, char *err,
    size_t err_size)
{
	struct consumer *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->loop = l;
	c->ops = setup->ops;
	c->arg = setup->arg;
	LIST_INIT(&c->calls);
	c->rpc = rpc_client_new(l, &(struct rpc_client_setup){
	    .addr = setup->address, .how = setup->how,
	    .service = "ConsumerPort", .ops = &rpc_ops, .arg = c },
	    err, err_size);
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
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_ENABLE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_bytes(&w, EnableTracingRequest_trace_config, config, len);
	invoke(k, "EnableTracing", &w, fd);
	pb_writer_done(&w);
}

void
consumer_watch_tracing(struct consumer *c)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_ENABLE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, EnableTracingRequest_attach_notification_only, 1);
	invoke(k, "EnableTracing", &w, -1);
	pb_writer_done(&w);
}

static void
simple_call(struct consumer *c, const char *method,
    const struct pb_writer *args, consumer_done_fn fn, void *arg)
{
	struct consumer_call *k;

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
	pb_put_uint(&w, FlushRequest_timeout_ms, timeout_ms);
	pb_put_uint(&w, FlushRequest_flags, flags);
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
	struct consumer_call *k;

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
	struct consumer_call *k;

	if ((k = call_new(c, CALL_STATS, arg)) == NULL)
		return;
	k->fn.stats = fn;
	invoke(k, "GetTraceStats", NULL, -1);
}

void
consumer_query_service_state(struct consumer *c, bool sessions_only,
    consumer_state_fn fn, void *arg)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_STATE, arg)) == NULL)
		return;
	k->fn.state = fn;
	pb_writer_init(&w);
	pb_put_uint(&w, QueryServiceStateRequest_sessions_only, sessions_only);
	invoke(k, "QueryServiceState", &w, -1);
	pb_writer_done(&w);
}

void
consumer_query_raw_state(struct consumer *c, consumer_raw_state_fn fn,
    void *arg)
{
	struct consumer_call *k;

	if ((k = call_new(c, CALL_RAW_STATE, arg)) == NULL)
		return;
	k->fn.raw_state = fn;
	invoke(k, "QueryServiceState", NULL, -1);
}

void
consumer_observe_events(struct consumer *c, uint32_t mask)
{
	struct consumer_call *k;
	struct pb_writer w;
	uint32_t bit;

	if ((k = call_new(c, CALL_OBSERVE, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	for (bit = 1; bit != 0 && bit <= mask; bit <<= 1) {
		if ((mask & bit) != 0)
			pb_put_uint(&w, ObserveEventsRequest_events_to_observe,
			    bit);
	}
	invoke(k, "ObserveEvents", &w, -1);
	pb_writer_done(&w);
}

/* Detach or Attach: their arguments have the same field. */
static void
keyed_call(struct consumer_call *k, const char *method, const char *key)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, AttachRequest_key, key);
	invoke(k, method, &w, -1);
	pb_writer_done(&w);
}

void
consumer_detach(struct consumer *c, const char *key, consumer_done_fn fn,
    void *arg)
{
	struct consumer_call *k;

	if ((k = call_new(c, CALL_DONE, arg)) == NULL)
		return;
	k->fn.done = fn;
	keyed_call(k, "Detach", key);
}

void
consumer_attach(struct consumer *c, const char *key, consumer_attach_fn fn,
    void *arg)
{
	struct consumer_call *k;

	if ((k = call_new(c, CALL_ATTACH, arg)) == NULL)
		return;
	k->fn.attach = fn;
	keyed_call(k, "Attach", key);
}

static void
put_hit(struct pb_writer *w,
    const Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit)
{
	if (hit->trigger_name != NULL)
		pb_put_string(w, CloneSessionRequest_clone_trigger_name,
		    hit->trigger_name);
	if (hit->producer_name != NULL)
		pb_put_string(w,
		    CloneSessionRequest_clone_trigger_producer_name,
		    hit->producer_name);
	pb_put_int(w, CloneSessionRequest_clone_trigger_trusted_producer_uid,
	    (int32_t)hit->producer_uid);
	pb_put_uint(w, CloneSessionRequest_clone_trigger_boot_time_ns,
	    hit->boot_time_ns);
	pb_put_uint(w, CloneSessionRequest_clone_trigger_delay_ms,
	    hit->trigger_delay_ms);
}

void
consumer_clone_session(struct consumer *c, const struct consumer_clone *which,
    consumer_clone_fn fn, void *arg)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CALL_CLONE, arg)) == NULL)
		return;
	k->fn.clone = fn;
	pb_writer_init(&w);
	if (which->name != NULL)
		pb_put_string(&w, CloneSessionRequest_unique_session_name,
		    which->name);
	else
		pb_put_uint(&w, CloneSessionRequest_session_id,
		    which->session_id);
	if (which->skip_trace_filter)
		pb_put_uint(&w, CloneSessionRequest_skip_trace_filter, 1);
	if (which->for_bugreport)
		pb_put_uint(&w, CloneSessionRequest_for_bugreport, 1);
	if (which->hit != NULL)
		put_hit(&w, which->hit);
	invoke(k, "CloneSession", &w, which->fd);
	pb_writer_done(&w);
}
