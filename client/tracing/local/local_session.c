/* <tributary/session.h>: sessions inside of this program. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "client/tracing/core/core.h"
#include "client/tracing/local/local_internal.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"

/* Time for the flush before a reading. */
#define READ_FLUSH_MS 1000u
/* Default for writers: a quarter of the smallest ring, within these. */
#define MEMORY_BYTES_LEAST (64u * 1024u)
#define MEMORY_BYTES_MOST  (1024u * 1024u)
/* Bytes of a clone between two times that the library's thread may write. */
#define FILL_BYTES (256u * 1024u)

static const struct core_guest guest = { local_turn, local_before_fork,
	local_after_fork };
static _Atomic uint64_t last_id;

/* Under the lock, as all that is below of it. */
static bool
fail(struct tributary_local *l, const char *sentence)
{
	snprintf(l->why, sizeof(l->why), "%s", sentence);
	return false;
}

static bool
is_gone(struct tributary_local *l)
{
	if (l->phase != LOCAL_GONE)
		return false;
	(void)fail(l, "The session is the parent's: this is a child of "
	    "fork().");
	return true;
}

/* ---- Its making ---- */

static void
free_buffers(struct tributary_local *l)
{
	size_t i;

	for (i = 0; i < l->config->n_buffers; i++)
		trace_buffer_free(l->buffers[i]);
}

static void
done(struct tributary_local *l)
{
	/* In a child the buffers of its parent may be half changed. */
	if (l->phase != LOCAL_GONE) {
		free_buffers(l);
		if (l->memory != NULL)
			chunk_memory_close(l->memory);
		chunk_memory_unref(l->memory);
	}
	local_config_free(l->config);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->notes_lock);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Takes the config, also on failure. */
static struct tributary_local *
new_without_buffers(struct local_config *c)
{
	struct tributary_local *l;

	if ((l = calloc(1, sizeof(*l))) == NULL) {
		local_config_free(c);
		return NULL;
	}
	l->config = c;
	local_init_locks(l);
	STAILQ_INIT(&l->notes);
	if (getrandom(&l->uuid_msb, sizeof(l->uuid_msb), 0) < 0 ||
	    getrandom(&l->uuid_lsb, sizeof(l->uuid_lsb), 0) < 0)
		l->uuid_msb = l->uuid_lsb = local_now_ns();
	l->id = atomic_fetch_add(&last_id, 1) + 1;
	return l;
}

static bool
make_buffers(struct tributary_local *l)
{
	size_t i;

	for (i = 0; i < l->config->n_buffers; i++)
		if ((l->buffers[i] = trace_buffer_new(
		    l->config->buffers[i].bytes,
		    l->config->buffers[i].discard ? TB_DISCARD :
		    TB_RING)) == NULL)
			return false;
	return true;
}

static void
wake_cb(void *arg)
{
	core_wake();
}

/*
 * In a ring as much as writers are ahead is older than the state that they were
 * last told to begin anew (local_turn.c).
 */
static size_t
memory_bytes(const struct local_config *c)
{
	uint64_t bytes = MEMORY_BYTES_MOST;
	size_t i;

	if (c->memory_kb != 0)
		return (size_t)c->memory_kb * 1024;
	for (i = 0; i < c->n_buffers; i++)
		if (!c->buffers[i].discard && c->buffers[i].bytes / 4 < bytes)
			bytes = c->buffers[i].bytes / 4;
	bytes -= bytes % SHM_PAGE_UNIT;
	return bytes > MEMORY_BYTES_LEAST ? (size_t)bytes : MEMORY_BYTES_LEAST;
}

static bool
make_memory(struct tributary_local *l)
{
	size_t size, page;
	struct shm *shm;

	shm_valid_sizes(memory_bytes(l->config), l->config->page_kb != 0 ? (size_t)l->config->page_kb * 1024 :
	    SHM_PAGE_UNIT, &size, &page);
	if ((shm = shm_new(size, page)) == NULL)
		return false;
	if ((l->memory = chunk_memory_new(shm, wake_cb, l)) == NULL) {
		shm_free(shm);
		return false;
	}
	return true;
}

static struct tributary_local *
session_new(struct local_config *c, char *why, size_t why_len)
{
	struct tributary_local *l;
	int saved = errno;

	if (c == NULL)
		return NULL;
	if ((l = new_without_buffers(c)) == NULL || !make_buffers(l) ||
	    !make_memory(l) || core_enter(&guest) != 0) {
		if (l != NULL)
			done(l);
		snprintf(why, why_len, "There is no memory for the session's "
		    "buffers, or no thread.");
		l = NULL;
	} else {
		local_attach(l);
	}
	errno = saved;
	return l;
}

struct tributary_local *
tributary_session_local(const void *config, size_t len, char *why,
    size_t why_len)
{
	return session_new(local_config_new(config, len, why, why_len), why,
	    why_len);
}

struct tributary_local *
tributary_session_local_simple(const struct tributary_session_options *options,
    char *why, size_t why_len)
{
	return session_new(local_config_simple(options, why, why_len), why,
	    why_len);
}

/* ---- Requests of the thread ---- */

/* Whether the session is one that records, and the caller may wait for it. */
static bool
may_wait(struct tributary_local *l)
{
	if (is_gone(l))
		return false;
	if (l->is_clone)
		return fail(l, "The session is a copy of another, and does "
		    "not record.");
	if (core_is_thread())
		return fail(l, "A callback of a data source may not wait for "
		    "the session.");
	return true;
}

bool
tributary_local_start(struct tributary_local *l)
{
	bool ok = false;

	pthread_mutex_lock(&l->lock);
	if (!may_wait(l))
		goto out;
	if (l->start_asked) {
		ok = fail(l, "The session was started before.");
		goto out;
	}
	l->start_asked = true;
	core_wake();
	while (l->phase == LOCAL_READY)
		pthread_cond_wait(&l->changed, &l->lock);
	ok = !l->refused;
	if (!ok)
		(void)fail(l, "A data source refused the session, or has too "
		    "many instances.");
out:
	pthread_mutex_unlock(&l->lock);
	return ok;
}

/* Under the lock. */
static bool
flush(struct tributary_local *l, unsigned timeout_ms)
{
	struct timespec at;
	uint64_t number;

	if (l->phase != LOCAL_STARTED)
		return fail(l, "The session does not run.");
	number = ++l->flush_asked;
	core_wake();
	core_deadline(&at, timeout_ms);
	while (l->flush_done < number)
		if (pthread_cond_timedwait(&l->changed, &l->lock, &at) ==
		    ETIMEDOUT)
			break;
	return l->flush_done >= number ||
	    fail(l, "The flush was not done within its time.");
}

bool
tributary_local_flush(struct tributary_local *l, unsigned timeout_ms)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	ok = may_wait(l) && flush(l, timeout_ms);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

/* Under the lock. */
static bool
wait_stopped(struct tributary_local *l, unsigned timeout_ms)
{
	struct timespec at;

	core_deadline(&at, timeout_ms);
	while (l->phase != LOCAL_STOPPED)
		if (pthread_cond_timedwait(&l->changed, &l->lock, &at) ==
		    ETIMEDOUT)
			break;
	return l->phase == LOCAL_STOPPED ||
	    fail(l, "The session did not end within the time.");
}

bool
tributary_local_stop(struct tributary_local *l, unsigned timeout_ms)
{
	bool ok = false;

	pthread_mutex_lock(&l->lock);
	if (!may_wait(l))
		goto out;
	if (!l->start_asked) {
		(void)fail(l, "The session does not run.");
		goto out;
	}
	l->stop_asked = true;
	core_wake();
	ok = wait_stopped(l, timeout_ms);
out:
	pthread_mutex_unlock(&l->lock);
	return ok;
}

bool
tributary_local_wait(struct tributary_local *l, unsigned timeout_ms)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	ok = may_wait(l) && wait_stopped(l, timeout_ms);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

const char *
tributary_local_why(const struct tributary_local *l)
{
	return l->why;
}

void
tributary_local_free(struct tributary_local *l)
{
	bool attached;

	if (l == NULL)
		return;
	pthread_mutex_lock(&l->lock);
	attached = !l->is_clone && l->phase != LOCAL_GONE;
	if (attached) {
		l->stop_asked = l->detach_asked = true;
		core_wake();
		while (!l->detached)
			pthread_cond_wait(&l->changed, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	done(l);
	if (attached)
		core_leave();
}

/* ---- Copies ---- */

/* Under the lock of l, but while the thread may write. */
static bool
copy_buffer(struct tributary_local *l, struct tributary_local *copy, size_t b)
{
	const struct local_buffer_config *c = &l->config->buffers[b];
	enum tb_fill filled = TB_FILL_MORE;

	copy->buffers[b] = c->transfer_on_clone ?
	    trace_buffer_take(l->buffers[b]) :
	    trace_buffer_clone(l->buffers[b]);
	if (copy->buffers[b] == NULL)
		return false;
	while (filled == TB_FILL_MORE) {
		filled = trace_buffer_fill(copy->buffers[b], FILL_BYTES);
		pthread_mutex_unlock(&l->lock);
		pthread_mutex_lock(&l->lock);
	}
	return filled == TB_FILL_DONE;
}

/* As above. */
static bool
copy_all(struct tributary_local *l, struct tributary_local *copy)
{
	size_t b;

	local_snapshot_clocks(l);
	memcpy(copy->snapshots, l->snapshots, sizeof(copy->snapshots));
	copy->n_snapshots = l->n_snapshots;
	copy->started_ns = l->started_ns;
	copy->all_started_ns = l->all_started_ns;
	copy->flushed_ns = l->flushed_ns;
	copy->disabled_ns = l->disabled_ns;
	copy->flushes = l->flushes;
	copy->flushes_failed = l->flushes_failed;
	for (b = 0; b < l->config->n_buffers; b++)
		if (!copy_buffer(l, copy, b))
			return false;
	memcpy(copy->dropped, l->dropped, sizeof(copy->dropped));
	copy->counts = l->counts;
	copy->counts.read = copy->counts.invalid = 0;
	return true;
}

/* Two copies at a time, or one that is read meanwhile, wait for each other. */
static struct tributary_local *
clone_locked(struct tributary_local *l, unsigned timeout_ms)
{
	struct tributary_local *copy;
	struct local_config *c;
	size_t b;

	for (b = 0; b < l->config->n_buffers; b++)
		if (l->config->buffers[b].clear_before_clone)
			trace_buffer_clear(l->buffers[b]);
	if (l->phase == LOCAL_STARTED && !core_is_thread())
		(void)flush(l, timeout_ms);
	c = local_config_new(l->config->bytes, l->config->len, l->why,
	    sizeof(l->why));
	if (c == NULL || (copy = new_without_buffers(c)) == NULL)
		return NULL;
	copy->is_clone = true;
	copy->phase = LOCAL_STOPPED;
	while (l->reading)
		pthread_cond_wait(&l->changed, &l->lock);
	l->reading = true;
	if (!copy_all(l, copy)) {
		done(copy);
		copy = NULL;
	}
	l->reading = false;
	pthread_cond_broadcast(&l->changed);
	return copy;
}

struct tributary_local *
tributary_local_clone(struct tributary_local *l, unsigned timeout_ms)
{
	struct tributary_local *copy = NULL;
	int saved = errno;

	pthread_mutex_lock(&l->lock);
	if (!is_gone(l)) {
		copy = clone_locked(l, timeout_ms);
		if (copy == NULL)
			(void)fail(l, "There is no memory for the copy.");
	}
	pthread_mutex_unlock(&l->lock);
	errno = saved;
	return copy;
}

/* ---- Reading ---- */

/* Takes what threads hold into the buffers first, if they can soon. */
static bool
prepare(struct tributary_local *l)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	if ((ok = !is_gone(l))) {
		if (l->phase == LOCAL_STARTED && !core_is_thread())
			(void)flush(l, READ_FLUSH_MS);
		if (!l->is_clone && l->phase != LOCAL_STOPPED)
			local_snapshot_clocks(l);
	}
	pthread_mutex_unlock(&l->lock);
	return ok;
}

static bool
finish(struct tributary_local *l, bool ok)
{
	pthread_mutex_lock(&l->lock);
	if (!ok && l->why[0] == '\0')
		(void)fail(l, "The reading was ended, or there is no memory.");
	pthread_mutex_unlock(&l->lock);
	return ok;
}

struct reader {
	tributary_packet_fn packet;
	void *arg;
};

static bool
put_packets(void *arg, const uint8_t *data, size_t len)
{
	const struct reader *to = arg;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, len)
		if (!to->packet(f.data, f.len, to->arg))
			return false;
	return true;
}

bool
tributary_local_read(struct tributary_local *l, tributary_packet_fn packet,
    void *arg)
{
	struct reader to = { packet, arg };

	if (!prepare(l))
		return false;
	return finish(l, local_output(l, put_packets, &to));
}

static bool
put_file(void *arg, const uint8_t *data, size_t len)
{
	int fd = *(int *)arg;
	ssize_t n;

	while (len > 0) {
		if ((n = write(fd, data, len)) < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static bool
fail_file(struct tributary_local *l)
{
	int error = errno;

	pthread_mutex_lock(&l->lock);
	snprintf(l->why, sizeof(l->why), "The trace could not be written: %s.",
	    strerror(error));
	pthread_mutex_unlock(&l->lock);
	errno = error;
	return false;
}

bool
tributary_local_write(struct tributary_local *l, int fd)
{
	int saved = errno;

	if (!prepare(l))
		return false;
	errno = ENOMEM;
	if (!local_output(l, put_file, &fd))
		return fail_file(l);
	errno = saved;
	return true;
}

bool
tributary_local_write_path(struct tributary_local *l, const char *path)
{
	int error, fd;
	bool ok;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_file(l);
	ok = tributary_local_write(l, fd);
	error = errno;
	if (close(fd) != 0 && ok)
		return fail_file(l);
	errno = error;
	return ok;
}

bool
tributary_local_snapshot(struct tributary_local *l, const char *path,
    unsigned timeout_ms)
{
	struct tributary_local *copy = tributary_local_clone(l, timeout_ms);
	bool ok;

	if (copy == NULL)
		return false;
	if (!(ok = tributary_local_write_path(copy, path))) {
		pthread_mutex_lock(&l->lock);
		(void)fail(l, copy->why);
		pthread_mutex_unlock(&l->lock);
	}
	tributary_local_free(copy);
	return ok;
}

void
tributary_local_stats(struct tributary_local *l,
    struct tributary_local_stats *stats)
{
	struct tributary_local_stats s = { .size = stats->size };
	size_t i;

	pthread_mutex_lock(&l->lock);
	s.written = l->counts.written;
	s.read = l->counts.read;
	s.discarded = l->counts.discarded;
	s.invalid = l->counts.invalid;
	for (i = 0; i < l->config->n_sources; i++)
		s.dropped += l->dropped[i];
	if (l->phase == LOCAL_STOPPED)
		s.overwritten = s.written - s.read - s.discarded - s.invalid;
	pthread_mutex_unlock(&l->lock);
	memcpy(stats, &s, s.size < sizeof(s) ? s.size : sizeof(s));
}
