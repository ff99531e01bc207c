#include "service/session/query.h"

#include "transport/pb_writer.h"
#include "service/session/model.h"
#include "service/session/session.h"

/* Field numbers: wire-format.md. */
enum {
	RESP_STATE = 1,
	STATE_PRODUCERS = 1,
	STATE_DATA_SOURCES = 2,
	STATE_NUM_SESSIONS = 3,
	STATE_NUM_STARTED = 4,
	STATE_VERSION = 5,
	STATE_SESSIONS = 6,
	STATE_SUPPORTS_SESSIONS = 7,
	PROD_ID = 1,
	PROD_NAME = 2,
	PROD_UID = 3,
	PROD_SDK = 4,
	PROD_PID = 5,
	PROD_MACHINE_ID = 7,
	PROD_MACHINE_NAME = 8,
	DS_DESCRIPTOR = 1,
	DS_PRODUCER = 2,
	SES_ID = 1,
	SES_UID = 2,
	SES_STATE = 3,
	SES_NAME = 4,
	SES_BUFFER_KB = 5,
	SES_DURATION = 6,
	SES_NUM_DS = 7,
	SES_START = 8,
	SES_SCORE = 9,
	SES_FILENAME = 10,
	SES_STARTED = 11,
	RESP_CAPABILITIES = 1,
	CAP_QUERY = 1,
	CAP_OBSERVABLE = 2,
	CAP_OUTPUT_PATH = 3,
	CAP_CLONE = 4,
};

/* Collects entries and hands parts out before they grow over max. */
struct parts {
	struct pb_writer part;  /* TracingServiceState fields, no envelope */
	struct pb_writer entry; /* one entry, with its tag */
	struct pb_writer reply;
	size_t max;
	query_part_fn fn;
	void *arg;
};

static void
send_part(struct parts *p, bool last)
{
	pb_writer_reset(&p->reply);
	pb_put_bytes(&p->reply, RESP_STATE, p->part.data, p->part.len);
	p->fn(p->arg, &p->reply, last);
	pb_writer_reset(&p->part);
}

static void
add_entry(struct parts *p)
{
	/* Tag and length of the envelope: 6 bytes at most. */
	if (p->entry.failed || p->entry.len + 6 > p->max)
		goto out;
	if (p->part.len + p->entry.len + 6 > p->max)
		send_part(p, false);
	pb_put_raw(&p->part, p->entry.data, p->entry.len);
out:
	pb_writer_reset(&p->entry);
}

static void
add_producer(struct parts *ps, const struct producer *p)
{
	struct pb_writer *w = &ps->entry;
	size_t mark = pb_nest_begin(w, STATE_PRODUCERS);

	pb_put_int(w, PROD_ID, (int32_t)p->id);
	pb_put_string(w, PROD_NAME, p->name);
	pb_put_int(w, PROD_UID, p->uid);
	if (p->sdk_version != NULL)
		pb_put_string(w, PROD_SDK, p->sdk_version);
	pb_put_int(w, PROD_PID, p->pid);
	if (p->machine->id != 0)
		pb_put_uint(w, PROD_MACHINE_ID, p->machine->id);
	if (p->machine->name != NULL)
		pb_put_string(w, PROD_MACHINE_NAME, p->machine->name);
	pb_nest_end(w, mark);
	add_entry(ps);
}

static void
add_data_source(struct parts *ps, const struct data_source *ds)
{
	struct pb_writer *w = &ps->entry;
	size_t mark = pb_nest_begin(w, STATE_DATA_SOURCES);

	pb_put_bytes(w, DS_DESCRIPTOR, ds->descriptor, ds->descriptor_len);
	pb_put_int(w, DS_PRODUCER, (int32_t)ds->producer->id);
	pb_nest_end(w, mark);
	add_entry(ps);
}

static void
add_session(struct parts *ps, const struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	struct pb_writer *w = &ps->entry;
	size_t mark = pb_nest_begin(w, STATE_SESSIONS), i;

	pb_put_uint(w, SES_ID, s->id);
	pb_put_int(w, SES_UID, s->uid);
	pb_put_string(w, SES_STATE, session_state_name(s->state));
	if (pb->unique_session_name != NULL)
		pb_put_string(w, SES_NAME, pb->unique_session_name);
	for (i = 0; i < s->n_buffers; i++)
		pb_put_uint(w, SES_BUFFER_KB, s->buffers[i].size / 1024);
	pb_put_uint(w, SES_DURATION, pb->duration_ms);
	pb_put_uint(w, SES_NUM_DS, s->n_instances);
	pb_put_int(w, SES_START, s->start_realtime_ns);
	if (pb->has_bugreport_score)
		pb_put_int(w, SES_SCORE, pb->bugreport_score);
	if (pb->bugreport_filename != NULL)
		pb_put_string(w, SES_FILENAME, pb->bugreport_filename);
	pb_put_uint(w, SES_STARTED, s->state == SESSION_STARTED);
	pb_nest_end(w, mark);
	add_entry(ps);
}

void
query_service_state(struct service *sv, const struct principal *who,
    bool sessions_only, size_t max, query_part_fn fn, void *arg)
{
	struct parts ps = { .max = max, .fn = fn, .arg = arg };
	const struct producer *p;
	const struct data_source *ds;
	const struct session *s;
	size_t started = 0;

	pb_writer_init(&ps.part);
	pb_writer_init(&ps.entry);
	pb_writer_init(&ps.reply);
	TAILQ_FOREACH(s, &sv->sessions, link)
		started += s->state == SESSION_STARTED;
	pb_put_uint(&ps.part, STATE_SUPPORTS_SESSIONS, 1);
	pb_put_uint(&ps.part, STATE_NUM_SESSIONS, sv->n_sessions);
	pb_put_uint(&ps.part, STATE_NUM_STARTED, started);
	pb_put_string(&ps.part, STATE_VERSION,
	    "Tributary " TRIBUTARY_VERSION);
	if (!sessions_only) {
		TAILQ_FOREACH(p, &sv->producers, link)
			if (!p->gone)
				add_producer(&ps, p);
		TAILQ_FOREACH(p, &sv->producers, link)
			TAILQ_FOREACH(ds, &p->data_sources, link)
				add_data_source(&ps, ds);
	}
	TAILQ_FOREACH(s, &sv->sessions, link)
		if (session_is_visible(s, who))
			add_session(&ps, s);
	send_part(&ps, true);
	pb_writer_done(&ps.part);
	pb_writer_done(&ps.entry);
	pb_writer_done(&ps.reply);
}

void
query_capabilities(struct pb_writer *w)
{
	size_t mark = pb_nest_begin(w, RESP_CAPABILITIES);

	pb_put_uint(w, CAP_QUERY, 1);
	pb_put_uint(w, CAP_OBSERVABLE, OBSERVE_INSTANCES);
	pb_put_uint(w, CAP_OBSERVABLE, OBSERVE_ALL_STARTED);
	pb_put_uint(w, CAP_OBSERVABLE, OBSERVE_CLONE_TRIGGER);
	pb_put_uint(w, CAP_OUTPUT_PATH, 1);
	pb_put_uint(w, CAP_CLONE, 1);
	pb_nest_end(w, mark);
}
