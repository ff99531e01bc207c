#include "client/show/perfetto_sessions.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "protos/control.pb-c.h"
#include "protos/fields.h"
#include "protos/service_state.pb-c.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__TracingServiceState service_state;
typedef Perfetto__Protos__TracingServiceState__TracingSession foreign_session;

/* Maps a state of Perfetto's protocol to ours; 0: another. */
static uint64_t
state_of(const foreign_session *s)
{
	static const struct {
		const char *name;
		uint64_t state;
	} states[] = {
		{ "CONFIGURED", TRIBUTARY__SESSION_STATE__STATE__CONFIGURED },
		{ "STARTED", TRIBUTARY__SESSION_STATE__STATE__STARTED },
		{ "STOP_WAIT", TRIBUTARY__SESSION_STATE__STATE__STOPPING },
		{ "DISABLED", TRIBUTARY__SESSION_STATE__STATE__DISABLED },
		{ "CLONED_READ_ONLY", TRIBUTARY__SESSION_STATE__STATE__CLONED },
	};
	size_t i;

	for (i = 0; s->state != NULL && i < sizeof(states) / sizeof(states[0]);
	    i++)
		if (strcmp(s->state, states[i].name) == 0)
			return states[i].state;
	return 0;
}

static void
put_session(struct pb_writer *w, const foreign_session *s)
{
	size_t mark = pb_nest_begin(w, QuerySessionsReply_sessions), inner, i;
	char owner[32];

	pb_put_uint(w, SessionState_id, s->id);
	if (s->unique_session_name != NULL)
		pb_put_string(w, SessionState_unique_session_name,
		    s->unique_session_name);
	pb_put_uint(w, SessionState_state, state_of(s));
	snprintf(owner, sizeof(owner), "uid %d", (int)s->consumer_uid);
	pb_put_string(w, SessionState_owner, owner);
	if (s->start_realtime_ns > 0)
		pb_put_uint(w, SessionState_started_ns,
		    (uint64_t)s->start_realtime_ns);
	if (s->duration_ms != 0)
		pb_put_uint(w, SessionState_planned_ms, s->duration_ms);
	for (i = 0; i < s->n_buffer_size_kb; i++) {
		inner = pb_nest_begin(w, SessionState_buffers);
		pb_put_uint(w, SessionState_Buffer_size,
		    (uint64_t)s->buffer_size_kb[i] * 1024);
		pb_nest_end(w, inner);
	}
	pb_put_uint(w, SessionState_data_sources, s->num_data_sources);
	pb_nest_end(w, mark);
}

Tributary__QuerySessionsReply *
perfetto_sessions(const service_state *state)
{
	Tributary__QuerySessionsReply *reply = NULL;
	struct pb_writer w;
	size_t i;

	/* The service has sessions, but is too old to list them. */
	if (!state->supports_tracing_sessions && state->num_sessions > 0 &&
	    state->n_tracing_sessions == 0)
		return NULL;
	pb_writer_init(&w);
	for (i = 0; i < state->n_tracing_sessions; i++)
		put_session(&w, state->tracing_sessions[i]);
	if (!w.failed)
		reply = tributary__query_sessions_reply__unpack(NULL, w.len,
		    w.data);
	pb_writer_done(&w);
	return reply;
}
