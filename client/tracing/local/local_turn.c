/* Work of the library's thread for the sessions inside of this program. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/tracing/core/core.h"
#include "client/tracing/local/local_internal.h"
#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define BATCH 64

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, tributary_local) sessions =
    LIST_HEAD_INITIALIZER(sessions);

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000u;
}

uint64_t
local_now_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

void
local_snapshot_clocks(struct tributary_local *l)
{
	size_t i, n;

	if (l->config->no_snapshots)
		return;
	if (l->n_snapshots == LOCAL_SNAPSHOTS_MAX) {
		/* The first stays. */
		for (i = n = 0; i < l->n_snapshots; i += 2)
			l->snapshots[n++] = l->snapshots[i];
		l->n_snapshots = n;
	}
	clock_snapshot_take(&l->snapshots[l->n_snapshots++]);
}

/* ---- Chunks into buffers ---- */

/* Whether the chunk's last fragment is a packet that its writer gave up. */
static bool
ends_in_drop(const struct tb_chunk *c)
{
	const uint8_t *p = c->payload, *end = c->payload + c->len;
	uint64_t size = 0;
	uint16_t n;

	for (n = 0; n < c->num_fragments; n++) {
		if ((p = pb_varint(p, end, &size)) == NULL ||
		    size > (uint64_t)(end - p))
			break;
		p += size;
	}
	return n + 1 == c->num_fragments && size == SHM_SIZE_DROP_PACKET;
}

static uint64_t
packets_in(const struct tb_chunk *c)
{
	uint64_t less = (c->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0;

	/* A packet that is both continued and given up began elsewhere. */
	if (ends_in_drop(c) && c->num_fragments > less)
		less++;
	return c->num_fragments > less ? c->num_fragments - less : 0;
}

static void
store(struct tributary_local *l, const struct chunk_commit *commit)
{
	struct shm *shm = chunk_memory_shm(l->memory);
	struct tb_origin origin = { .producer = LOCAL_PRODUCER,
	    .uid = (int32_t)getuid(), .pid = (int32_t)getpid() };
	struct tb_chunk chunk = { .complete = true };
	struct shm_chunk from;
	uint64_t packets;

	if (shm_take(shm, commit->page, commit->index, &from) != SHM_TAKEN)
		return;
	origin.writer = from.writer_id;
	chunk.id = from.chunk_id;
	chunk.num_fragments = from.num_fragments;
	chunk.flags = from.flags;
	chunk.payload = from.payload;
	chunk.len = commit->used;
	packets = packets_in(&chunk);
	l->counts.written += packets;
	if (!trace_buffer_write(l->buffers[commit->buffer - 1], &origin,
	    &chunk))
		l->counts.discarded += packets;
	shm_release(shm, commit->page, commit->index);
}

static void
writer_over(struct tributary_local *l, uint16_t writer)
{
	size_t i;

	for (i = 0; i < l->config->n_buffers; i++)
		trace_buffer_writer_gone(l->buffers[i], LOCAL_PRODUCER,
		    writer);
}

static void
commit(struct tributary_local *l)
{
	struct chunk_queue_item items[BATCH];
	size_t i, n;

	registry_relieve(l->memory);
	while ((n = chunk_memory_take(l->memory, items, BATCH)) > 0) {
		pthread_mutex_lock(&l->lock);
		for (i = 0; i < n; i++) {
			if (!items[i].is_note)
				store(l, &items[i].is.commit);
			else if (items[i].is.note.buffer == 0)
				writer_over(l, items[i].is.note.writer);
		}
		pthread_mutex_unlock(&l->lock);
	}
}

static void
commit_cb(void *arg)
{
	commit(arg);
}

/* ---- Data sources ---- */

static enum tributary_full_policy
full_policy(uint64_t policy)
{
	switch (policy) {
	case DataSourceConfig_BUFFER_EXHAUSTED_DROP:
		return TRIBUTARY_FULL_DROP;
	case DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_ABORT:
		return TRIBUTARY_FULL_ABORT;
	case DataSourceConfig_BUFFER_EXHAUSTED_STALL_THEN_DROP:
		return TRIBUTARY_FULL_STALL;
	default:
		return TRIBUTARY_FULL_DEFAULT;
	}
}

/* The consumer's config, with what a service fills in. */
static void
encode_config(const struct tributary_local *l,
    const struct local_source_config *of, struct pb_writer *w)
{
	pb_put_raw(w, of->config, of->len);
	pb_put_uint(w, DataSourceConfig_target_buffer, of->buffer + 1);
	pb_put_uint(w, DataSourceConfig_trace_duration_ms,
	    l->config->duration_ms);
	pb_put_uint(w, DataSourceConfig_tracing_session_id, l->id);
	pb_put_uint(w, DataSourceConfig_stop_timeout_ms,
	    l->config->stop_timeout_ms);
}

static void
start_source(struct tributary_local *l, size_t n)
{
	const struct local_source_config *of = &l->config->sources[n];
	struct instance_setup setup = { .endpoint = &l->endpoint,
	    .memory = l->memory, .id = n + 1, .session = l->id,
	    .buffer = of->buffer + 1, .full = full_policy(of->policy) };
	struct tributary_source *source;
	struct pb_writer w;

	registry_lock();
	source = registry_find((const char *)of->name, of->name_len);
	registry_unlock();
	if (source == NULL)
		return; /* it may come later */
	pb_writer_init(&w);
	encode_config(l, of, &w);
	setup.config = w.data;
	setup.config_len = w.len;
	if (!w.failed)
		l->sources[n].i = instance_new(source, &setup);
	pb_writer_done(&w);
	if (l->sources[n].i != NULL) {
		instance_start(l->sources[n].i);
		return;
	}
	l->sources[n].over = true;
	pthread_mutex_lock(&l->lock);
	l->refused = true;
	pthread_mutex_unlock(&l->lock);
}

static void
start_sources(struct tributary_local *l)
{
	size_t i;

	for (i = 0; i < l->config->n_sources; i++)
		if (l->sources[i].i == NULL && !l->sources[i].over)
			start_source(l, i);
}

static void
count_dropped(struct tributary_local *l, size_t n)
{
	uint64_t dropped = tributary_instance_dropped(l->sources[n].i);

	pthread_mutex_lock(&l->lock);
	l->dropped[n] = dropped;
	pthread_mutex_unlock(&l->lock);
}

static void
end_source(struct tributary_local *l, size_t n)
{
	struct tributary_instance *i = l->sources[n].i;

	count_dropped(l, n);
	l->sources[n].i = NULL;
	l->sources[n].over = true;
	instance_free(i);
	commit(l);
}

static size_t
running(const struct tributary_local *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->config->n_sources; i++)
		n += l->sources[i].i != NULL;
	return n;
}

/* ---- Notes of other threads ---- */

static void
add_note(struct endpoint *e, struct tributary_instance *i, uint64_t flush_id)
{
	struct tributary_local *l = (struct tributary_local *)e;
	struct local_note *n;

	/* Without memory the session's own time-out ends the wait. */
	if ((n = calloc(1, sizeof(*n))) == NULL)
		return;
	n->instance = i;
	n->flush_id = flush_id;
	pthread_mutex_lock(&l->notes_lock);
	STAILQ_INSERT_TAIL(&l->notes, n, link);
	pthread_mutex_unlock(&l->notes_lock);
	core_wake();
}

static void
stop_done(struct endpoint *e, struct tributary_instance *i)
{
	add_note(e, i, 0);
}

static void
flush_done(struct endpoint *e, struct tributary_instance *i, uint64_t flush_id)
{
	add_note(e, i, flush_id);
}

static void
heed(struct tributary_local *l, const struct local_note *note)
{
	size_t i;

	for (i = 0; i < l->config->n_sources; i++)
		if (l->sources[i].i == note->instance)
			break;
	if (i == l->config->n_sources)
		return;
	if (note->flush_id == 0) {
		if (note->instance->state == INSTANCE_STOPPING)
			end_source(l, i);
	} else if (note->flush_id == l->flush_begun &&
	    l->flush_waits_for > 0) {
		l->flush_waits_for--;
	}
}

static void
take_notes(struct tributary_local *l)
{
	struct local_note *n;

	for (;;) {
		pthread_mutex_lock(&l->notes_lock);
		if ((n = STAILQ_FIRST(&l->notes)) != NULL)
			STAILQ_REMOVE_HEAD(&l->notes, link);
		pthread_mutex_unlock(&l->notes_lock);
		if (n == NULL)
			return;
		heed(l, n);
		free(n);
	}
}

/* ---- Flushes ---- */

static void
begin_flush(struct tributary_local *l, uint64_t now)
{
	size_t i;

	pthread_mutex_lock(&l->lock);
	/* All that were asked for until now are one. */
	l->flush_begun = l->flush_asked;
	l->flushes++;
	pthread_mutex_unlock(&l->lock);
	l->flush_waits_for = 0;
	l->flush_limit_ms = now + l->config->flush_timeout_ms;
	for (i = 0; i < l->config->n_sources; i++)
		if (l->sources[i].i != NULL &&
		    !instance_flush(l->sources[i].i, l->flush_begun))
			l->flush_waits_for++;
}

static void
end_flush(struct tributary_local *l)
{
	bool failed = l->flush_waits_for > 0;
	size_t i;

	for (i = 0; i < l->config->n_sources; i++) {
		if (l->sources[i].i == NULL)
			continue;
		instance_hand_over(l->sources[i].i);
		count_dropped(l, i);
	}
	commit(l);
	l->flush_limit_ms = 0;
	pthread_mutex_lock(&l->lock);
	l->flushes_failed += failed;
	l->flush_done = l->flush_begun;
	l->flushed_ns = local_now_ns();
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static bool
wants_flush(struct tributary_local *l)
{
	bool wants;

	pthread_mutex_lock(&l->lock);
	wants = l->flush_asked > l->flush_begun;
	pthread_mutex_unlock(&l->lock);
	return wants;
}

static void
ask_flush(struct tributary_local *l)
{
	pthread_mutex_lock(&l->lock);
	l->flush_asked++;
	pthread_mutex_unlock(&l->lock);
}

/*
 * A packet of a ring whose sequence's state is overwritten cannot be read: the
 * sequences begin anew in each eighth of it.
 */
static void
begin_anew(struct tributary_local *l, size_t b)
{
	uint64_t written, size = l->config->buffers[b].bytes;
	size_t i;

	pthread_mutex_lock(&l->lock);
	written = trace_buffer_stats(l->buffers[b])->bytes_written;
	pthread_mutex_unlock(&l->lock);
	if (l->config->buffers[b].discard ||
	    written - l->begun_anew[b] < size / 8)
		return;
	l->begun_anew[b] = written;
	for (i = 0; i < l->config->n_sources; i++)
		if (l->sources[i].i != NULL &&
		    l->config->sources[i].buffer == b)
			instance_clear_state(l->sources[i].i);
}

/* ---- A session's life ---- */

static bool
asked(struct tributary_local *l, const bool *what)
{
	bool is;

	pthread_mutex_lock(&l->lock);
	is = *what;
	pthread_mutex_unlock(&l->lock);
	return is;
}

/* The thread alone changes it. */
static void
set_phase(struct tributary_local *l, enum local_phase phase)
{
	pthread_mutex_lock(&l->lock);
	l->phase = phase;
	if (phase == LOCAL_STARTED)
		l->all_started_ns = local_now_ns();
	if (phase == LOCAL_STOPPED) {
		l->disabled_ns = local_now_ns();
		local_snapshot_clocks(l);
		l->flush_done = l->flush_asked;
	}
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static uint64_t
due_after(uint64_t now, uint64_t period_ms)
{
	return period_ms != 0 ? now + period_ms : UINT64_MAX;
}

static void
start(struct tributary_local *l, uint64_t now)
{
	const struct local_config *c = l->config;

	if (!l->memory_owned)
		chunk_memory_set_owner(l->memory, commit_cb, l);
	l->memory_owned = true;
	l->endpoint.stop_done = stop_done;
	l->endpoint.flush_done = flush_done;
	pthread_mutex_lock(&l->lock);
	l->started_ns = local_now_ns();
	local_snapshot_clocks(l);
	pthread_mutex_unlock(&l->lock);
	l->duration_due_ms = due_after(now, c->duration_ms);
	l->flush_due_ms = due_after(now, c->flush_period_ms);
	l->clear_due_ms = due_after(now, c->clear_period_ms);
	l->snapshot_due_ms = due_after(now, c->snapshot_ms);
	start_sources(l);
	set_phase(l, LOCAL_STARTED);
}

static void
begin_stop(struct tributary_local *l, uint64_t now)
{
	size_t i;

	set_phase(l, LOCAL_STOPPING);
	l->stop_due_ms = now + l->config->stop_timeout_ms;
	for (i = 0; i < l->config->n_sources; i++)
		if (l->sources[i].i != NULL && instance_stop(l->sources[i].i))
			end_source(l, i);
}

static void
go_on_stopping(struct tributary_local *l, uint64_t now)
{
	size_t i;

	for (i = 0; now >= l->stop_due_ms && i < l->config->n_sources; i++)
		if (l->sources[i].i != NULL)
			end_source(l, i);
	if (running(l) > 0)
		return;
	commit(l);
	set_phase(l, LOCAL_STOPPED);
}

static void
heed_timers(struct tributary_local *l, uint64_t now)
{
	size_t i;

	if (now >= l->duration_due_ms) {
		l->duration_due_ms = UINT64_MAX;
		pthread_mutex_lock(&l->lock);
		l->stop_asked = true;
		pthread_mutex_unlock(&l->lock);
	}
	if (now >= l->flush_due_ms) {
		l->flush_due_ms = due_after(now, l->config->flush_period_ms);
		ask_flush(l);
	}
	if (now >= l->clear_due_ms) {
		l->clear_due_ms = due_after(now, l->config->clear_period_ms);
		for (i = 0; i < l->config->n_sources; i++)
			if (l->sources[i].i != NULL)
				instance_clear_state(l->sources[i].i);
	}
	if (now >= l->snapshot_due_ms) {
		l->snapshot_due_ms = due_after(now, l->config->snapshot_ms);
		pthread_mutex_lock(&l->lock);
		local_snapshot_clocks(l);
		pthread_mutex_unlock(&l->lock);
	}
}

static void
go_on_flushing(struct tributary_local *l, uint64_t now)
{
	if (l->flush_limit_ms == 0 && wants_flush(l))
		begin_flush(l, now);
	if (l->flush_limit_ms != 0 &&
	    (l->flush_waits_for == 0 || now >= l->flush_limit_ms))
		end_flush(l);
}

static void
go_on(struct tributary_local *l, uint64_t now)
{
	size_t b;

	start_sources(l);
	for (b = 0; b < l->config->n_buffers; b++)
		begin_anew(l, b);
	heed_timers(l, now);
	if (asked(l, &l->stop_asked) && !l->final_flush_begun) {
		l->final_flush_begun = true;
		ask_flush(l);
	}
	go_on_flushing(l, now);
	if (l->final_flush_begun && l->flush_limit_ms == 0)
		begin_stop(l, now);
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
due_at(const struct tributary_local *l)
{
	uint64_t due = UINT64_MAX;

	if (l->phase == LOCAL_STARTED) {
		due = earlier(earlier(l->duration_due_ms, l->flush_due_ms),
		    earlier(l->clear_due_ms, l->snapshot_due_ms));
		if (l->flush_limit_ms != 0)
			due = earlier(due, l->flush_limit_ms);
	}
	return l->phase == LOCAL_STOPPING ? l->stop_due_ms : due;
}

/* Returns when it is due again. */
static uint64_t
turn_of(struct tributary_local *l)
{
	uint64_t now = now_ms();

	commit(l);
	take_notes(l);
	if (l->phase == LOCAL_READY && asked(l, &l->start_asked))
		start(l, now);
	if (l->phase == LOCAL_STARTED)
		go_on(l, now);
	if (l->phase == LOCAL_STOPPING)
		go_on_stopping(l, now);
	return due_at(l);
}

/* Takes it from the list, if its owner wants it back. */
static bool
may_detach(struct tributary_local *l)
{
	if (!asked(l, &l->detach_asked) ||
	    (l->phase != LOCAL_READY && l->phase != LOCAL_STOPPED))
		return false;
	pthread_mutex_lock(&list_lock);
	LIST_REMOVE(l, link);
	pthread_mutex_unlock(&list_lock);
	pthread_mutex_lock(&l->lock);
	l->detached = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	return true;
}

static struct tributary_local *
next_session(struct tributary_local *after)
{
	struct tributary_local *l;

	pthread_mutex_lock(&list_lock);
	l = after != NULL ? LIST_NEXT(after, link) : LIST_FIRST(&sessions);
	pthread_mutex_unlock(&list_lock);
	return l;
}

int
local_turn(void)
{
	struct tributary_local *l, *next;
	uint64_t due = UINT64_MAX, now;

	/* The thread alone removes sessions. */
	for (l = next_session(NULL); l != NULL; l = next) {
		due = earlier(due, turn_of(l));
		next = next_session(l);
		(void)may_detach(l);
	}
	if (due == UINT64_MAX)
		return -1;
	now = now_ms();
	return due > now ? (int)earlier(due - now, 60000) : 0;
}

void
local_init_locks(struct tributary_local *l)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->notes_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
}

void
local_attach(struct tributary_local *l)
{
	pthread_mutex_lock(&list_lock);
	LIST_INSERT_HEAD(&sessions, l, link);
	pthread_mutex_unlock(&list_lock);
}

void
local_before_fork(void)
{
	pthread_mutex_lock(&list_lock);
}

/* In the child: what the parent's thread was at is not to be touched. */
static void
forget(struct tributary_local *l)
{
	local_init_locks(l);
	l->phase = LOCAL_GONE;
}

void
local_after_fork(bool in_child)
{
	struct tributary_local *l;

	if (!in_child) {
		pthread_mutex_unlock(&list_lock);
		return;
	}
	pthread_mutex_init(&list_lock, NULL);
	LIST_FOREACH(l, &sessions, link)
		forget(l);
	LIST_INIT(&sessions);
}
