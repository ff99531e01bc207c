#include "service/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "transport/log.h"
#include "service/buffer/trace_buffer.h"
#include "service/session/clone.h"
#include "service/session/commit.h"
#include "service/session/file_session.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/producer.h"
#include "service/session/readback.h"
#include "service/session/sequence_map.h"
#include "service/session/settings.h"
#include "service/session/trigger.h"

#define SNAPSHOT_INTERVAL_DEFAULT_MS 10000u
#define SNAPSHOT_INTERVAL_MIN_MS 100u
/* When data sources have not said that they started, life goes on. */
#define START_TIMEOUT_MS 20000u
#define SHUTDOWN_TIMEOUT_MS 1000u
#define SLOW_NAMED_MAX 32u

const char *
session_state_name(enum session_state s)
{
	switch (s) {
	case SESSION_CONFIGURED:
		return "CONFIGURED";
	case SESSION_STARTED:
		return "STARTED";
	case SESSION_DISABLING:
		return "STOP_WAIT";
	case SESSION_DISABLED:
		return "DISABLED";
	case SESSION_CLONED:
		return "CLONED_READ_ONLY";
	}
	return "UNKNOWN";
}

static void stop_instances(struct session *s);
static void finish_disable(struct session *s);

/* ---- life ---- */

int
session_check_limits(struct service *sv, int32_t uid, char *err,
    size_t err_size)
{
	const struct session *s;
	uint32_t of_uid = 0;

	TAILQ_FOREACH(s, &sv->sessions, link)
		of_uid += s->uid == uid;
	if (sv->n_sessions >= sv->settings->limits.max_sessions) {
		snprintf(err, err_size, "Too many concurrent tracing sessions "
		    "(%zu, limits.max_sessions)", sv->n_sessions);
		return -1;
	}
	if (of_uid >= sv->settings->limits.max_sessions_per_uid) {
		snprintf(err, err_size, "Too many concurrent tracing sessions "
		    "(%u) for uid %d (limits.max_sessions_per_uid)", of_uid,
		    uid);
		return -1;
	}
	return 0;
}

struct session *
session_alloc(struct service *sv, int32_t uid)
{
	struct session *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->service = sv;
	s->uid = uid;
	s->id = ++sv->last_session_id;
	TAILQ_INIT(&s->instances);
	TAILQ_INIT(&s->flushes);
	TAILQ_INSERT_TAIL(&sv->sessions, s, link);
	sv->n_sessions++;
	if (getrandom(&s->uuid_msb, sizeof(s->uuid_msb), 0) < 0 ||
	    getrandom(&s->uuid_lsb, sizeof(s->uuid_lsb), 0) < 0)
		s->uuid_msb = s->uuid_lsb = loop_boottime_ns();
	return s;
}

static uint16_t
free_buffer_id(struct service *sv)
{
	unsigned tries;

	for (tries = 0; tries < UINT16_MAX; tries++) {
		if (++sv->last_buffer_id == 0)
			sv->last_buffer_id = 1;
		if (sv->buffers[sv->last_buffer_id] == NULL)
			return sv->last_buffer_id;
	}
	return 0;
}

int
session_alloc_buffers(struct session *s, size_t n)
{
	struct service *sv = s->service;
	size_t i;

	if ((s->buffers = calloc(n + 1, sizeof(*s->buffers))) == NULL)
		return -1;
	s->n_buffers = n;
	for (i = 0; i < n; i++) {
		s->buffers[i].session = s;
		if ((s->buffers[i].id = free_buffer_id(sv)) == 0)
			return -1;
		sv->buffers[s->buffers[i].id] = &s->buffers[i];
		sv->n_buffers++;
	}
	return 0;
}

static void
release_buffers(struct session *s)
{
	struct service *sv = s->service;
	struct producer *p;
	size_t i;

	for (i = 0; i < s->n_buffers; i++) {
		struct session_buffer *b = &s->buffers[i];

		if (b->id != 0) {
			TAILQ_FOREACH(p, &sv->producers, link)
				if (p->n_allowed > 0)
					producer_forget_buffer(p, b->id);
			sv->buffers[b->id] = NULL;
			sv->n_buffers--;
		}
		if (b->tb != NULL)
			sv->total_buffer_bytes -= b->size;
		trace_buffer_free(b->tb);
		free(b->name);
	}
	free(s->buffers);
}

/* Tells the daemon when it waits for the end and nothing is busy any more. */
static void
maybe_idle(struct service *sv)
{
	const struct session *s;
	void (*idle)(void *) = sv->idle;

	if (idle == NULL)
		return;
	TAILQ_FOREACH(s, &sv->sessions, link)
		if (session_is_busy(s))
			return;
	sv->idle = NULL;
	idle(sv->idle_arg);
}

/* Frees what is left; nothing runs any more. */
static void
session_destroy(struct session *s)
{
	struct service *sv = s->service;
	struct ds_instance *i;

	clone_source_gone(s);
	flush_drop_all(s);
	trigger_session_gone(s);
	while ((i = TAILQ_FIRST(&s->instances)) != NULL)
		instance_free(i);
	file_session_free(s->file);
	release_buffers(s);
	loop_timer_free(s->duration_timer);
	loop_timer_free(s->flush_timer);
	loop_timer_free(s->snapshot_timer);
	loop_timer_free(s->clear_timer);
	loop_timer_free(s->start_timer);
	loop_timer_free(s->stop_timer);
	loop_timer_free(s->trigger_timer);
	loop_timer_free(s->trigger_stop_timer);
	loop_cancel(sv->loop, s);
	readback_free(s->readback);
	event_log_free(s->events);
	sequence_map_free(s->sequences);
	config_free(s->config);
	free(s->detach_key);
	free(s->end_error);
	TAILQ_REMOVE(&sv->sessions, s, link);
	sv->n_sessions--;
	free(s);
	maybe_idle(sv);
}

void
session_set_state(struct session *s, enum session_state state)
{
	if (s->state == state)
		return;
	log_debug("session %llu: %s -> %s", (unsigned long long)s->id,
	    session_state_name(s->state), session_state_name(state));
	s->state = state;
}

/* ---- the checks that need to know of the other sessions ---- */

static int
check_others(struct service *sv, const Perfetto__Protos__TraceConfig *pb,
    char *err, size_t err_size)
{
	const struct session *s;
	size_t i, k;
	uint64_t holders;

	if (pb->unique_session_name != NULL &&
	    pb->unique_session_name[0] != '\0' &&
	    session_find_by_name(sv, pb->unique_session_name) != NULL) {
		snprintf(err, err_size, "A trace with this unique session name "
		    "(%.200s) already exists", pb->unique_session_name);
		return -1;
	}
	for (i = 0; i < pb->n_session_semaphores; i++) {
		const Perfetto__Protos__TraceConfig__SessionSemaphore *sem =
		    pb->session_semaphores[i];

		holders = 0;
		TAILQ_FOREACH(s, &sv->sessions, link) {
			const Perfetto__Protos__TraceConfig *o = s->config->pb;

			if (s->state == SESSION_CLONED ||
			    s->state == SESSION_DISABLED)
				continue;
			for (k = 0; k < o->n_session_semaphores; k++)
				if (sem->name != NULL &&
				    o->session_semaphores[k]->name != NULL &&
				    strcmp(sem->name,
				    o->session_semaphores[k]->name) == 0)
					holders++;
		}
		if (holders > sem->max_other_session_count) {
			snprintf(err, err_size, "Semaphore \"%.200s\" exceeds "
			    "maximum allowed other session count (%llu > "
			    "%llu)", sem->name == NULL ? "" : sem->name,
			    (unsigned long long)holders,
			    (unsigned long long)sem->max_other_session_count);
			return -1;
		}
	}
	return 0;
}

/*
 * An exclusive session runs alone: it is refused beside one of equal or higher
 * priority, and ends the others.  A normal one is refused beside an exclusive.
 */
static int
check_exclusive(struct service *sv, uint32_t prio, char *err, size_t err_size)
{
	struct session *s, *next;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (s->state != SESSION_CLONED &&
		    s->state != SESSION_DISABLED &&
		    s->config->pb->exclusive_prio > 0 &&
		    s->config->pb->exclusive_prio >= prio) {
			snprintf(err, err_size, "An exclusive session with "
			    "equal or higher priority (%u) is running",
			    s->config->pb->exclusive_prio);
			return -1;
		}
	if (prio == 0)
		return 0;
	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, next)
		session_disable(s, "Ended by an exclusive session with "
		    "higher priority");
	return 0;
}

static int
make_buffers(struct session *s, char *err, size_t err_size)
{
	struct service *sv = s->service;
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < pb->n_buffers; i++)
		total += (uint64_t)pb->buffers[i]->size_kb * 1024;
	if (total + sv->total_buffer_bytes >
	    sv->settings->limits.max_total_buffer_kb * 1024) {
		snprintf(err, err_size, "Buffers of %llu KiB do not fit: %llu "
		    "KiB of %llu KiB are in use (limits.max_total_buffer_kb)",
		    (unsigned long long)(total / 1024),
		    (unsigned long long)(sv->total_buffer_bytes / 1024),
		    (unsigned long long)
		    sv->settings->limits.max_total_buffer_kb);
		return -1;
	}
	snprintf(err, err_size, "Out of buffer ids or memory");
	if (session_alloc_buffers(s, pb->n_buffers) != 0)
		return -1;
	for (i = 0; i < pb->n_buffers; i++) {
		const Perfetto__Protos__TraceConfig__BufferConfig *c =
		    pb->buffers[i];
		struct session_buffer *b = &s->buffers[i];

		b->ring = c->fill_policy !=
		    PERFETTO__PROTOS__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__DISCARD;
		b->transfer_on_clone = c->transfer_on_clone;
		b->clear_before_clone = c->clear_before_clone;
		if (c->name != NULL && (b->name = strdup(c->name)) == NULL)
			return -1;
		b->tb = trace_buffer_new((uint64_t)c->size_kb * 1024,
		    b->ring ? TB_RING : TB_DISCARD);
		if (b->tb == NULL)
			return -1;
		b->size = (uint64_t)c->size_kb * 1024;
		sv->total_buffer_bytes += b->size;
	}
	return 0;
}

/* ---- timers of a running session ---- */

static void
duration_cb(void *arg)
{
	session_disable(arg, NULL);
}

static void
flush_cb(void *arg)
{
	struct session *s = arg;

	flush_start(s, config_flush_timeout_ms(s->config), FLUSH_PERIODIC,
	    NULL, NULL);
}

static void
snapshot_cb(void *arg)
{
	struct session *s = arg;

	event_log_snapshot(s->events, false);
	readback_want_marker(s->readback);
	readback_want_stats(s->readback);
}

static void
clear_cb(void *arg)
{
	struct session *s = arg;
	struct ds_instance *i, *k;
	uint64_t ids[64];
	size_t n;

	/* One request a producer: the first instance of each collects. */
	TAILQ_FOREACH(i, &s->instances, of_session) {
		TAILQ_FOREACH(k, &i->producer->instances, of_producer)
			if (k->session == s)
				break;
		if (k != i)
			continue;
		n = 0;
		for (; k != NULL; k = TAILQ_NEXT(k, of_producer)) {
			if (k->session != s || k->state != INSTANCE_STARTED ||
			    !k->handles_incremental_state_clear)
				continue;
			ids[n++] = k->id;
			if (n == sizeof(ids) / sizeof(ids[0])) {
				i->producer->ops->clear_incremental_state(
				    i->producer->port, ids, n);
				n = 0;
			}
		}
		if (n > 0)
			i->producer->ops->clear_incremental_state(
			    i->producer->port, ids, n);
	}
}

static void
say_all_started(struct session *s)
{
	if (s->all_started_said)
		return;
	s->all_started_said = true;
	loop_timer_clear(s->start_timer);
	event_log_event(s->events, SERVICE_EVENT_ALL_DATA_SOURCES_STARTED);
	if (s->ops != NULL)
		s->ops->all_started(s->port);
}

static void
check_all_started(struct session *s)
{
	const struct ds_instance *i;

	if (s->state != SESSION_STARTED || s->all_started_said)
		return;
	TAILQ_FOREACH(i, &s->instances, of_session)
		if (i->state == INSTANCE_CONFIGURED ||
		    i->state == INSTANCE_STARTING)
			return;
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
	log_warn("session %llu: %zu data sources have not started yet",
	    (unsigned long long)s->id, n);
	say_all_started(s);
}

static int
make_timers(struct session *s)
{
	struct loop *l = s->service->loop;

	s->duration_timer = loop_timer_new(l, duration_cb, s);
	s->flush_timer = loop_timer_new(l, flush_cb, s);
	s->snapshot_timer = loop_timer_new(l, snapshot_cb, s);
	s->clear_timer = loop_timer_new(l, clear_cb, s);
	s->start_timer = loop_timer_new(l, slow_start_cb, s);
	return s->duration_timer == NULL || s->flush_timer == NULL ||
	    s->snapshot_timer == NULL || s->clear_timer == NULL ||
	    s->start_timer == NULL ? -1 : 0;
}

static void
arm_timers(struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	uint32_t interval = SNAPSHOT_INTERVAL_DEFAULT_MS;

	if (pb->duration_ms != 0)
		loop_timer_set(s->duration_timer, pb->duration_ms, 0);
	if (pb->flush_period_ms != 0)
		loop_timer_set(s->flush_timer, pb->flush_period_ms, 1);
	if (pb->builtin_data_sources != NULL &&
	    pb->builtin_data_sources->snapshot_interval_ms != 0)
		interval = pb->builtin_data_sources->snapshot_interval_ms;
	if (interval < SNAPSHOT_INTERVAL_MIN_MS)
		interval = SNAPSHOT_INTERVAL_MIN_MS;
	loop_timer_set(s->snapshot_timer, interval, 1);
	if (pb->incremental_state_config != NULL &&
	    pb->incremental_state_config->clear_period_ms != 0)
		loop_timer_set(s->clear_timer,
		    pb->incremental_state_config->clear_period_ms, 1);
	loop_timer_set(s->start_timer, START_TIMEOUT_MS, 0);
}

static void
clear_timers(struct session *s)
{
	loop_timer_clear(s->duration_timer);
	loop_timer_clear(s->flush_timer);
	loop_timer_clear(s->snapshot_timer);
	loop_timer_clear(s->clear_timer);
	loop_timer_clear(s->start_timer);
}

/* ---- start ---- */

static void
start_now(struct session *s)
{
	struct ds_instance *i;
	struct timespec now;

	session_set_state(s, SESSION_STARTED);
	clock_gettime(CLOCK_REALTIME, &now);
	s->start_realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	event_log_snapshot(s->events, true);
	event_log_event(s->events, SERVICE_EVENT_TRACING_STARTED);
	arm_timers(s);
	if (s->file != NULL)
		file_session_start(s->file);
	TAILQ_FOREACH(i, &s->instances, of_session)
		instance_start(i);
	check_all_started(s);
	log_info("session %llu: started with %zu data sources for uid %d",
	    (unsigned long long)s->id, s->n_instances, s->uid);
}

/* Starts as soon as its file is open. */
static void
want_start(struct session *s)
{
	s->start_wanted = true;
	if (s->file == NULL || file_session_is_open(s->file))
		start_now(s);
}

void
session_file_opened(struct session *s)
{
	if (s->start_wanted && s->state == SESSION_CONFIGURED && !s->ending)
		start_now(s);
}

int
session_start(struct session *s)
{
	if (s->state != SESSION_CONFIGURED || s->start_wanted || s->ending ||
	    s->wait_for_start_trigger)
		return -1;
	want_start(s);
	return 0;
}

void
session_start_by_trigger(struct session *s)
{
	if (!s->wait_for_start_trigger)
		return;
	s->wait_for_start_trigger = false;
	if (s->state == SESSION_CONFIGURED && !s->start_wanted && !s->ending)
		want_start(s);
}

static void
set_up_instances(struct session *s, struct data_source *ds)
{
	struct ds_instance *i;
	size_t n;

	for (n = 0; n < s->config->n_data_sources; n++) {
		if (!instance_matches(s, &s->config->data_sources[n], ds))
			continue;
		i = instance_new(s, &s->config->data_sources[n], ds);
		if (i == NULL)
			continue;
		if (ds->producer->machine->id != 0)
			readback_saw_machine(s->readback,
			    ds->producer->machine);
		if (s->state == SESSION_STARTED)
			instance_start(i);
	}
}

void
sessions_data_source_added(struct service *sv, struct data_source *ds)
{
	struct session *s, *next;

	TAILQ_FOREACH_SAFE(s, &sv->sessions, link, next)
		if ((s->state == SESSION_CONFIGURED ||
		    s->state == SESSION_STARTED) && !s->ending)
			set_up_instances(s, ds);
}

void
sessions_producer_gone(struct service *sv, uint32_t producer)
{
	struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link)
		sequence_map_producer_gone(s->sequences, producer);
}

/* The parts that every session has, cloned ones get copies instead. */
static int
make_parts(struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	const Perfetto__Protos__TraceConfig__BuiltinDataSource *b =
	    pb->builtin_data_sources;
	uint32_t clock = b != NULL ? (uint32_t)b->primary_trace_clock : 0;

	s->sequences = sequence_map_new(b == NULL ||
	    !b->disable_chunk_usage_histograms);
	s->events = event_log_new(b == NULL || !b->disable_service_events,
	    b == NULL || !b->disable_clock_snapshotting,
	    clock != 0 ? clock : SERVICE_PACKETS_CLOCK_BOOTTIME);
	s->readback = readback_new(s);
	if (pb->has_trace_uuid_msb || pb->has_trace_uuid_lsb) {
		s->uuid_msb = (uint64_t)pb->trace_uuid_msb;
		s->uuid_lsb = (uint64_t)pb->trace_uuid_lsb;
	}
	return s->sequences == NULL || s->events == NULL ||
	    s->readback == NULL || make_timers(s) != 0 ? -1 : 0;
}

struct session *
session_new(struct service *sv, struct config *config, int fd, int32_t uid,
    const struct consumer_ops *ops, void *port, char *err, size_t err_size)
{
	const Perfetto__Protos__TraceConfig *pb = config->pb;
	struct session *s = NULL;
	struct producer *p;
	struct data_source *ds;

	if (session_check_limits(sv, uid, err, err_size) != 0 ||
	    check_others(sv, pb, err, err_size) != 0 ||
	    check_exclusive(sv, pb->exclusive_prio, err, err_size) != 0)
		goto fail;
	snprintf(err, err_size, "out of memory");
	if ((s = session_alloc(sv, uid)) == NULL)
		goto fail;
	s->config = config;
	config = NULL;
	if (make_parts(s) != 0 || make_buffers(s, err, err_size) != 0)
		goto fail;
	if (pb->write_into_file) {
		s->file = file_session_new(s, fd, err, err_size);
		if (s->file == NULL)
			goto fail;
		fd = -1;
	}
	if (trigger_arm(s, err, err_size) != 0)
		goto fail;
	s->ops = ops;
	s->port = port;
	if (fd >= 0)
		close(fd); /* nobody asked for a file */
	TAILQ_FOREACH(p, &sv->producers, link)
		TAILQ_FOREACH(ds, &p->data_sources, link)
			set_up_instances(s, ds);
	if (!pb->deferred_start && !s->wait_for_start_trigger)
		want_start(s);
	return s;

fail:
	/* A file that was taken over is closed by its own writer. */
	if (fd >= 0 && (s == NULL || s->file == NULL))
		close(fd);
	config_free(config);
	if (s != NULL && s->file != NULL) {
		s->freeing = true;
		s->state = SESSION_DISABLED;
		file_session_finish(s->file);
	} else if (s != NULL) {
		session_destroy(s);
	}
	return NULL;
}

/* ---- end ---- */

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
		if (i != NULL && !commit_scrape(p, s))
			complete = false;
	}
	return complete;
}

static void
say_disabled(struct session *s)
{
	if (s->said_disabled)
		return;
	s->said_disabled = true;
	if (s->ops != NULL)
		s->ops->disabled(s->port, s->end_error);
}

/* The end of the end: buffers or file are complete. */
static void
ended(struct session *s)
{
	log_info("session %llu: ended%s%s", (unsigned long long)s->id,
	    s->end_error != NULL ? ": " : "",
	    s->end_error != NULL ? s->end_error : "");
	say_disabled(s);
	if (s->freeing)
		session_destroy(s);
	else
		maybe_idle(s->service);
}

static void
set_error(struct session *s, const char *error)
{
	if (error != NULL && s->end_error == NULL)
		s->end_error = strdup(error);
}

static void
finish_disable(struct session *s)
{
	struct ds_instance *i;

	loop_timer_free(s->stop_timer);
	s->stop_timer = NULL;
	(void)session_scrape(s);
	event_log_snapshot(s->events, true);
	event_log_event(s->events, SERVICE_EVENT_TRACING_DISABLED);
	readback_want_stats(s->readback);
	session_set_state(s, SESSION_DISABLED);
	if (s->file != NULL) {
		file_session_finish(s->file);
		return;
	}
	/* No more commits are expected: its sources need no place any more. */
	while ((i = TAILQ_FIRST(&s->instances)) != NULL)
		instance_free(i);
	ended(s);
}

void
session_file_closed(struct session *s, const char *error)
{
	struct ds_instance *i;

	set_error(s, error);
	file_session_free(s->file);
	s->file = NULL;
	s->wrote_file = true;
	if (s->cloning != NULL) {
		clone_file_closed(s, error);
		return;
	}
	while ((i = TAILQ_FIRST(&s->instances)) != NULL)
		instance_free(i);
	ended(s);
}

void
session_file_failed(struct session *s, const char *error)
{
	log_warn("session %llu: %s", (unsigned long long)s->id, error);
	session_disable(s, error);
}

static void
check_all_stopped(struct session *s)
{
	const struct ds_instance *i;

	if (s->state != SESSION_DISABLING || s->in_stop)
		return;
	TAILQ_FOREACH(i, &s->instances, of_session)
		if (i->state == INSTANCE_STOPPING)
			return;
	finish_disable(s);
}

static void
stop_timeout_cb(void *arg)
{
	struct session *s = arg;
	struct ds_instance *i;
	size_t n = 0;

	s->in_stop = true;
	TAILQ_FOREACH(i, &s->instances, of_session) {
		n += i->state == INSTANCE_STOPPING;
		instance_give_up(i);
	}
	s->in_stop = false;
	log_warn("session %llu: %zu data sources did not acknowledge the stop",
	    (unsigned long long)s->id, n);
	check_all_stopped(s);
}

static void
stop_instances(struct session *s)
{
	struct ds_instance *i;

	clear_timers(s);
	session_set_state(s, SESSION_DISABLING);
	s->in_stop = true;
	TAILQ_FOREACH(i, &s->instances, of_session)
		instance_stop(i);
	s->in_stop = false;
	s->stop_timer = loop_timer_new(s->service->loop, stop_timeout_cb, s);
	if (s->stop_timer != NULL)
		loop_timer_set(s->stop_timer, s->shutting_down ?
		    SHUTDOWN_TIMEOUT_MS : config_stop_timeout_ms(s->config),
		    0);
	check_all_stopped(s);
}

static void
final_flush_done(struct session *s, bool success, void *arg)
{
	s->final_flush = success ? FINAL_FLUSH_SUCCEEDED : FINAL_FLUSH_FAILED;
	stop_instances(s);
}

void
session_instance_changed(struct session *s, struct ds_instance *i)
{
	if (s->ops != NULL && (i->state == INSTANCE_STARTED ||
	    i->state == INSTANCE_STOPPED))
		s->ops->instance_changed(s->port, i->producer->name, i->name,
		    i->state == INSTANCE_STARTED);
	check_all_started(s);
	check_all_stopped(s);
}

void
session_disable(struct session *s, const char *error)
{
	if (s->state == SESSION_CLONED || s->state == SESSION_DISABLED ||
	    s->ending)
		return;
	set_error(s, error);
	s->ending = true;
	loop_timer_clear(s->duration_timer);
	if (s->trigger_timer != NULL)
		loop_timer_clear(s->trigger_timer);
	if (s->trigger_stop_timer != NULL)
		loop_timer_clear(s->trigger_stop_timer);
	if (s->state == SESSION_CONFIGURED)
		stop_instances(s);
	else
		flush_start(s, s->shutting_down ? SHUTDOWN_TIMEOUT_MS :
		    config_flush_timeout_ms(s->config), FLUSH_TRACE_STOP,
		    final_flush_done, s);
}

void
session_end_for_shutdown(struct session *s)
{
	s->shutting_down = true;
	session_disable(s, NULL);
}

bool
session_is_busy(const struct session *s)
{
	switch (s->state) {
	case SESSION_CONFIGURED:
	case SESSION_STARTED:
	case SESSION_DISABLING:
		return true;
	case SESSION_DISABLED:
	case SESSION_CLONED:
		break;
	}
	/* A consumer may still want to read what its ring buffer holds. */
	return s->file != NULL || (s->ops != NULL && s->shutting_down &&
	    !s->wrote_file);
}

void
session_free(struct session *s)
{
	struct ds_instance *i;

	s->ops = NULL;
	s->port = NULL;
	if (s->file != NULL) {
		/* Its file gets everything that was traced, then it goes. */
		s->freeing = true;
		session_disable(s, NULL);
		return;
	}
	s->in_stop = true;
	TAILQ_FOREACH(i, &s->instances, of_session)
		instance_stop(i);
	session_destroy(s);
}

/* ---- detach, attach, find, change ---- */

struct session *
session_find(struct service *sv, uint64_t id)
{
	struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (s->id == id)
			return s;
	return NULL;
}

struct session *
session_find_by_name(struct service *sv, const char *name)
{
	struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (s->state != SESSION_CLONED && !s->freeing &&
		    s->config->pb->unique_session_name != NULL &&
		    strcmp(s->config->pb->unique_session_name, name) == 0)
			return s;
	return NULL;
}

int
session_detach(struct session *s, const char *key, char *err, size_t err_size)
{
	const struct session *o;

	if (key[0] == '\0' ||
	    strlen(key) > s->service->settings->limits.max_name_bytes) {
		snprintf(err, err_size, "the key is empty or too long");
		return -1;
	}
	TAILQ_FOREACH(o, &s->service->sessions, link)
		if (o != s && o->uid == s->uid && o->detach_key != NULL &&
		    strcmp(o->detach_key, key) == 0) {
			snprintf(err, err_size, "the key is in use");
			return -1;
		}
	free(s->detach_key);
	if ((s->detach_key = strdup(key)) == NULL) {
		snprintf(err, err_size, "out of memory");
		return -1;
	}
	s->ops = NULL;
	s->port = NULL;
	return 0;
}

struct session *
session_attach(struct service *sv, const char *key, int32_t uid,
    const struct consumer_ops *ops, void *port)
{
	struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		if (s->uid != uid || s->detach_key == NULL ||
		    strcmp(s->detach_key, key) != 0)
			continue;
		free(s->detach_key);
		s->detach_key = NULL;
		s->ops = ops;
		s->port = port;
		return s;
	}
	return NULL;
}

int
session_change_config(struct session *s, const uint8_t *config, size_t len,
    char *err, size_t err_size)
{
	struct producer *p;
	struct data_source *ds;
	struct ds_instance *i;

	if (s->state != SESSION_CONFIGURED && s->state != SESSION_STARTED) {
		snprintf(err, err_size, "the session has ended");
		return -1;
	}
	if (config_add_filters(s->config, config, len, err, err_size) != 0)
		return -1;
	/* Sources that the new filters let in, and that are not in already. */
	TAILQ_FOREACH(p, &s->service->producers, link) {
		TAILQ_FOREACH(i, &p->instances, of_producer)
			if (i->session == s)
				break;
		if (i != NULL)
			continue;
		TAILQ_FOREACH(ds, &p->data_sources, link)
			set_up_instances(s, ds);
	}
	return 0;
}

bool
session_reads_nothing(const struct session *s)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    s->config->pb->trigger_config;

	if (s->state == SESSION_CLONED)
		return false;
	if (s->config->pb->write_into_file)
		return true;
	return t != NULL && s->n_triggers_hit == 0 && (t->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__START_TRACING ||
	    t->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__STOP_TRACING);
}
