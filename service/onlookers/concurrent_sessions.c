#include "service/onlookers/concurrent_sessions.h"

#include "service/model/model.h"
#include "service/packet/event_log.h"
#include "service/session/session.h"
#include "service/session/session_events.h"

static enum service_session_state
state_of(enum session_state s)
{
	switch (s) {
	case SESSION_CONFIGURED:
		return SERVICE_SESSION_CONFIGURED;
	case SESSION_STARTED:
		return SERVICE_SESSION_STARTED;
	case SESSION_DISABLING:
		return SERVICE_SESSION_STOPPING;
	case SESSION_DISABLED:
		return SERVICE_SESSION_DISABLED;
	case SESSION_CLONED:
		return SERVICE_SESSION_CLONED;
	}
	return SERVICE_SESSION_DISABLED;
}

static bool
listens(const struct session *s)
{
	return (s->state == SESSION_STARTED ||
	    s->state == SESSION_DISABLING) && s->config != NULL &&
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

/* What was not said to have ended has. */
static void
tell_freed(const struct session *s)
{
	switch (s->state) {
	case SESSION_CONFIGURED:
	case SESSION_STARTED:
	case SESSION_DISABLING:
		tell(s, SERVICE_SESSION_DISABLED);
		break;
	case SESSION_DISABLED:
	case SESSION_CLONED:
		break;
	}
}

/* The session starts: it is told which others there are. */
static void
tell_of_others(struct session *s)
{
	const struct session *o;

	if (!listens(s))
		return;
	TAILQ_FOREACH(o, &s->service->sessions, link)
		if (o->made && o->state != SESSION_DISABLED)
			put(s, o, state_of(o->state));
}

static void
on_session(struct session *s, enum session_event e)
{
	if (!s->made)
		return;
	switch (e) {
	case SESSION_EVENT_STATE:
		tell(s, state_of(s->state));
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
