#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "service/sink/file_sink_internal.h"

/* Bytes of address space; only a path and a few frames are touched. */
#define WRITER_STACK_BYTES (512u * 1024u)

/* The signal that interrupts a write: ignored by default. */
#define WRITER_SIGNAL SIGURG

/* Sinks whose writers were abandoned.  The lock is taken inside of a sink's. */
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, file_sink) list;
} orphans = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool
sink_thread_may_begin(uint64_t owner)
{
	const struct file_sink *s;
	unsigned n = 0, own = 0;

	pthread_mutex_lock(&orphans.lock);
	LIST_FOREACH(s, &orphans.list, of_orphans) {
		n++;
		own += s->owner == owner;
	}
	pthread_mutex_unlock(&orphans.lock);
	return own < SINK_ORPHANS_OF_OWNER && n < SINK_ORPHANS_MAX;
}

/* ---- the writer's thread ---- */

/* With the lock held, after s->report or s->file changed. */
static void
report_locked(struct file_sink *s)
{
	s->report.file = s->file;
	if (s->report.posted || s->loop_side == LOOP_LEFT)
		return;
	s->report.posted = true;
	loop_post(s->l, &s->report_post, file_sink_report_cb, s);
}

static void
set_file(struct file_sink *s, enum sink_file to)
{
	assert(to >= s->file);
	s->file = to;
}

/* Notes the error that ended the file; only the first is reported. */
static void
report_end(struct file_sink *s, enum sink_file how, const char *err)
{
	pthread_mutex_lock(&s->lock);
	set_file(s, how);
	s->report.file = s->file;
	if (s->report.err[0] == '\0')
		snprintf(s->report.err, sizeof(s->report.err), "%s", err);
	pthread_mutex_unlock(&s->lock);
}

static void
report_error(struct file_sink *s, const char *err)
{
	report_end(s, FILE_BROKEN, err);
}

/* Whether the jobs that are left have no file to go to. */
static bool
is_broken(const struct file_sink *s)
{
	return s->file == FILE_BROKEN || s->file == FILE_REFUSED;
}

static bool
give_up(void *arg)
{
	struct file_sink *s = arg;

	return atomic_load(&s->give_up);
}

static void
writer_begin(struct file_sink *s, int fd)
{
	sink_writer_init(&s->writer, fd, s->path != NULL);
	s->writer.give_up = give_up;
	s->writer.give_up_arg = s;
}

static bool
open_file(struct file_sink *s, char *err, size_t err_size)
{
	int fd = sink_path_create(&s->dir, s->path, s->uid, s->gid, err,
	    err_size);

	if (fd >= 0)
		writer_begin(s, fd);
	return fd >= 0;
}

static bool
open_segments(struct file_sink *s, char *err, size_t err_size)
{
	const struct file_sink_place place = { &s->dir, s->path, s->uid,
		s->gid };

	return sink_segments_open(s->segments, &place, give_up, s, err,
	    err_size) == 0;
}

static void
writer_open(struct file_sink *s)
{
	char err[FILE_ERR_MAX];
	bool ok;

	if (s->segments != NULL)
		ok = open_segments(s, err, sizeof(err));
	else
		ok = open_file(s, err, sizeof(err));
	if (ok)
		set_file(s, FILE_OPEN);
	else
		report_end(s, FILE_REFUSED, err);
	pthread_mutex_lock(&s->lock);
	if (ok && s->segments != NULL)
		s->report.recovered = sink_segments_recovered(s->segments);
	report_locked(s);
	pthread_mutex_unlock(&s->lock);
}

/* Waits for a job.  false: there is none and there will be none. */
static bool
writer_next(struct file_sink *s, struct job *job)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	while (s->n_jobs == 0 && s->loop_side == LOOP_SERVES)
		pthread_cond_wait(&s->wake, &s->lock);
	found = s->n_jobs > 0;
	if (found) {
		*job = s->jobs[0];
		s->n_jobs--;
		memmove(s->jobs, s->jobs + 1, s->n_jobs * sizeof(s->jobs[0]));
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* Bytes that the file has room for; last: with last_bytes. */
static size_t
writer_room(const struct file_sink *s, bool last)
{
	uint64_t most = s->max_bytes - (last ? 0 : s->last_bytes);
	uint64_t left = most > s->writer.total ? most - s->writer.total : 0;

	return left < SIZE_MAX ? (size_t)left : SIZE_MAX;
}

/* Compresses the job's batch, as far as the file has room. */
static const uint8_t *
writer_prepare(struct file_sink *s, const struct job *job, size_t *len)
{
	const struct sink_batch *b = &job->batch->pub;
	const uint8_t *data;
	size_t taken;

	*len = b->len;
	if (s->compressor == NULL)
		return b->data;
	if (s->max_bytes == 0)
		return packet_compressor_run(s->compressor, b->data, b->len,
		    len);
	data = packet_compressor_fit(s->compressor, b->data, b->len,
	    writer_room(s, job->last), &taken, len);
	if (job->last || taken < b->len)
		set_file(s, FILE_FULL);
	return data;
}

/*
 * Packets that are lost stay in the segments, which tell them at the end.
 * Returns as writer_put() does.
 */
static size_t
put_segments(struct file_sink *s, const struct sink_batch *b)
{
	char err[FILE_ERR_MAX];

	int rc = sink_segments_put(s->segments, b->data, b->len,
	    b->len >= b->nominal, err, sizeof(err));

	if (rc != 0)
		report_error(s, err);
	return rc == -2 ? 0 : b->len;
}

/*
 * Returns how many bytes of the batch are not lost: they are in the file, or
 * max_bytes left them out, which full() reports.
 */
static size_t
writer_put(struct file_sink *s, const struct job *job)
{
	const struct sink_batch *b = &job->batch->pub;
	char err[FILE_ERR_MAX];
	const uint8_t *data;
	size_t len;

	if (!is_broken(s) && give_up(s))
		report_error(s, "the trace file ended early: the program "
		    "that reads it, or its disk, takes nothing");
	if (is_broken(s))
		return 0;
	if (s->file == FILE_FULL && !job->last)
		return b->len;
	if (s->segments != NULL)
		return put_segments(s, b);
	data = writer_prepare(s, job, &len);
	if (sink_writer_write(&s->writer, data, len, err, sizeof(err)) == 0)
		return b->len;
	report_error(s, err);
	/* A compressed packet that is not whole has nothing in it. */
	return data == b->data ? s->writer.kept : 0;
}

static int
writer_sync(struct file_sink *s, char *err, size_t err_size)
{
	if (s->segments != NULL)
		return sink_segments_sync(s->segments, err, err_size);
	return sink_writer_sync(&s->writer, err, err_size);
}

/* With the lock held. */
static void
report_bytes_locked(struct file_sink *s)
{
	if (s->segments == NULL) {
		s->report.total = s->writer.total;
		return;
	}
	s->report.total = sink_segments_total(s->segments);
	s->report.number = sink_segments_number(s->segments);
	s->report.largest = sink_segments_largest(s->segments);
}

static int
writer_close(struct file_sink *s, char *err, size_t err_size)
{
	if (s->segments != NULL)
		return sink_segments_close(s->segments, is_broken(s), err,
		    err_size);
	if (s->writer.fd < 0)
		return 0;
	return sink_writer_close(&s->writer, !is_broken(s), err, err_size);
}

static void
writer_run(struct file_sink *s, const struct job *job)
{
	char err[FILE_ERR_MAX];
	size_t kept = 0;

	if (job->batch != NULL)
		kept = writer_put(s, job);
	if (!is_broken(s) && job->sync &&
	    writer_sync(s, err, sizeof(err)) < 0)
		report_error(s, err);

	pthread_mutex_lock(&s->lock);
	if (job->batch != NULL) {
		job->batch->written = true;
		job->batch->kept = kept;
	}
	s->report.done++;
	report_bytes_locked(s);
	report_locked(s);
	pthread_mutex_unlock(&s->lock);
}

static void
writer_end(struct file_sink *s)
{
	bool orphan;

	pthread_mutex_lock(&s->lock);
	report_bytes_locked(s);
	set_file(s, FILE_CLOSED);
	report_locked(s);
	orphan = s->loop_side == LOOP_LEFT;
	pthread_mutex_unlock(&s->lock);
	if (!orphan)
		return;
	pthread_mutex_lock(&orphans.lock);
	LIST_REMOVE(s, of_orphans);
	pthread_mutex_unlock(&orphans.lock);
	file_sink_destroy(s);
}

static void *
writer_main(void *arg)
{
	struct file_sink *s = arg;
	char err[FILE_ERR_MAX];
	struct job job;

	if (s->path != NULL)
		writer_open(s);
	else
		writer_begin(s, s->fd);
	while (writer_next(s, &job))
		writer_run(s, &job);
	if (writer_close(s, err, sizeof(err)) < 0)
		report_error(s, err);
	writer_end(s);
	return NULL;
}

/* ---- its beginning and end, on the loop's thread ---- */

/* Makes write() return with EINTR, so that give_up() is asked. */
static void
interrupted(int signo)
{
}

/*
 * The thread takes no signal but WRITER_SIGNAL: the others are the loop's, and
 * a broken pipe or a full file must come back as an error of write().
 */
bool
sink_thread_start(struct file_sink *s)
{
	const struct sigaction interrupt = { .sa_handler = interrupted };
	pthread_attr_t attr;
	sigset_t most, before;
	bool ok;

	if (sigaction(WRITER_SIGNAL, &interrupt, NULL) != 0 ||
	    pthread_attr_init(&attr) != 0)
		return false;
	sigfillset(&most);
	sigdelset(&most, WRITER_SIGNAL);
	ok = pthread_attr_setstacksize(&attr, WRITER_STACK_BYTES) == 0 &&
	    pthread_sigmask(SIG_SETMASK, &most, &before) == 0;
	if (ok) {
		ok = pthread_create(&s->thread, &attr, writer_main, s) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	return ok;
}

void
sink_thread_cancel(struct file_sink *s)
{
	atomic_store(&s->give_up, true);
	pthread_kill(s->thread, WRITER_SIGNAL);
}

void
sink_thread_leave(struct file_sink *s)
{
	bool posted, finished;

	pthread_mutex_lock(&s->lock);
	posted = s->report.posted; /* its callback comes here, then */
	finished = s->report.file == FILE_CLOSED;
	if (!posted && !finished) {
		s->loop_side = LOOP_LEFT;
		pthread_detach(s->thread);
		pthread_mutex_lock(&orphans.lock);
		LIST_INSERT_HEAD(&orphans.list, s, of_orphans);
		pthread_mutex_unlock(&orphans.lock);
	}
	pthread_mutex_unlock(&s->lock);
	if (posted || !finished)
		return;
	pthread_join(s->thread, NULL);
	file_sink_destroy(s);
}
