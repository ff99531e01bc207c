#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/config/config_guard.h"
#include "service/limits/free_memory.h"
#include "service/output/readback.h"
#include "service/packet/sequence_map.h"
#include "service/packet/session_filter.h"
#include "service/session/cut.h"
#include "service/session/lockdown.h"
#include "service/session/session.h"
#include "service/session/session_internal.h"
#include "service/session/session_warnings.h"
#include "service/session/thread_priority.h"
#include "service/session/trigger.h"
#include "service/settings/settings.h"
#include "transport/buffer/trace_buffer.h"

int
session_check_limits(struct service *sv, const struct principal *owner,
    char *err, size_t err_size)
{
	const struct limits *l = &sv->settings->limits;
	const struct session *s;
	uint32_t own = 0, own_gone = 0;
	size_t n = 0;
	bool gone;
	char text[96];

	TAILQ_FOREACH(s, &sv->sessions, link) {
		gone = s->state == SESSION_GONE;
		n += !gone;
		if (principal_equal(&s->owner, owner)) {
			own += !gone;
			own_gone += gone;
		}
	}
	/* Sessions in GONE count only where they pile up. */
	if (sv->n_sessions - n > l->max_sessions)
		n = sv->n_sessions;
	if (own_gone > l->max_sessions_per_uid)
		own += own_gone;
	if (sv->shutdown != NULL) {
		snprintf(err, err_size, "The service is shutting down");
		return -1;
	}
	if (n >= l->max_sessions) {
		snprintf(err, err_size, "Too many concurrent tracing sessions "
		    "(%zu, limits.max_sessions)", n);
		return -1;
	}
	if (own >= l->max_sessions_per_uid) {
		snprintf(err, err_size, "Too many concurrent tracing sessions "
		    "(%u) for %s (limits.max_sessions_per_uid)", own,
		    principal_text(owner, text, sizeof(text)));
		return -1;
	}
	return 0;
}

/* Whether the session has not stopped yet, and is not being freed. */
static bool
is_running(const struct session *s)
{
	switch (session_phase(s->state)) {
	case SESSION_PHASE_NEW:
	case SESSION_PHASE_CONFIGURED:
	case SESSION_PHASE_STARTED:
		return true;
	case SESSION_PHASE_STOPPING:
		return s->state != SESSION_GONE;
	case SESSION_PHASE_DISABLED:
	case SESSION_PHASE_CLONED:
		break;
	}
	return false;
}

static int
check_others(struct service *sv, const Perfetto__Protos__TraceConfig *pb,
    char *err, size_t err_size)
{
	const struct session *s;
	char name[256];
	size_t i, k;
	uint64_t holders, allowed;

	if (pb->unique_session_name != NULL &&
	    pb->unique_session_name[0] != '\0' &&
	    session_find_by_name(sv, pb->unique_session_name) != NULL) {
		log_escape(name, sizeof(name), pb->unique_session_name,
		    strlen(pb->unique_session_name));
		snprintf(err, err_size, "A trace with this unique session name "
		    "(%s) already exists", name);
		return -1;
	}
	for (i = 0; i < pb->n_session_semaphores; i++) {
		const Perfetto__Protos__TraceConfig__SessionSemaphore *sem =
		    pb->session_semaphores[i];

		holders = 0;
		/* Each holder may have said that it wants fewer beside it. */
		allowed = sem->max_other_session_count;
		TAILQ_FOREACH(s, &sv->sessions, link) {
			const Perfetto__Protos__TraceConfig *o = s->config->pb;

			if (!is_running(s))
				continue;
			for (k = 0; k < o->n_session_semaphores; k++) {
				const Perfetto__Protos__TraceConfig__SessionSemaphore *held =
				    o->session_semaphores[k];

				if (sem->name == NULL || held->name == NULL ||
				    strcmp(sem->name, held->name) != 0)
					continue;
				holders++;
				if (held->max_other_session_count < allowed)
					allowed = held->max_other_session_count;
			}
		}
		if (holders > allowed) {
			log_escape(name, sizeof(name), sem->name == NULL ? "" :
			    sem->name, sem->name == NULL ? 0 :
			    strlen(sem->name));
			snprintf(err, err_size, "Semaphore \"%s\" exceeds "
			    "maximum allowed other session count (%llu > "
			    "%llu)", name,
			    (unsigned long long)holders,
			    (unsigned long long)allowed);
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
check_exclusive(const struct service *sv, const struct principal *owner,
    uint32_t prio, char *err, size_t err_size)
{
	const struct session *s;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		if (!is_running(s))
			continue;
		if (s->config->pb->exclusive_prio > 0 &&
		    s->config->pb->exclusive_prio >= prio) {
			snprintf(err, err_size, "An exclusive session with "
			    "equal or higher priority (%u) is running",
			    s->config->pb->exclusive_prio);
			return -1;
		}
		if (prio > 0 && !principal_may(owner, &s->owner)) {
			snprintf(err, err_size, "An exclusive session would "
			    "end the sessions of others: while others trace, "
			    "only an admin may start one");
			return -1;
		}
	}
	return 0;
}

static void
end_others(const struct session *exclusive)
{
	struct session *s, *next;

	TAILQ_FOREACH_SAFE(s, &exclusive->service->sessions, link, next)
		if (s != exclusive)
			session_disable(s, "Ended by an exclusive session "
			    "with higher priority");
}

static uint64_t
buffer_bytes_of(const struct service *sv, const struct principal *owner)
{
	const struct session *s;
	uint64_t bytes = 0;
	size_t i;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (principal_equal(&s->owner, owner))
			for (i = 0; i < s->n_buffers; i++)
				bytes += s->buffers[i].size +
				    s->buffers[i].vm_bytes;
	return bytes;
}

/*
 * Pages of a buffer are taken as it is written: what others were promised and
 * have not taken yet is not free either.
 */
static uint64_t
promised_bytes(const struct service *sv)
{
	const struct session *s;
	uint64_t bytes = 0;
	size_t i;

	TAILQ_FOREACH(s, &sv->sessions, link)
		for (i = 0; i < s->n_buffers; i++)
			if (s->buffers[i].tb != NULL)
				bytes += trace_buffer_memory(
				    s->buffers[i].tb).to_come;
	return bytes;
}

static int
check_free_memory(struct service *sv, uint64_t more, char *err,
    size_t err_size)
{
	const struct limits *l = &sv->settings->limits;
	uint64_t free_kb, taken_kb;

	if (more == 0 || l->ignore_free_memory)
		return 0;
	if (free_memory_kb(&free_kb) != 0) {
		log_limited(&sv->memory_log, loop_now_ms(), LOG_LEVEL_WARN,
		    "/proc/meminfo does not tell the available memory: new "
		    "buffers may make the machine swap");
		return 0;
	}
	taken_kb = promised_bytes(sv) / 1024 + l->min_free_memory_kb;
	if (free_kb > taken_kb && more / 1024 <= free_kb - taken_kb)
		return 0;
	snprintf(err, err_size, "Buffers of %llu KiB do not fit into the "
	    "machine's memory: %llu KiB are available, of which %llu KiB are "
	    "promised to others or have to stay free "
	    "(limits.min_free_memory_kb)", (unsigned long long)(more / 1024),
	    (unsigned long long)free_kb, (unsigned long long)taken_kb);
	return -1;
}

int
session_check_memory(struct service *sv, const struct principal *owner,
    uint64_t more, char *err, size_t err_size)
{
	const struct limits *l = &sv->settings->limits;
	uint64_t own;
	char text[96];

	if (more + sv->total_buffer_bytes > l->max_total_buffer_kb * 1024) {
		snprintf(err, err_size, "Buffers of %llu KiB do not fit: %llu "
		    "KiB of %llu KiB are in use (limits.max_total_buffer_kb)",
		    (unsigned long long)(more / 1024),
		    (unsigned long long)(sv->total_buffer_bytes / 1024),
		    (unsigned long long)l->max_total_buffer_kb);
		return -1;
	}
	own = buffer_bytes_of(sv, owner);
	if (more + own > l->max_buffer_kb_per_consumer * 1024) {
		snprintf(err, err_size, "Buffers of %llu KiB do not fit: %s "
		    "has %llu KiB of %llu KiB in use "
		    "(limits.max_buffer_kb_per_consumer)",
		    (unsigned long long)(more / 1024),
		    principal_text(owner, text, sizeof(text)),
		    (unsigned long long)(own / 1024),
		    (unsigned long long)l->max_buffer_kb_per_consumer);
		return -1;
	}
	return check_free_memory(sv, more, err, err_size);
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
	if (session_check_memory(sv, &s->owner, total, err, err_size) != 0)
		return -1;
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
	    s->readback == NULL || session_timers_make(s) != 0 ||
	    (s->cut = cut_new(s)) == NULL ? -1 : 0;
}

/* Effects on other sessions; the new one cannot be refused any more. */
static void
made(struct session *s)
{
	if (s->config->pb->exclusive_prio > 0)
		end_others(s);
	session_warn_of_config(s);
	lockdown_apply(s);
	guard_book_note(s->service->guard_book, s->config->pb, &s->owner,
	    loop_now_ms());
	thread_priority_session_came(s);
	session_set_state(s, trigger_starts(s) ? SESSION_AWAITS_TRIGGER :
	    SESSION_CONFIGURED);
}

struct session *
session_new(struct service *sv, const struct session_request *r, char *err,
    size_t err_size)
{
	const struct principal *owner = r->owner;
	struct config *config = r->config;
	const Perfetto__Protos__TraceConfig *pb = config->pb;
	struct session_filter *filter = NULL;
	struct session *s = NULL;
	int fd = r->fd;

	if (session_check_limits(sv, owner, err, err_size) != 0)
		goto fail;
	if (pb->trace_filter != NULL &&
	    (filter = session_filter_new(config, err, err_size)) == NULL)
		goto fail;
	if (check_others(sv, pb, err, err_size) != 0 ||
	    lockdown_check(pb, owner, err, err_size) != 0 ||
	    guard_book_check(sv->guard_book, pb, owner, loop_now_ms(), err,
	    err_size) != 0 ||
	    check_exclusive(sv, owner, pb->exclusive_prio, err, err_size) != 0)
		goto fail;
	snprintf(err, err_size, "out of memory");
	if ((s = session_alloc(sv, owner)) == NULL)
		goto fail;
	s->config = config;
	config = NULL;
	s->filter = filter;
	filter = NULL;
	s->standing = r->standing;
	if (r->folder != NULL)
		s->folder = *r->folder;
	errno = 0;
	if (make_parts(s) != 0) {
		if (errno == EMFILE || errno == ENFILE)
			snprintf(err, err_size, "the collector is out of file "
			    "descriptors (LimitNOFILE=, ulimit -n)");
		goto fail;
	}
	if (make_buffers(s, err, err_size) != 0)
		goto fail;
	if (trigger_arm(s, err, err_size) != 0)
		goto fail;
	/* Last, as a later refusal would leave a new file behind. */
	if (pb->write_into_file) {
		session_note_file_path(s, fd);
		if (session_make_file(s, fd, err, err_size) != 0)
			goto fail;
		fd = -1;
	}
	s->ops = r->ops;
	s->port = r->port;
	if (fd >= 0)
		close(fd); /* the config has no write_into_file */
	made(s);
	session_set_up_all(s);
	if (!pb->deferred_start && !trigger_starts(s))
		session_want_start(s);
	return s;

fail:
	if (fd >= 0)
		close(fd);
	config_free(config);
	session_filter_free(filter);
	if (s != NULL)
		session_destroy(s);
	return NULL;
}
