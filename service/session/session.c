#include "service/session/session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "service/ingest/arrivals.h"
#include "service/ingest/buffer_vms.h"
#include "service/ingest/quota.h"
#include "service/ingest/session_losses.h"
#include "service/ingest/writers.h"
#include "service/output/file_writer.h"
#include "service/output/readback.h"
#include "service/packet/sequence_map.h"
#include "service/packet/session_filter.h"
#include "service/session/cut.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/producer.h"
#include "service/session/session_events.h"
#include "service/session/session_internal.h"
#include "service/session/session_warnings.h"
#include "service/session/thread_priority.h"
#include "service/session/trigger.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"

#define MODE(m)                                                               \
	PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__##m

void
session_set_state(struct session *s, enum session_state state)
{
	enum session_phase before = session_phase(s->state);
	enum session_phase after = session_phase(state);

	s->state = state;
	if (after == before)
		return;
	log_debug("session %llu: %s -> %s", (unsigned long long)s->id,
	    session_phase_name(before), session_phase_name(after));
	session_events_tell(s, SESSION_EVENT_STATE);
}

struct session *
session_alloc(struct service *sv, const struct principal *owner)
{
	struct timespec now;
	struct session *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->service = sv;
	s->owner = *owner;
	s->uid = (int32_t)owner->uid;
	s->id = ++sv->last_session_id;
	s->folder = (struct trace_folder){ .path = sv->settings->trace_dir,
		.fd = sv->trace_dirfd };
	TAILQ_INIT(&s->instances);
	TAILQ_INIT(&s->flushes);
	TAILQ_INIT(&s->commands);
	clock_gettime(CLOCK_REALTIME, &now);
	s->created_realtime_ns = (int64_t)now.tv_sec * 1000000000 +
	    now.tv_nsec;
	TAILQ_INSERT_TAIL(&sv->sessions, s, link);
	sv->n_sessions++;
	if (getrandom(&s->uuid_msb, sizeof(s->uuid_msb), 0) < 0 ||
	    getrandom(&s->uuid_lsb, sizeof(s->uuid_lsb), 0) < 0)
		s->uuid_msb = s->uuid_lsb = loop_boottime_ns();
	return s;
}

struct session_crowd
session_crowd(const struct session *s)
{
	const struct ds_instance *i, *k;
	struct session_crowd c = { .data_sources = (uint32_t)s->n_instances };

	if (TAILQ_EMPTY(&s->instances))
		return s->crowd;
	TAILQ_FOREACH(i, &s->instances, of_session) {
		if (i->producer->machine->id == 0)
			c.host = true;
		/* A producer counts with its first instance. */
		TAILQ_FOREACH(k, &i->producer->instances, of_producer)
			if (k->session == s)
				break;
		c.producers += k == i;
	}
	return c;
}

/* "/proc/self/fd/7": the path of what was opened, as the kernel knows it. */
static char *
path_of(int fd)
{
	char link[40], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	return n > 0 ? strndup(path, (size_t)n) : NULL;
}

static char *
path_in(const char *dir, const char *path)
{
	char *whole;

	if (path[0] == '/' || dir == NULL)
		return strdup(path);
	return asprintf(&whole, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ?
	    "" : "/", path) < 0 ? NULL : whole;
}

void
session_note_file_path(struct session *s, int fd)
{
	const char *path = s->config->pb->output_path;

	free(s->file_path);
	s->file_path = NULL;
	if (fd >= 0)
		s->file_path = path_of(fd);
	else if (path != NULL)
		s->file_path = path_in(s->folder.path, path);
}

static uint16_t
free_buffer_id(struct service *sv)
{
	unsigned tries;

	for (tries = 0; tries < UINT16_MAX; tries++) {
		if (++sv->last_buffer_id == 0)
			sv->last_buffer_id = 1;
		if (sv->buffers[sv->last_buffer_id] != NULL)
			continue;
		if (sv->last_buffer_id > sv->highest_buffer_id)
			sv->highest_buffer_id = sv->last_buffer_id;
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
forget_buffers(struct producer *p, const struct session *s)
{
	const struct session_buffer *b;
	size_t i;

	/* Backwards: the last takes the place of one that goes. */
	for (i = p->n_allowed; i-- > 0;) {
		b = s->service->buffers[p->allowed[i]];
		if (b != NULL && b->session == s)
			writers_forget_buffer(p, b->id);
	}
}

void
session_release_buffers(struct session *s)
{
	struct service *sv = s->service;
	struct producer *p;
	size_t i;

	/* One walk over the producers, whatever the number of buffers. */
	TAILQ_FOREACH(p, &sv->producers, link)
		forget_buffers(p, s);
	for (i = 0; i < s->n_buffers; i++) {
		struct session_buffer *b = &s->buffers[i];

		if (b->id != 0) {
			sv->buffers[b->id] = NULL;
			sv->n_buffers--;
		}
		if (b->tb != NULL)
			sv->total_buffer_bytes -= b->size;
		sv->total_buffer_bytes -= b->vm_bytes;
		ring_ahead_stop(&b->ahead, sv->populator);
		trace_buffer_free(b->tb);
		buffer_vms_free(b->vms);
		free(b->name);
	}
	free(s->buffers);
	s->buffers = NULL;
	s->n_buffers = 0;
	/* Producers that wait to write there need not wait any more. */
	quota_wake_all(sv);
}

void
session_maybe_idle(struct service *sv)
{
	const struct session *s;
	void (*idle)(void *) = sv->idle;

	if (idle == NULL)
		return;
	TAILQ_FOREACH(s, &sv->sessions, link)
		if (session_is_unfinished(s))
			return;
	sv->idle = NULL;
	idle(sv->idle_arg);
}

void
session_destroy(struct session *s)
{
	struct service *sv = s->service;
	struct ds_instance *i;

	producer_walk_end(&s->walk);
	producer_walk_end(&s->change_walk);
	session_events_tell(s, SESSION_EVENT_FREED);
	cut_free(s->cut);
	flush_drop_all(s);
	trigger_session_gone(s);
	while ((i = TAILQ_FIRST(&s->instances)) != NULL)
		instance_free(i);
	file_writer_free(s->file);
	session_release_buffers(s);
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
	session_filter_free(s->filter);
	event_log_free(s->events);
	sequence_map_free(s->sequences);
	session_losses_free(s->losses);
	arrivals_free(s->arrivals);
	config_free(s->config);
	free(s->detach_key);
	free(s->file_path);
	free(s->begun_by);
	session_warnings_free(s);
	session_events_tell(s, SESSION_EVENT_LEAVES);
	free(s->end_error_owned);
	TAILQ_REMOVE(&sv->sessions, s, link);
	sv->n_sessions--;
	thread_priority_session_gone(sv, s);
	free(s);
	heap_rest_freed(&sv->heap, HEAP_REST_SESSION);
	producers_reap(sv);
	session_maybe_idle(sv);
}

struct session *
session_find(struct service *sv, uint64_t id)
{
	struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (s->id == id && s->state != SESSION_GONE)
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

bool
session_awaits_file(const struct session *s)
{
	return (s->file != NULL && !file_writer_is_open(s->file)) ||
	    (s->end_error != NULL && s->state != SESSION_DISABLED);
}

int
session_detach(struct session *s, const char *key, char *err, size_t err_size)
{
	const struct session *o;

	if (key[0] == '\0' ||
	    strlen(key) > s->service->settings->limits.max_name_bytes)
		return FAILURE(err, err_size, "the key is empty or too long");
	if (s->end_error != NULL)
		return FAILURE(err, err_size, "the session has failed");
	TAILQ_FOREACH(o, &s->service->sessions, link)
		if (o != s && principal_equal(&o->owner, &s->owner) &&
		    o->detach_key != NULL &&
		    strcmp(o->detach_key, key) == 0)
			return FAILURE(err, err_size, "the key is in use");
	free(s->detach_key);
	if ((s->detach_key = strdup(key)) == NULL)
		return FAILURE(err, err_size, "out of memory");
	s->ops = NULL;
	s->port = NULL;
	return 0;
}

/* The session detached under the key: one of who before another owner's. */
static struct session *
find_detached(struct service *sv, const char *key, const struct principal *who)
{
	struct session *s, *foreign = NULL;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		if (s->detach_key == NULL || strcmp(s->detach_key, key) != 0)
			continue;
		if (principal_equal(who, &s->owner))
			return s;
		if (foreign == NULL && principal_may(who, &s->owner))
			foreign = s;
	}
	return foreign;
}

struct session *
session_attach(struct service *sv, const char *key,
    const struct principal *who, const struct consumer_ops *ops, void *port)
{
	struct session *s;

	if ((s = find_detached(sv, key, who)) == NULL)
		return NULL;
	free(s->detach_key);
	s->detach_key = NULL;
	s->ops = ops;
	s->port = port;
	return s;
}

bool
session_is_visible(const struct session *s, const struct principal *who)
{
	return s->config->pb->bugreport_score > 0 ||
	    principal_may(who, &s->owner);
}

bool
session_reads_nothing(const struct session *s)
{
	if (s->state == SESSION_CLONED)
		return false;
	switch (config_trigger_mode(s->config)) {
	case MODE(START_TRACING):
	case MODE(STOP_TRACING):
		return s->n_triggers_hit == 0;
	case MODE(CLONE_SNAPSHOT):
		return true;
	default:
		return false;
	}
}
