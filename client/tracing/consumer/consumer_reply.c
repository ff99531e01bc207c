#include <stdlib.h>
#include <string.h>

#include "client/tracing/consumer/consumer_internal.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

static void
warn(struct consumer *c, const struct pb_field *f)
{
	char *sentence;

	if (c->ops->warned == NULL ||
	    (sentence = strndup((const char *)f->data, f->len)) == NULL)
		return;
	c->ops->warned(c->arg, sentence);
	free(sentence);
}

static void
enable_reply(struct consumer *c, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	char *error = NULL;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.wire != PB_BYTES || f.len == 0)
			continue;
		if (f.number == EnableTracingResponse_warnings) {
			warn(c, &f);
		} else if (f.number == EnableTracingResponse_error) {
			free(error);
			error = strndup((const char *)f.data, f.len);
		}
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

/*
 * The field of the reply that holds the message.  Messages in a row are one
 * message, so the parts need only be unwrapped.
 */
static uint32_t
message_field(enum consumer_method m)
{
	if (m == CONSUMER_GET_TRACE_STATS)
		return GetTraceStatsResponse_trace_stats;
	if (m == CONSUMER_QUERY_SERVICE_STATE)
		return QueryServiceStateResponse_service_state;
	return AttachResponse_trace_config;
}

static void
message_reply(struct consumer_call *k, const uint8_t *msg, size_t len,
    bool more)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number != message_field(k->method) || f.wire != PB_BYTES)
			continue;
		if (k->parts.len + f.len <= CONSUMER_MAX_STATE)
			pb_put_raw(&k->parts, f.data, f.len);
		else
			k->parts.failed = true;
	}
	k->parts.failed |= r.bad;
	if (more)
		return;
	if (k->parts.failed)
		k->fn.message(k->arg, NULL, 0);
	else
		k->fn.message(k->arg, k->parts.len == 0 ?
		    (const uint8_t *)"" : k->parts.data, k->parts.len);
}

static void
observe_reply(struct consumer *c, const uint8_t *msg, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number != ObserveEventsResponse_events ||
		    f.wire != PB_BYTES || c->ops->observed == NULL)
			continue;
		c->ops->observed(c->arg, f.data, f.len);
		if (c->closed)
			return;
	}
}

static void
clone_reply(const struct consumer_call *k, const uint8_t *msg, size_t len)
{
	struct consumer_cloned clone = { .error = NULL };
	struct pb_reader r;
	struct pb_field f;
	char *error = NULL;
	bool success = false;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number == CloneSessionResponse_success) {
			success = f.value != 0;
		} else if (f.number == CloneSessionResponse_error &&
		    f.wire == PB_BYTES && f.len > 0) {
			free(error);
			error = strndup((const char *)f.data, f.len);
		} else if (f.number == CloneSessionResponse_uuid_msb) {
			clone.uuid_msb = f.value;
		} else if (f.number == CloneSessionResponse_uuid_lsb) {
			clone.uuid_lsb = f.value;
		} else if (f.number ==
		    CloneSessionResponse_was_write_into_file) {
			clone.written = f.value != 0;
		}
	}
	if (r.bad)
		clone.error = "the answer of the collector is malformed";
	else if (!success)
		clone.error = error != NULL ? error :
		    "the collector did not clone the session";
	k->fn.clone(k->arg, &clone);
	free(error);
}

void
consumer_reply_good(struct consumer_call *k, const uint8_t *msg, size_t len,
    bool more)
{
	switch (k->method) {
	case CONSUMER_ENABLE_TRACING:
		if (!more)
			enable_reply(k->c, msg, len);
		break;
	case CONSUMER_START_TRACING:
	case CONSUMER_FLUSH:
	case CONSUMER_DISABLE_TRACING:
	case CONSUMER_FREE_BUFFERS:
	case CONSUMER_DETACH:
		if (!more && k->fn.done != NULL)
			k->fn.done(k->arg, true);
		break;
	case CONSUMER_READ_BUFFERS:
		read_reply(k->c, msg, len, more);
		break;
	case CONSUMER_GET_TRACE_STATS:
	case CONSUMER_QUERY_SERVICE_STATE:
	case CONSUMER_ATTACH:
		message_reply(k, msg, len, more);
		break;
	case CONSUMER_OBSERVE_EVENTS:
		observe_reply(k->c, msg, len);
		break;
	case CONSUMER_CLONE_SESSION:
		clone_reply(k, msg, len);
		break;
	case CONSUMER_METHODS:
		break;
	}
}

void
consumer_reply_bad(struct consumer_call *k)
{
	struct consumer *c = k->c;

	switch (k->method) {
	case CONSUMER_ENABLE_TRACING:
		if (c->ops->tracing_disabled != NULL)
			c->ops->tracing_disabled(c->arg,
			    "it refuses to start a session");
		break;
	case CONSUMER_START_TRACING:
	case CONSUMER_FLUSH:
	case CONSUMER_DISABLE_TRACING:
	case CONSUMER_FREE_BUFFERS:
	case CONSUMER_DETACH:
		if (k->fn.done != NULL)
			k->fn.done(k->arg, false);
		break;
	case CONSUMER_READ_BUFFERS:
		read_ended(c, "the collector refused to hand out the trace");
		break;
	case CONSUMER_GET_TRACE_STATS:
	case CONSUMER_QUERY_SERVICE_STATE:
	case CONSUMER_ATTACH:
		k->fn.message(k->arg, NULL, 0);
		break;
	case CONSUMER_CLONE_SESSION:
		k->fn.clone(k->arg, &(struct consumer_cloned){
			.error = "the collector refused to clone the session",
		});
		break;
	case CONSUMER_OBSERVE_EVENTS:
	case CONSUMER_METHODS:
		break;
	}
}
