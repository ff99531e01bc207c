#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/model/model.h"
#include "service/onlookers/session_report.h"
#include "service/port/control_internal.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/wire/pb_reader.h"

/* The filter of a question; without either, all sessions match. */
struct wanted {
	bool has_id;
	uint64_t id;
	const uint8_t *name; /* borrowed; NULL: none */
	size_t name_len;
	bool with_stats;
};

static bool
parse(const uint8_t *args, size_t len, struct wanted *w)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, args, len) {
		if (f.number == QuerySessionsRequest_id &&
		    f.wire == PB_VARINT) {
			w->has_id = true;
			w->id = f.value;
		} else if (f.number == QuerySessionsRequest_unique_session_name
		    && f.wire == PB_BYTES) {
			w->name = f.data;
			w->name_len = f.len;
		} else if (f.number == QuerySessionsRequest_with_stats &&
		    f.wire == PB_VARINT) {
			w->with_stats = f.value != 0;
		} else if (f.number <= QuerySessionsRequest_with_stats) {
			return false;
		}
	}
	return !r.bad;
}

static bool
is_named(const struct session *s, const struct wanted *w)
{
	const char *name = s->config->pb->unique_session_name;

	return name != NULL && strlen(name) == w->name_len &&
	    memcmp(name, w->name, w->name_len) == 0;
}

static bool
is_wanted(const struct session *s, const struct wanted *w)
{
	return (!w->has_id || s->id == w->id) &&
	    (w->name == NULL || is_named(s, w));
}

static void
put_overload(struct pb_writer *w, const struct overload *o)
{
	size_t mark;
	int i;

	if (o->times[OVERLOAD_DOORS] == 0)
		return;
	mark = pb_nest_begin(w, QuerySessionsReply_overload);
	pb_put_uint(w, OverloadState_level, (uint64_t)o->level);
	pb_put_string(w, OverloadState_text, overload_text(o->level));
	pb_put_uint(w, OverloadState_lag_ms, o->lag_ms);
	for (i = OVERLOAD_DOORS; i < OVERLOAD_LEVELS; i++)
		pb_put_uint(w, OverloadState_times, o->times[i]);
	pb_put_uint(w, OverloadState_left_out, o->left_out);
	pb_nest_end(w, mark);
}

static void
put_head(struct control *p, struct pb_writer *part)
{
	const struct service *s = p->service;
	const struct limits *l = &s->settings->limits;

	pb_put_uint(part, QuerySessionsReply_now_ns, control_now_ns());
	pb_put_uint(part, QuerySessionsReply_buffer_bytes,
	    s->total_buffer_bytes);
	pb_put_uint(part, QuerySessionsReply_max_buffer_bytes,
	    l->max_total_buffer_kb * 1024);
	pb_put_uint(part, QuerySessionsReply_max_sessions, l->max_sessions);
	pb_put_uint(part, QuerySessionsReply_all_sessions, s->n_sessions);
	put_overload(part, &s->overload);
}

static bool
put_next(struct control *p, struct pb_writer *entry)
{
	struct session *s;
	size_t mark;

	if (p->next == p->n_entries)
		return false;
	s = session_find(p->service, p->sessions[p->next++]);
	if (s == NULL)
		return true;
	mark = pb_nest_begin(entry, QuerySessionsReply_sessions);
	session_report(s, p->with_stats, entry);
	pb_nest_end(entry, mark);
	return true;
}

static const struct control_question question = {
	.head = put_head,
	.entry = put_next,
};

enum rpc_verdict
control_query_sessions(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct control *p = port;
	struct wanted w = { 0 };
	const struct session *s;
	size_t n = 0;

	if (!parse(args, len, &w))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	p->sessions = calloc(p->service->n_sessions + 1,
	    sizeof(*p->sessions));
	if (p->sessions == NULL)
		return RPC_REJECT;
	TAILQ_FOREACH(s, &p->service->sessions, link)
		if (s->state != SESSION_GONE && principal_may(&p->who, &s->owner) &&
		    is_wanted(s, &w))
			p->sessions[n++] = s->id;
	p->n_entries = n;
	p->with_stats = w.with_stats;
	control_answer(p, call, &question);
	return RPC_OK;
}
