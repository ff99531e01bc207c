#include "client/tracing/consumer/consumer.h"

#include <stdlib.h>

#include "client/tracing/consumer/consumer_internal.h"
#include "protos/fields.h"

const char *
consumer_method_name(enum consumer_method m)
{
	static const char *const names[CONSUMER_METHODS] = {
		[CONSUMER_ENABLE_TRACING] = "EnableTracing",
		[CONSUMER_START_TRACING] = "StartTracing",
		[CONSUMER_FLUSH] = "Flush",
		[CONSUMER_DISABLE_TRACING] = "DisableTracing",
		[CONSUMER_READ_BUFFERS] = "ReadBuffers",
		[CONSUMER_FREE_BUFFERS] = "FreeBuffers",
		[CONSUMER_GET_TRACE_STATS] = "GetTraceStats",
		[CONSUMER_QUERY_SERVICE_STATE] = "QueryServiceState",
		[CONSUMER_OBSERVE_EVENTS] = "ObserveEvents",
		[CONSUMER_DETACH] = "Detach",
		[CONSUMER_ATTACH] = "Attach",
		[CONSUMER_CLONE_SESSION] = "CloneSession",
	};

	return names[m];
}

static void
end_call(struct consumer_call *k)
{
	LIST_REMOVE(k, link);
	pb_writer_done(&k->parts);
	free(k);
}

static void
destroy(struct consumer *c)
{
	struct consumer_call *k;

	c->wire_ops->close(c->wire);
	while ((k = LIST_FIRST(&c->calls)) != NULL)
		end_call(k);
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

struct consumer *
consumer_new(const struct consumer_setup *setup)
{
	struct consumer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->ops = setup->ops;
	c->arg = setup->arg;
	c->wire_ops = setup->wire_ops;
	c->wire = setup->wire;
	LIST_INIT(&c->calls);
	return c;
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

bool
consumer_can_pass_fds(const struct consumer *c)
{
	return c->fds;
}

/* ---- What the wire tells ---- */

void
consumer_wire_up(struct consumer *c, bool fds)
{
	c->fds = fds;
	enter(c);
	c->ops->connected(c->arg);
	leave(c);
}

void
consumer_wire_down(struct consumer *c, const char *why)
{
	enter(c);
	c->ops->disconnected(c->arg, why);
	leave(c);
}

void
consumer_wire_failed(struct consumer *c)
{
	struct consumer_call *k, *next;

	if (c->no_memory) {
		consumer_wire_down(c, "out of memory");
		return;
	}
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

void
consumer_wire_reply(struct consumer_call *k, bool ok, bool more,
    const uint8_t *msg, size_t len)
{
	struct consumer *c = k->c;

	if (!ok) {
		/*
		 * Calls also fail when the connection ends, just before
		 * consumer_wire_down(), which tells why.
		 */
		k->failed = true;
		c->wire_ops->failed(c->wire);
		return;
	}
	enter(c);
	consumer_reply_good(k, msg, len, more);
	if (!more)
		end_call(k);
	leave(c);
}

/* ---- The calls ---- */

/* NULL: no memory; disconnected() then follows instead of any reply. */
static struct consumer_call *
call_new(struct consumer *c, enum consumer_method method, void *arg)
{
	struct consumer_call *k;

	if ((k = calloc(1, sizeof(*k))) == NULL) {
		c->no_memory = true;
		c->wire_ops->failed(c->wire);
		return NULL;
	}
	k->c = c;
	k->method = method;
	k->arg = arg;
	pb_writer_init(&k->parts);
	LIST_INSERT_HEAD(&c->calls, k, link);
	return k;
}

static void
invoke(struct consumer_call *k, const struct pb_writer *args, int fd)
{
	struct consumer_request r = { .method = k->method, .fd = fd,
	    .call = k };

	if (args != NULL) {
		r.args = args->data;
		r.len = args->len;
	}
	if ((args == NULL || !args->failed) &&
	    k->c->wire_ops->invoke(k->c->wire, &r))
		return;
	k->failed = true;
	k->c->wire_ops->failed(k->c->wire);
}

void
consumer_enable_tracing(struct consumer *c, const uint8_t *config, size_t len,
    int fd)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CONSUMER_ENABLE_TRACING, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_bytes(&w, EnableTracingRequest_trace_config, config, len);
	invoke(k, &w, fd);
	pb_writer_done(&w);
}

void
consumer_watch_tracing(struct consumer *c)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CONSUMER_ENABLE_TRACING, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	pb_put_uint(&w, EnableTracingRequest_attach_notification_only, 1);
	invoke(k, &w, -1);
	pb_writer_done(&w);
}

static void
simple_call(struct consumer *c, enum consumer_method method,
    const struct pb_writer *args, consumer_done_fn fn, void *arg)
{
	struct consumer_call *k;

	if ((k = call_new(c, method, arg)) == NULL)
		return;
	k->fn.done = fn;
	invoke(k, args, -1);
}

void
consumer_start_tracing(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, CONSUMER_START_TRACING, NULL, fn, arg);
}

void
consumer_flush(struct consumer *c, uint32_t timeout_ms, uint64_t flags,
    consumer_done_fn fn, void *arg)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, FlushRequest_timeout_ms, timeout_ms);
	pb_put_uint(&w, FlushRequest_flags, flags);
	simple_call(c, CONSUMER_FLUSH, &w, fn, arg);
	pb_writer_done(&w);
}

void
consumer_disable_tracing(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, CONSUMER_DISABLE_TRACING, NULL, fn, arg);
}

void
consumer_free_buffers(struct consumer *c, consumer_done_fn fn, void *arg)
{
	simple_call(c, CONSUMER_FREE_BUFFERS, NULL, fn, arg);
}

void
consumer_read_buffers(struct consumer *c)
{
	struct consumer_call *k;

	if ((k = call_new(c, CONSUMER_READ_BUFFERS, NULL)) != NULL)
		invoke(k, NULL, -1);
}

static void
set_paused(struct consumer *c, bool paused)
{
	if (c->wire_ops->pause != NULL)
		c->wire_ops->pause(c->wire, paused);
}

void
consumer_pause(struct consumer *c)
{
	set_paused(c, true);
}

void
consumer_resume(struct consumer *c)
{
	set_paused(c, false);
}

static void
message_call(struct consumer *c, enum consumer_method method,
    const struct pb_writer *args, consumer_message_fn fn, void *arg)
{
	struct consumer_call *k;

	if ((k = call_new(c, method, arg)) == NULL)
		return;
	k->fn.message = fn;
	invoke(k, args, -1);
}

void
consumer_get_trace_stats(struct consumer *c, consumer_message_fn fn,
    void *arg)
{
	message_call(c, CONSUMER_GET_TRACE_STATS, NULL, fn, arg);
}

void
consumer_query_service_state(struct consumer *c, bool sessions_only,
    consumer_message_fn fn, void *arg)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, QueryServiceStateRequest_sessions_only, sessions_only);
	message_call(c, CONSUMER_QUERY_SERVICE_STATE, &w, fn, arg);
	pb_writer_done(&w);
}

void
consumer_observe_events(struct consumer *c, uint32_t mask)
{
	struct consumer_call *k;
	struct pb_writer w;
	uint32_t bit;

	if ((k = call_new(c, CONSUMER_OBSERVE_EVENTS, NULL)) == NULL)
		return;
	pb_writer_init(&w);
	for (bit = 1; bit != 0 && bit <= mask; bit <<= 1) {
		if ((mask & bit) != 0)
			pb_put_uint(&w, ObserveEventsRequest_events_to_observe,
			    bit);
	}
	invoke(k, &w, -1);
	pb_writer_done(&w);
}

void
consumer_detach(struct consumer *c, const char *key, consumer_done_fn fn,
    void *arg)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, DetachRequest_key, key);
	simple_call(c, CONSUMER_DETACH, &w, fn, arg);
	pb_writer_done(&w);
}

void
consumer_attach(struct consumer *c, const char *key, consumer_message_fn fn,
    void *arg)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, AttachRequest_key, key);
	message_call(c, CONSUMER_ATTACH, &w, fn, arg);
	pb_writer_done(&w);
}

static void
put_hit(struct pb_writer *w, const struct consumer_hit *hit)
{
	if (hit->trigger != NULL)
		pb_put_string(w, CloneSessionRequest_clone_trigger_name,
		    hit->trigger);
	if (hit->producer != NULL)
		pb_put_string(w,
		    CloneSessionRequest_clone_trigger_producer_name,
		    hit->producer);
	pb_put_int(w, CloneSessionRequest_clone_trigger_trusted_producer_uid,
	    hit->uid);
	pb_put_uint(w, CloneSessionRequest_clone_trigger_boot_time_ns,
	    hit->boot_time_ns);
	pb_put_uint(w, CloneSessionRequest_clone_trigger_delay_ms,
	    hit->delay_ms);
}

void
consumer_clone_session(struct consumer *c, const struct consumer_clone *which,
    consumer_clone_fn fn, void *arg)
{
	struct consumer_call *k;
	struct pb_writer w;

	if ((k = call_new(c, CONSUMER_CLONE_SESSION, arg)) == NULL)
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
	invoke(k, &w, which->fd);
	pb_writer_done(&w);
}
