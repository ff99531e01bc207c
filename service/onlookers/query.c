#include "service/onlookers/query.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "service/access/principal.h"
#include "service/model/model.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "transport/clock/system_info.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_writer.h"

/* Around an entry: 4 bytes of the envelope, 27 of the frame's head. */
#define ENTRY_MOST (FRAME_MAX_BYTES - 32u)

struct query {
	LIST_ENTRY(query) link;
	struct service *service;
	struct principal who;
	bool begun;
	/*
	 * Next entries of each list, NULL at its end.  The counts bound the
	 * walk, so that entries which join faster than it proceeds do not keep
	 * it going for ever.
	 */
	const struct producer *producer;
	size_t producers_left;
	const struct data_source *data_source;
	size_t data_sources_left;
	const struct session *session;
	size_t sessions_left;

	struct pb_writer part;  /* TracingServiceState fields, no envelope */
	struct pb_writer entry; /* one entry, with its tag; or empty */
	struct pb_writer reply;
};

static void
put_producer(struct pb_writer *w, const struct producer *p)
{
	size_t mark = pb_nest_begin(w, TracingServiceState_producers);

	pb_put_int(w, Producer_id, (int32_t)p->id);
	pb_put_string(w, Producer_name, p->name);
	pb_put_int(w, Producer_uid, p->uid);
	if (p->sdk_version != NULL)
		pb_put_string(w, Producer_sdk_version, p->sdk_version);
	pb_put_int(w, Producer_pid, p->pid);
	if (p->machine->id != 0)
		pb_put_uint(w, Producer_machine_id, p->machine->id);
	if (producer_machine_name(p) != NULL)
		pb_put_string(w, Producer_machine_name,
		    producer_machine_name(p));
	pb_nest_end(w, mark);
}

static void
put_data_source(struct pb_writer *w, const struct data_source *ds)
{
	size_t mark = pb_nest_begin(w, TracingServiceState_data_sources);

	pb_put_bytes(w, TracingServiceState_DataSource_ds_descriptor,
	    ds->descriptor.encoded, ds->descriptor.len);
	pb_put_int(w, TracingServiceState_DataSource_producer_id,
	    (int32_t)ds->producer->id);
	pb_nest_end(w, mark);
}

static void
put_session(struct pb_writer *w, const struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	size_t mark = pb_nest_begin(w, TracingServiceState_tracing_sessions), i;

	pb_put_uint(w, TracingSession_id, s->id);
	pb_put_int(w, TracingSession_consumer_uid, s->uid);
	pb_put_string(w, TracingSession_state,
	    session_phase_name(session_phase(s->state)));
	if (pb->unique_session_name != NULL)
		pb_put_string(w, TracingSession_unique_session_name,
		    pb->unique_session_name);
	for (i = 0; i < s->n_buffers; i++)
		pb_put_uint(w, TracingSession_buffer_size_kb,
		    s->buffers[i].size / 1024);
	pb_put_uint(w, TracingSession_duration_ms, pb->duration_ms);
	pb_put_uint(w, TracingSession_num_data_sources, s->n_instances);
	pb_put_int(w, TracingSession_start_realtime_ns, s->start_realtime_ns);
	if (pb->has_bugreport_score)
		pb_put_int(w, TracingSession_bugreport_score,
		    pb->bugreport_score);
	if (pb->bugreport_filename != NULL)
		pb_put_string(w, TracingSession_bugreport_filename,
		    pb->bugreport_filename);
	pb_put_uint(w, TracingSession_is_started,
	    session_phase(s->state) == SESSION_PHASE_STARTED);
	pb_nest_end(w, mark);
}

static void
put_numbers(struct pb_writer *w, const struct service *sv)
{
	const struct session *s;
	size_t started = 0, n = 0;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		n += s->state != SESSION_GONE;
		started += session_phase(s->state) == SESSION_PHASE_STARTED;
	}
	pb_put_uint(w, TracingServiceState_supports_tracing_sessions, 1);
	pb_put_uint(w, TracingServiceState_num_sessions, n);
	pb_put_uint(w, TracingServiceState_num_sessions_started, started);
	pb_put_string(w, TracingServiceState_tracing_service_version,
	    SYSTEM_INFO_VERSION);
}

/* ---- the walk ---- */

struct query *
query_new(struct service *s, const struct principal *who, bool sessions_only)
{
	struct query *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	q->service = s;
	q->who = *who;
	if (!sessions_only) {
		q->producer = TAILQ_FIRST(&s->producers);
		q->data_source = source_order_first(&s->sources);
	}
	q->producers_left = s->n_producers;
	q->data_sources_left = s->n_data_sources;
	q->session = TAILQ_FIRST(&s->sessions);
	q->sessions_left = s->n_sessions;
	pb_writer_init(&q->part);
	pb_writer_init(&q->entry);
	pb_writer_init(&q->reply);
	LIST_INSERT_HEAD(&s->queries, q, link);
	return q;
}

void
query_free(struct query *q)
{
	if (q == NULL)
		return;
	LIST_REMOVE(q, link);
	pb_writer_done(&q->part);
	pb_writer_done(&q->entry);
	pb_writer_done(&q->reply);
	free(q);
}

static bool
next_producer(struct query *q)
{
	const struct producer *p;

	while ((p = q->producer) != NULL && q->producers_left > 0) {
		q->producer = TAILQ_NEXT(p, link);
		q->producers_left--;
		if (p->state == PRODUCER_GONE)
			continue;
		put_producer(&q->entry, p);
		return true;
	}
	q->producer = NULL;
	return false;
}

static bool
next_data_source(struct query *q)
{
	const struct data_source *ds;

	while ((ds = q->data_source) != NULL && q->data_sources_left > 0) {
		q->data_source = source_order_next(&q->service->sources, ds);
		q->data_sources_left--;
		if (ds->producer->state == PRODUCER_GONE)
			continue;
		put_data_source(&q->entry, ds);
		return true;
	}
	q->data_source = NULL;
	return false;
}

static bool
next_session(struct query *q)
{
	const struct session *s;

	while ((s = q->session) != NULL && q->sessions_left > 0) {
		q->session = TAILQ_NEXT(s, link);
		q->sessions_left--;
		if (s->state == SESSION_GONE ||
		    !session_is_visible(s, &q->who))
			continue;
		put_session(&q->entry, s);
		return true;
	}
	q->session = NULL;
	return false;
}

/* Writes the next entry of the walk; false: there are no more. */
static bool
next_entry(struct query *q)
{
	return next_producer(q) || next_data_source(q) || next_session(q);
}

const struct pb_writer *
query_next(struct query *q, size_t max, bool *last)
{
	pb_writer_reset(&q->part);
	pb_writer_reset(&q->reply);
	if (!q->begun)
		put_numbers(&q->part, q->service);
	q->begun = true;
	*last = false;
	for (;;) {
		if (q->entry.len == 0 && !next_entry(q)) {
			*last = true;
			break;
		}
		/* Tag and length of the envelope: 6 bytes at most. */
		if (q->part.len > 0 && q->part.len + q->entry.len + 6 > max)
			break;
		if (!q->entry.failed && q->entry.len <= ENTRY_MOST)
			pb_put_raw(&q->part, q->entry.data, q->entry.len);
		pb_writer_reset(&q->entry);
	}
	pb_put_bytes(&q->reply, QueryServiceStateResponse_service_state,
	    q->part.data, q->part.len);
	return q->part.failed || q->reply.failed ? NULL : &q->reply;
}

/* ---- what leaves its list: no query may stand there any more ---- */

static void
on_producer_leaves(struct producer *p)
{
	struct query *q;

	LIST_FOREACH(q, &p->service->queries, link)
		if (q->producer == p)
			q->producer = TAILQ_NEXT(p, link);
}

static void
on_source_leaves(struct data_source *ds)
{
	struct service *s = ds->producer->service;
	struct query *q;

	LIST_FOREACH(q, &s->queries, link)
		if (q->data_source == ds)
			q->data_source = source_order_next(&s->sources, ds);
}

static void
on_session(struct session *s, enum session_event e)
{
	struct query *q;

	if (e != SESSION_EVENT_LEAVES)
		return;
	LIST_FOREACH(q, &s->service->queries, link)
		if (q->session == s)
			q->session = TAILQ_NEXT(s, link);
}

const struct session_observer query_observer = {
	.session = on_session,
	.producer_leaves = on_producer_leaves,
	.source_leaves = on_source_leaves,
};

void
query_capabilities(struct pb_writer *w)
{
	size_t mark = pb_nest_begin(w, QueryCapabilitiesResponse_capabilities);

	pb_put_uint(w, TracingServiceCapabilities_has_query_capabilities, 1);
	pb_put_uint(w, TracingServiceCapabilities_observable_events,
	    OBSERVE_INSTANCES);
	pb_put_uint(w, TracingServiceCapabilities_observable_events,
	    OBSERVE_ALL_STARTED);
	pb_put_uint(w, TracingServiceCapabilities_observable_events,
	    OBSERVE_CLONE_TRIGGER);
	pb_put_uint(w, TracingServiceCapabilities_has_trace_config_output_path,
	    1);
	pb_put_uint(w, TracingServiceCapabilities_has_clone_session, 1);
	pb_nest_end(w, mark);
}
