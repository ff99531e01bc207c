#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protos/link.pb-c.h"
#include "service/ingest/commit.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota.h"
#include "service/output/file_writer.h"
#include "service/output/readback.h"
#include "service/session/cut.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "service/session/session_internal.h"
#include "service/session/session_vms.h"
#include "service/sink/file_sink.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"

#define LINK_LOSS_OF_CUT TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_CUT_AT_END
#define LINK_LOSS_OF_QUOTA TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA
/* Time-out of each step of the end, when the daemon itself is ending. */
#define SHUTDOWN_TIMEOUT_MS 1000u
/* Time-out of each step where the consumer is gone, or discards the data. */
#define ABANDONED_TIMEOUT_MS 5000u
#define ABANDONED_BYTES_PER_MS 1000u /* and a ms for as many unread bytes */

static void stop_instances(struct session *s);

/* Whether p may commit more: not at the end, or after a flush timed out. */
static bool
more_comes(const struct session *s, const struct producer *p)
{
	enum session_phase phase = session_phase(s->state);

	return phase != SESSION_PHASE_STOPPING &&
	    phase != SESSION_PHASE_DISABLED && !flush_has_given_up_on(s, p);
}

bool
session_scrape(struct session *s)
{
	struct producer *p;
	struct ds_instance *i;
	bool complete = true;

	TAILQ_FOREACH(p, &s->service->producers, link) {
		if (p->shm == NULL)
			continue;
		TAILQ_FOREACH(i, &p->instances, of_producer)
			if (i->session == s)
				break;
		if (i != NULL && !commit_scrape(p, s, more_comes(s, p)))
			complete = false;
	}
	return complete;
}

/* The last step of the end: buffers or file are complete. */
static void
ended(struct session *s)
{
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: ended%s%s", (unsigned long long)s->id,
	    s->end_error != NULL ? ": " : "",
	    s->end_error != NULL ? s->end_error : "");
	session_vms_warn(s);
	session_set_state(s, SESSION_DISABLED);
	if (s->ops != NULL)
		s->ops->disabled(s->port, s->end_error);
	session_events_tell(s, SESSION_EVENT_ENDED);
	/* No consumer attaches to a detached session whose file is complete. */
	if (s->freeing || (s->detach_key != NULL && s->wrote_file &&
	    s->end_error == NULL))
		session_destroy(s);
	else
		session_maybe_idle(s->service);
}

static void
set_error(struct session *s, const char *error)
{
	if (error == NULL || s->end_error != NULL)
		return;
	s->end_error_owned = strdup(error);
	s->end_error = s->end_error_owned != NULL ? s->end_error_owned :
	    "out of memory";
}

/* A patch that has not come with the last flush does not come any more. */
static void
nothing_is_waited_for(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].tb != NULL)
			trace_buffer_no_more(s->buffers[i].tb);
}

/* The time-out of a step of the end, for which the config has ms. */
static uint32_t
step_ms(const struct session *s, uint32_t ms)
{
	uint32_t most = UINT32_MAX;

	if (s->shutting_down)
		most = SHUTDOWN_TIMEOUT_MS;
	else if (s->freeing || s->discarding)
		most = ABANDONED_TIMEOUT_MS;
	return ms < most ? ms : most;
}

/*
 * Time for a reader that takes an abandoned session's data at the least rate.
 */
static uint32_t
abandoned_file_ms(const struct session *s)
{
	uint64_t ms = ABANDONED_TIMEOUT_MS;
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		if (s->buffers[i].tb != NULL)
			ms += trace_buffer_unread(s->buffers[i].tb) /
			    ABANDONED_BYTES_PER_MS;
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/*
 * Bounds the file's end: its reader (a pipe) may stop taking bytes, or nearly.
 */
static void
hurry_file(struct session *s)
{
	if (s->file == NULL)
		return;
	if (s->shutting_down || s->discarding) {
		file_writer_last_call(s->file, step_ms(s, SINK_WAIT_MS));
		return;
	}
	file_writer_hurry(s->file, SINK_WAIT_MS);
	if (s->freeing)
		file_writer_last_call(s->file, abandoned_file_ms(s));
}

static void
free_instances(struct session *s)
{
	struct ds_instance *i;

	s->crowd = session_crowd(s);
	while ((i = TAILQ_FIRST(&s->instances)) != NULL)
		instance_free(i);
}

static void
finish_disable(struct session *s)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	s->end_realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	loop_timer_free(s->stop_timer);
	s->stop_timer = NULL;
	(void)session_scrape(s);
	nothing_is_waited_for(s);
	cut_session_stopped(s);
	event_log_snapshot(s->events);
	event_log_event(s->events, SERVICE_EVENT_TRACING_DISABLED);
	readback_want_stats(s->readback);
	session_set_state(s, s->file != NULL ? SESSION_CLOSING :
	    SESSION_DISABLED);
	if (s->file != NULL) {
		hurry_file(s); /* again: now all data is in the buffers */
		file_writer_finish(s->file);
		return;
	}
	/* No more commits are expected: its sources need no place any more. */
	free_instances(s);
	ended(s);
}

static void
file_closed(struct session *s, const char *error)
{
	struct service *sv = s->service;

	/* error may be the file's own: copied before that goes. */
	set_error(s, error);
	s->file_bytes = file_writer_bytes(s->file);
	sv->counters.file_bytes += s->file_bytes;
	flush_forget(s, s->file);
	file_writer_free(s->file);
	s->file = NULL;
	s->wrote_file = true;
	if (s->cloning != NULL) {
		session_events_tell(s, SESSION_EVENT_FILE_CLOSED);
		session_maybe_idle(sv);
		return;
	}
	free_instances(s);
	ended(s);
}

static void
file_failed(struct session *s, const char *error)
{
	log_limited(&s->service->file_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: %s%s%s", (unsigned long long)s->id,
	    s->file_path != NULL ? s->file_path : "",
	    s->file_path != NULL ? ": " : "", error);
	session_disable(s, error);
	if (s->ops != NULL && s->ops->file_known != NULL)
		s->ops->file_known(s->port);
}

static void
check_all_stopped(struct session *s)
{
	if (s->state == SESSION_DISABLING && !s->holds_end &&
	    s->n_in_state[INSTANCE_STOPPING] == 0)
		finish_disable(s);
}

/*
 * A source that did not acknowledge the stop is told as a loss where a relay may
 * hold data of it: only that comes behind the last data.
 */
static void
give_up(struct ds_instance *i)
{
	if (i->state == INSTANCE_STOPPING && i->producer->linked)
		losses_unknown(i, quota_is_held(i->producer) ?
		    LINK_LOSS_OF_QUOTA : LINK_LOSS_OF_CUT);
	instance_give_up(i);
}

static void
stop_timeout_cb(void *arg)
{
	struct session *s = arg;
	struct ds_instance *i;
	size_t n = 0;

	s->holds_end = true;
	TAILQ_FOREACH(i, &s->instances, of_session) {
		n += i->state == INSTANCE_STOPPING;
		give_up(i);
	}
	s->holds_end = false;
	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "session %llu: %zu data sources did not acknowledge the stop",
	    (unsigned long long)s->id, n);
	check_all_stopped(s);
}

static void
stop_one(struct ds_instance *i)
{
	instance_stop(i);
	/* The flush has waited for its producer long enough. */
	if (i->producer->state == PRODUCER_CUT &&
	    i->session->final_flush == FINAL_FLUSH_FAILED)
		give_up(i);
}

static bool
stop_those_of(struct producer *p, void *arg)
{
	return instance_each(arg, p, stop_one);
}

static void
all_were_told(void *arg)
{
	struct session *s = arg;

	session_set_state(s, SESSION_DISABLING);
	s->stop_timer = loop_timer_new(s->service->loop, stop_timeout_cb, s);
	if (s->stop_timer != NULL)
		loop_timer_set(s->stop_timer, step_ms(s,
		    config_stop_timeout_ms(s->config)), 0);
	check_all_stopped(s);
}

static void
stop_instances(struct session *s)
{
	session_timers_clear(s);
	loop_timer_free(s->start_timer);
	s->start_timer = NULL;
	session_set_state(s, SESSION_STOPPING);
	producer_walk_begin(&s->walk, s->service, stop_those_of,
	    all_were_told, s);
}

static void
final_flush_done(struct session *s, bool success, void *arg)
{
	s->final_flush = success ? FINAL_FLUSH_SUCCEEDED : FINAL_FLUSH_FAILED;
	stop_instances(s);
}

/* The final flush is under way, or nothing was started. */
static void
close_buffers(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_buffers; i++)
		s->buffers[i].closing = true;
}

void
session_disable(struct session *s, const char *error)
{
	bool traces = s->state == SESSION_STARTED;

	if (!session_state_is_live(s->state))
		return;
	set_error(s, error);
	session_set_state(s, traces ? SESSION_LAST_FLUSH : SESSION_STOPPING);
	close_buffers(s);
	cut_session_ends(s);
	hurry_file(s);
	/* Sources that change_walk would add would only start to be stopped. */
	producer_walk_end(&s->change_walk);
	loop_timer_clear(s->duration_timer);
	if (s->trigger_timer != NULL)
		loop_timer_clear(s->trigger_timer);
	if (s->trigger_stop_timer != NULL)
		loop_timer_clear(s->trigger_stop_timer);
	if (traces)
		flush_start(s, step_ms(s, config_flush_timeout_ms(s->config)),
		    FLUSH_TRACE_STOP, final_flush_done, s);
	else
		stop_instances(s);
}

/* Shortens the present and later time-outs of an end that is under way. */
static void
hurry(struct session *s)
{
	uint32_t most = step_ms(s, UINT32_MAX);
	uint64_t left;

	hurry_file(s);
	flush_hurry(s, most);
	if (loop_timer_left(s->stop_timer, &left) && left > most)
		loop_timer_set(s->stop_timer, most, 0);
}

void
session_end_for_shutdown(struct session *s)
{
	s->shutting_down = true;
	hurry(s);
	session_disable(s, NULL);
}

void
session_end_for_discard(struct session *s)
{
	s->discarding = true;
	hurry(s);
	session_disable(s, NULL);
}

bool
session_is_unfinished(const struct session *s)
{
	switch (session_phase(s->state)) {
	case SESSION_PHASE_NEW:
	case SESSION_PHASE_CONFIGURED:
	case SESSION_PHASE_STARTED:
	case SESSION_PHASE_STOPPING:
		return true;
	case SESSION_PHASE_DISABLED:
	case SESSION_PHASE_CLONED:
		break;
	}
	return s->file != NULL;
}

static void
freed_cb(void *arg)
{
	session_destroy(arg);
}

/* Sources are told in several turns: they may be too many for one. */
static void
free_in_turns(struct session *s)
{
	s->freeing = true;
	session_events_tell(s, SESSION_EVENT_LOSES_BUFFERS);
	cut_free(s->cut);
	s->cut = NULL;
	flush_drop_all(s);
	session_release_buffers(s);
	session_timers_clear(s);
	loop_timer_free(s->start_timer);
	s->start_timer = NULL;
	loop_timer_free(s->stop_timer);
	s->stop_timer = NULL;
	session_set_state(s, SESSION_GONE);
	producer_walk_end(&s->change_walk);
	producer_walk_begin(&s->walk, s->service, stop_those_of, freed_cb, s);
}

void
session_free(struct session *s)
{
	struct ds_instance *i;

	s->ops = NULL;
	s->port = NULL;
	if (s->file != NULL) {
		/*
		 * The file gets everything that was traced; then the session is
		 * freed.
		 */
		s->freeing = true;
		hurry(s);
		session_disable(s, NULL);
		return;
	}
	s->holds_end = true;
	if (s->n_instances > PRODUCER_WALK_TURN) {
		free_in_turns(s);
		return;
	}
	TAILQ_FOREACH(i, &s->instances, of_session)
		instance_stop(i);
	session_destroy(s);
}

void
session_instance_made(struct session *s, const struct ds_instance *i)
{
	if (s->ops != NULL)
		s->ops->instance_changed(s->port, i->producer->name, i->name,
		    false);
}

void
session_instance_changed(struct session *s, struct ds_instance *i)
{
	if (s->ops != NULL && (i->state == INSTANCE_STARTED ||
	    i->state == INSTANCE_STOPPED))
		s->ops->instance_changed(s->port, i->producer->name, i->name,
		    i->state == INSTANCE_STARTED);
	session_check_started(s);
	check_all_stopped(s);
}

void
session_instance_gone(struct session *s)
{
	check_all_stopped(s);
}

static void
file_full(struct session *s)
{
	session_disable(s, NULL);
}

static void
flush_for_file(struct session *s, file_flushed_fn done, void *arg)
{
	flush_start(s, config_flush_timeout_ms(s->config), FLUSH_PERIODIC,
	    done, arg);
}

static void
retry_scrapes(struct session *s)
{
	flush_retry(s);
	producers_reap(s->service);
}

static const struct file_ops file_ops = {
	.segment_full = cut_at_size,
	.opened = session_file_opened,
	.failed = file_failed,
	.closed = file_closed,
	.full = file_full,
	.scrape = session_scrape,
	.flush = flush_for_file,
	.has_room = retry_scrapes,
};

int
session_make_file(struct session *s, int fd, char *err, size_t err_size)
{
	s->file = file_writer_new(s, &file_ops, fd, err, err_size);
	return s->file != NULL ? 0 : -1;
}
