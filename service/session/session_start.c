#include <stdio.h>
#include <time.h>

#include "service/access/principal.h"
#include "service/ingest/arrivals.h"
#include "service/output/file_writer.h"
#include "service/output/readback.h"
#include "service/packet/sequence_map.h"
#include "service/session/cut.h"
#include "service/session/instance.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "service/session/session_internal.h"
#include "service/session/trigger.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/loop/loop.h"

/*
 * Data sources that have not acknowledged the start by then are named in the
 * trace.  The consumer's ALL_STARTED event still waits for all of them.
 */
#define START_TIMEOUT_MS 20000u
/* Named in one event. */
#define SLOW_NAMED_MAX 32u

static void
say_all_started(struct session *s)
{
	if (s->all_started_said)
		return;
	s->all_started_said = true;
	loop_timer_free(s->start_timer);
	s->start_timer = NULL;
	event_log_event(s->events, SERVICE_EVENT_ALL_DATA_SOURCES_STARTED);
	if (s->ops != NULL)
		s->ops->all_started(s->port);
}

void
session_check_started(struct session *s)
{
	if (session_phase(s->state) == SESSION_PHASE_STARTED &&
	    !s->all_started_said &&
	    s->n_in_state[INSTANCE_CONFIGURED] == 0 &&
	    s->n_in_state[INSTANCE_STARTING] == 0)
		say_all_started(s);
}

static void
slow_start_cb(void *arg)
{
	struct session *s = arg;
	struct service_slow_source slow[SLOW_NAMED_MAX];
	const struct ds_instance *i;
	size_t n = 0;

	TAILQ_FOREACH(i, &s->instances, of_session) {
		if (i->state != INSTANCE_STARTING || n == SLOW_NAMED_MAX)
			continue;
		slow[n].producer = i->producer->name;
		slow[n].data_source = i->name;
		n++;
	}
	event_log_slow(s->events, SERVICE_EVENT_SLOW_STARTING_DATA_SOURCES,
	    slow, n);
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: %zu data sources have not started yet",
	    (unsigned long long)s->id, n);
}

static bool
start_those_of(struct producer *p, void *arg)
{
	return instance_each(arg, p, instance_start);
}

static void
all_were_told(void *arg)
{
	struct session *s = arg;

	session_check_started(s);
	session_events_tell(s, SESSION_EVENT_STARTED);
}

static void
start_now(struct session *s)
{
	struct timespec now;
	char whose[160];

	session_set_state(s, SESSION_STARTED);
	clock_gettime(CLOCK_REALTIME, &now);
	s->start_realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	s->start_boottime_ns = loop_boottime_ns();
	event_log_snapshot(s->events);
	event_log_event(s->events, SERVICE_EVENT_TRACING_STARTED);
	session_events_tell(s, SESSION_EVENT_STARTS);
	session_timers_arm(s);
	cut_session_started(s);
	trigger_session_started(s);
	s->start_timer = loop_timer_new(s->service->loop, slow_start_cb, s);
	if (s->start_timer != NULL)
		loop_timer_set(s->start_timer, START_TIMEOUT_MS, 0);
	if (s->file != NULL)
		file_writer_start(s->file);
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: started with %zu data sources for %s",
	    (unsigned long long)s->id, s->n_instances,
	    principal_text(&s->owner, whose, sizeof(whose)));
	producer_walk_begin(&s->walk, s->service, start_those_of,
	    all_were_told, s);
}

/* Starts a STARTING session once all is set up and its file is open. */
static void
start_if_ready(struct session *s)
{
	if (s->state == SESSION_STARTING && !s->walk.under_way &&
	    (s->file == NULL || file_writer_is_open(s->file)))
		start_now(s);
}

void
session_want_start(struct session *s)
{
	session_set_state(s, SESSION_STARTING);
	start_if_ready(s);
}

void
session_file_opened(struct session *s)
{
	start_if_ready(s);
	if (s->ops != NULL && s->ops->file_known != NULL)
		s->ops->file_known(s->port);
}

int
session_start(struct session *s)
{
	if (s->state != SESSION_CONFIGURED &&
	    s->state != SESSION_AWAITS_TRIGGER)
		return -1;
	session_want_start(s);
	return 0;
}

void
session_start_by_trigger(struct session *s)
{
	if (s->state == SESSION_AWAITS_TRIGGER)
		session_want_start(s);
}

static bool
is_set_up(const struct session *s, const struct config_data_source *want,
    const struct data_source *ds)
{
	const struct ds_instance *i;

	TAILQ_FOREACH(i, &ds->producer->instances, of_producer)
		if (i->session == s && i->want == want && i->source == ds)
			return true;
	return false;
}

/* An instance for each of its data sources that wants ds and has none yet. */
static void
set_up(struct session *s, struct data_source *ds)
{
	struct ds_instance *i;
	size_t n;

	for (n = 0; n < s->config->n_data_sources; n++) {
		if (!instance_matches(s, &s->config->data_sources[n], ds) ||
		    is_set_up(s, &s->config->data_sources[n], ds))
			continue;
		i = instance_new(s, &s->config->data_sources[n], ds);
		if (i == NULL)
			continue;
		if (ds->producer->machine->id != 0)
			readback_saw_machine(s->readback,
			    ds->producer->machine);
		if (session_phase(s->state) == SESSION_PHASE_STARTED)
			instance_start(i);
	}
}

static bool
set_up_those_of(struct producer *p, void *arg)
{
	struct session *s = arg;
	struct data_source *ds;
	size_t before = s->n_instances;

	TAILQ_FOREACH(ds, &p->data_sources, link)
		set_up(s, ds);
	return s->n_instances != before;
}

static void
all_are_set_up(void *arg)
{
	start_if_ready(arg);
}

void
session_set_up_all(struct session *s)
{
	producer_walk_begin(&s->walk, s->service, set_up_those_of,
	    all_are_set_up, s);
}

void
sessions_data_source_added(struct service *sv, struct data_source *ds)
{
	struct session *s, *next;

	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, next)
		if (session_state_is_live(s->state))
			set_up(s, ds);
}

void
sessions_give_up_patches(struct service *sv, uint32_t producer)
{
	struct session *s;
	size_t i;

	TAILQ_FOREACH(s, &sv->sessions, link)
		for (i = 0; i < s->n_buffers; i++)
			trace_buffer_producer_gone(s->buffers[i].tb, producer);
}

void
sessions_producer_gone(struct service *sv, uint32_t producer)
{
	struct session *s;
	size_t i;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		sequence_map_producer_gone(s->sequences, producer);
		arrivals_producer_gone(s, producer);
		for (i = 0; i < s->n_buffers; i++)
			if (s->buffers[i].tb != NULL)
				trace_buffer_retire(s->buffers[i].tb,
				    producer);
	}
}

static void
changed_cb(void *arg)
{
	session_check_started(arg);
}

int
session_change_config(struct session *s, const uint8_t *config, size_t len,
    char *err, size_t err_size)
{
	if (session_phase(s->state) != SESSION_PHASE_CONFIGURED &&
	    session_phase(s->state) != SESSION_PHASE_STARTED) {
		snprintf(err, err_size, "the session has ended");
		return -1;
	}
	if (config_add_filters(s->config, config, len, err, err_size) != 0)
		return -1;
	/* Sources that are set up already stay as they are. */
	producer_walk_begin(&s->change_walk, s->service, set_up_those_of,
	    changed_cb, s);
	return 0;
}
