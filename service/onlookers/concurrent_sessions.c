#include "service/onlookers/concurrent_sessions.h"

#include "service/model/model.h"
#include "service/packet/event_log.h"
#include "service/session/session.h"
#include "service/session/session_events.h"

/* The phase in the words of service events; not for NEW. */
static enum service_session_state
state_of(const struct session *s)
{
	switch (session_phase(s->state)) {
	case SESSION_PHASE_NEW:
	case SESSION_PHASE_CONFIGURED:
		return SERVICE_SESSION_CONFIGURED;
	case SESSION_PHASE_STARTED:
		return SERVICE_SESSION_STARTED;
	case SESSION_PHASE_STOPPING:
		return SERVICE_SESSION_STOPPING;
	case SESSION_PHASE_DISABLED:
		return SERVICE_SESSION_DISABLED;
	case SESSION_PHASE_CLONED:
		return SERVICE_SESSION_CLONED;
	}
	return SERVICE_SESSION_DISABLED;
}

static bool
listens(const struct session *s)
{
	enum session_phase phase = session_phase(s->state);

	return (phase == SESSION_PHASE_STARTED ||
	    phase == SESSION_PHASE_STOPPING) &&
	    s->config->pb->builtin_data_sources != NULL &&
	    s->config->pb->builtin_data_sources->
	    enable_concurrent_session_events;
}

static void
put(const struct session *to, const struct session *about,
    enum service_session_state state)
{
	const Perfetto__Protos__TraceConfig *pb = about->config->pb;
	const struct service_session_event e = {
		.state = state,
		.name = pb->unique_session_name,
		.id = about->id,
		.consumer_uid = about->uid,
		.num_data_sources = (uint32_t)pb->n_data_sources,
	};

	if (to != about && session_is_visible(about, &to->owner))
		event_log_session(to->events, &e);
}

static void
tell(const struct session *s, enum service_session_state state)
{
	const struct session *to;

	TAILQ_FOREACH(to, &s->service->sessions, link)
		if (listens(to))
			put(to, s, state);
}

/* Tells other sessions' traces that s ended, unless they were told so. */
static void
tell_freed(const struct session *s)
{
	switch (session_phase(s->state)) {
	case SESSION_PHASE_CONFIGURED:
	case SESSION_PHASE_STARTED:
	case SESSION_PHASE_STOPPING:
		tell(s, SERVICE_SESSION_DISABLED);
		break;
	case SESSION_PHASE_NEW:
	case SESSION_PHASE_DISABLED:
	case SESSION_PHASE_CLONED:
		break;
	}
}

/* A session starts: writes the others that have not ended into its trace. */
static void
tell_of_others(struct session *s)
{
	const struct session *o;

	if (!listens(s))
		return;
	TAILQ_FOREACH(o, &s->service->sessions, link)
		if (o->state != SESSION_NEW &&
		    session_phase(o->state) != SESSION_PHASE_DISABLED)
			put(s, o, state_of(o));
}

static void
on_session(struct session *s, enum session_event e)
{
	switch (e) {
	case SESSION_EVENT_STATE:
		tell(s, state_of(s));
		break;
	case SESSION_EVENT_STARTS:
		tell_of_others(s);
		break;
	case SESSION_EVENT_FREED:
		tell_freed(s);
		break;
	case SESSION_EVENT_STARTED:
	case SESSION_EVENT_FILE_CLOSED:
	case SESSION_EVENT_ENDED:
	case SESSION_EVENT_LOSES_BUFFERS:
	case SESSION_EVENT_LEAVES:
		break;
	}
}

const struct session_observer concurrent_sessions_observer = {
	.session = on_session,
};
