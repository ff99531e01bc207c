#include "client/library/consumer_reply.h"

#include <stdlib.h>
#include <string.h>

#include "protos/consumer_port.pb-c.h"
#include "protos/fields.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_stats.pb-c.h"
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

static void
stats_reply(const struct consumer_call *k, const uint8_t *msg, size_t len)
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
state_reply(struct consumer_call *k, const uint8_t *msg, size_t len, bool more)
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

/* Messages in a row are one message, so the parts need only be unwrapped. */
static void
raw_state_reply(struct consumer_call *k, const uint8_t *msg, size_t len,
    bool more)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number != QueryServiceStateResponse_service_state ||
		    f.wire != PB_BYTES)
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
		k->fn.raw_state(k->arg, NULL, 0);
	else
		k->fn.raw_state(k->arg, k->parts.len == 0 ?
		    (const uint8_t *)"" : k->parts.data, k->parts.len);
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
attach_reply(const struct consumer_call *k, const uint8_t *msg, size_t len)
{
	const uint8_t *config = (const uint8_t *)"";
	struct pb_reader r;
	struct pb_field f;
	size_t config_len = 0;

	PB_FOREACH(&f, &r, msg, len) {
		if (f.number == AttachResponse_trace_config &&
		    f.wire == PB_BYTES) {
			config = f.data;
			config_len = f.len;
		}
	}
	k->fn.attach(k->arg, config, config_len);
}

static void
clone_reply(const struct consumer_call *k, const uint8_t *msg, size_t len)
{
	struct consumer_cloned r = {
		.error = "the answer of the collector is malformed",
	};
	Perfetto__Protos__CloneSessionResponse *m;

	m = perfetto__protos__clone_session_response__unpack(NULL, len, msg);
	if (m != NULL && m->success) {
		r.error = NULL;
		r.written = m->was_write_into_file;
		r.uuid_msb = (uint64_t)m->uuid_msb;
		r.uuid_lsb = (uint64_t)m->uuid_lsb;
	} else if (m != NULL) {
		r.error = m->error != NULL && m->error[0] != '\0' ? m->error :
			"the collector did not clone the session";
	}
	k->fn.clone(k->arg, &r);
	if (m != NULL)
		perfetto__protos__clone_session_response__free_unpacked(m,
		    NULL);
}

void
consumer_reply_good(struct consumer_call *k, const uint8_t *msg, size_t len,
    bool more)
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
	case CALL_RAW_STATE:
		raw_state_reply(k, msg, len, more);
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

void
consumer_reply_bad(struct consumer_call *k)
{
	struct consumer *c = k->c;

	switch (k->kind) {
	case CALL_ENABLE:
		if (c->ops->tracing_disabled != NULL)
			c->ops->tracing_disabled(c->arg,
			    "it refuses to start a session");
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
	case CALL_RAW_STATE:
		k->fn.raw_state(k->arg, NULL, 0);
		break;
	case CALL_OBSERVE:
		break;
	case CALL_ATTACH:
		k->fn.attach(k->arg, NULL, 0);
		break;
	case CALL_CLONE:
		k->fn.clone(k->arg, &(struct consumer_cloned){
			.error = "the collector refused to clone the session",
		});
		break;
	}
}
