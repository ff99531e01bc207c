#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/sink/file_sink.h"
#include "service/sink/sink_path.h"
#include "service/sink/sink_writer.h"
#include "transport/loop.h"

/*
 * Two sides.  The loop's side fills batches, submits jobs and runs the
 * callbacks; the writer's side runs jobs.  Between them, under the lock: the
 * queue of jobs one way, struct report the other.  At most one loop_post() is
 * outstanding (report.posted), so the one that finds the writer finished is the
 * last, and may free the sink.
 */

/* For the packet that completes a batch, unless it is a large one. */
#define BATCH_SPARE (16u * 1024u)

/* Of address space; what is touched is a path and a few frames. */
#define WRITER_STACK_BYTES (512u * 1024u)

/* All batches, and one job that only syncs. */
#define MAX_JOBS (SINK_BATCHES + 1)

struct batch {
	struct sink_batch pub;
	bool submitted; /* loop's side: not ours to touch */
	bool written;   /* under lock: the writer is through with it */
	size_t kept;    /* with it: of its bytes, those in the file */
};

struct job {
	struct batch *batch; /* NULL: only sync */
	bool sync;
};

/* What the writer has to say. */
struct report {
	bool posted;   /* report_cb() will run */
	bool opened;   /* the path was opened, or refused: */
	bool refused;
	bool full;     /* max_bytes was reached */
	bool finished; /* the writer touches nothing any more */
	uint64_t done; /* jobs, in the order of submission */
	uint64_t total;
	char err[SINK_ERR_MAX]; /* the first one; empty: none */
};

struct file_sink {
	struct loop *l;
	const struct file_sink_ops *ops;
	void *arg;

	/* Loop's side */
	size_t nominal; /* of a batch */
	struct batch batches[SINK_BATCHES];
	struct batch *current; /* handed out, not yet submitted */
	uint64_t submitted;    /* jobs */
	uint64_t answered;     /* of them */
	uint64_t total;        /* bytes in the file, as was reported */
	bool told_opened;
	bool told_full;
	bool told_error;
	bool closing;

	/* Both sides, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job jobs[MAX_JOBS];
	unsigned n_jobs;
	bool close_asked;
	uint64_t close_asked_ms;
	struct report report;
	struct loop_post report_post;

	/* Writer's side */
	pthread_t thread;
	struct sink_writer writer;
	struct packet_compressor *compressor; /* NULL: bytes as they are */
	uint64_t max_bytes;
	bool full;   /* max_bytes is reached; batches are dropped */
	bool broken; /* an error ended the file; jobs are dropped */
	struct sink_dir dir;
	char *path; /* NULL: a descriptor was given */
	long uid;
	long gid;
};

static void report_cb(void *arg);

/* Writer's side.  With the lock held, after s->report changed. */
static void
report_locked(struct file_sink *s)
{
	if (s->report.posted)
		return;
	s->report.posted = true;
	loop_post(s->l, &s->report_post, report_cb, s);
}

/* Writer's side.  The file is over; only the first reason is told. */
static void
report_error(struct file_sink *s, const char *err)
{
	s->broken = true;
	pthread_mutex_lock(&s->lock);
	if (s->report.err[0] == '\0')
		snprintf(s->report.err, sizeof(s->report.err), "%s", err);
	pthread_mutex_unlock(&s->lock);
}

/* Writer's side: a reader that takes nothing, some time after the close. */
static bool
give_up(void *arg)
{
	struct file_sink *s = arg;
	bool yes;

	pthread_mutex_lock(&s->lock);
	yes = s->close_asked &&
	    loop_now_ms() - s->close_asked_ms >= SINK_CLOSE_WAIT_MS;
	pthread_mutex_unlock(&s->lock);
	return yes;
}

static void
writer_begin(struct file_sink *s, int fd)
{
	sink_writer_init(&s->writer, fd, s->path != NULL);
	s->writer.give_up = give_up;
	s->writer.give_up_arg = s;
}

static void
writer_open(struct file_sink *s)
{
	char err[SINK_ERR_MAX];
	int fd;

	fd = sink_path_create(&s->dir, s->path, s->uid, s->gid, err,
	    sizeof(err));
	if (fd >= 0)
		writer_begin(s, fd);
	else
		report_error(s, err);
	pthread_mutex_lock(&s->lock);
	s->report.opened = true;
	s->report.refused = fd < 0;
	report_locked(s);
	pthread_mutex_unlock(&s->lock);
}

/* Waits for a job.  false: there is none and there will be none. */
static bool
writer_next(struct file_sink *s, struct job *job)
{
	bool found;

	pthread_mutex_lock(&s->lock);
	while (s->n_jobs == 0 && !s->close_asked)
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

/* What b becomes in the file, as far as that has room. */
static const uint8_t *
writer_prepare(struct file_sink *s, const struct sink_batch *b, size_t *len)
{
	uint64_t left = s->max_bytes - s->writer.total;
	const uint8_t *data;
	size_t taken;

	*len = b->len;
	if (s->compressor == NULL)
		return b->data;
	if (s->max_bytes == 0)
		return packet_compressor_run(s->compressor, b->data, b->len,
		    len);
	data = packet_compressor_fit(s->compressor, b->data, b->len,
	    left < SIZE_MAX ? (size_t)left : SIZE_MAX, &taken, len);
	s->full = taken < b->len;
	return data;
}

/*
 * Returns how many bytes of the batch are in the file.  What max_bytes leaves
 * out counts: full() tells of it.
 */
static size_t
writer_put(struct file_sink *s, const struct sink_batch *b)
{
	char err[SINK_ERR_MAX];
	const uint8_t *data;
	size_t len;

	if (s->broken)
		return 0;
	if (s->full)
		return b->len;
	data = writer_prepare(s, b, &len);
	if (sink_writer_write(&s->writer, data, len, err, sizeof(err)) == 0)
		return b->len;
	report_error(s, err);
	/* A compressed packet that is not whole has nothing in it. */
	return data == b->data ? s->writer.kept : 0;
}

static void
writer_run(struct file_sink *s, const struct job *job)
{
	char err[SINK_ERR_MAX];
	size_t kept = 0;

	if (job->batch != NULL)
		kept = writer_put(s, &job->batch->pub);
	if (!s->broken && job->sync &&
	    sink_writer_sync(&s->writer, err, sizeof(err)) < 0)
		report_error(s, err);

	pthread_mutex_lock(&s->lock);
	if (job->batch != NULL) {
		job->batch->written = true;
		job->batch->kept = kept;
	}
	s->report.done++;
	s->report.full = s->full;
	s->report.total = s->writer.total;
	report_locked(s);
	pthread_mutex_unlock(&s->lock);
}

static void *
writer_main(void *arg)
{
	struct file_sink *s = arg;
	char err[SINK_ERR_MAX];
	struct job job;

	if (s->path != NULL)
		writer_open(s);
	while (writer_next(s, &job))
		writer_run(s, &job);
	if (s->writer.fd >= 0 &&
	    sink_writer_close(&s->writer, !s->broken, err, sizeof(err)) < 0)
		report_error(s, err);

	pthread_mutex_lock(&s->lock);
	s->report.finished = true;
	report_locked(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Frees what the writer does not own; never started or already joined. */
static void
sink_destroy(struct file_sink *s)
{
	size_t i;

	for (i = 0; i < SINK_BATCHES; i++)
		free(s->batches[i].pub.data);
	packet_compressor_free(s->compressor);
	free(s->path);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int
sink_set_options(struct file_sink *s, const struct file_sink_options *o)
{
	s->nominal = SINK_BATCH_BYTES;
	if (o == NULL)
		return 0;
	s->max_bytes = o->max_bytes;
	if (o->compression.kind != PACKET_PLAIN)
		s->nominal = PACKET_BATCH_BYTES;
	else if (o->max_bytes == 0)
		return 0;
	s->compressor = packet_compressor_new(&o->compression);
	return s->compressor != NULL ? 0 : -1;
}

static struct file_sink *
sink_new(struct loop *l, const struct file_sink_options *options,
    const struct file_sink_ops *ops, void *arg)
{
	struct file_sink *s;
	struct sink_batch *b;
	size_t i;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->l = l;
	s->ops = ops;
	s->arg = arg;
	s->writer.fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	if (sink_set_options(s, options) != 0)
		goto fail;
	for (i = 0; i < SINK_BATCHES; i++) {
		b = &s->batches[i].pub;
		b->nominal = s->nominal;
		b->cap = b->nominal + BATCH_SPARE;
		if ((b->data = malloc(b->cap)) == NULL)
			goto fail;
	}
	return s;

fail:
	sink_destroy(s);
	return NULL;
}

/*
 * The thread takes no signal: they are the loop's, and a broken pipe or a full
 * file must come back as an error of write().
 */
static bool
sink_start(struct file_sink *s)
{
	pthread_attr_t attr;
	sigset_t all, before;
	bool ok;

	if (pthread_attr_init(&attr) != 0)
		return false;
	sigfillset(&all);
	ok = pthread_attr_setstacksize(&attr, WRITER_STACK_BYTES) == 0 &&
	    pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
	if (ok) {
		ok = pthread_create(&s->thread, &attr, writer_main, s) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	return ok;
}

struct file_sink *
file_sink_new_fd(struct loop *l, int fd,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg)
{
	struct file_sink *s;

	if ((s = sink_new(l, options, ops, arg)) == NULL)
		return NULL;
	writer_begin(s, fd);
	if (!sink_start(s)) {
		sink_destroy(s);
		return NULL;
	}
	return s;
}

struct file_sink *
file_sink_new_path(struct loop *l, const struct sink_dir *dir,
    const char *path, long uid, long gid,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg)
{
	struct file_sink *s;

	if ((s = sink_new(l, options, ops, arg)) == NULL)
		return NULL;
	s->dir = *dir;
	s->uid = uid;
	s->gid = gid;
	if ((s->path = strdup(path)) == NULL || !sink_start(s)) {
		sink_destroy(s);
		return NULL;
	}
	return s;
}

struct sink_batch *
file_sink_batch(struct file_sink *s)
{
	size_t i;

	for (i = 0; s->current == NULL && i < SINK_BATCHES; i++) {
		if (!s->batches[i].submitted) {
			s->current = &s->batches[i];
			s->current->pub.len = 0;
		}
	}
	return s->current != NULL ? &s->current->pub : NULL;
}

bool
file_sink_reserve(struct sink_batch *b, size_t n)
{
	size_t cap;
	uint8_t *data;

	if (n <= b->cap - b->len)
		return true;
	if (n > SIZE_MAX - b->len)
		return false;
	cap = b->len + n;
	if ((data = realloc(b->data, cap)) == NULL)
		return false;
	b->data = data;
	b->cap = cap;
	return true;
}

/* With the lock held. */
static void
queue_locked(struct file_sink *s, struct batch *b, bool sync)
{
	if (b == NULL && s->n_jobs > 0) {
		/* Something that was not begun will sync for us */
		s->jobs[s->n_jobs - 1].sync = true;
		return;
	}
	assert(s->n_jobs < MAX_JOBS);
	s->jobs[s->n_jobs++] = (struct job){ b, sync };
	s->submitted++;
	pthread_cond_signal(&s->wake);
}

void
file_sink_submit(struct file_sink *s, bool sync)
{
	struct batch *b = s->current;

	if (b != NULL && b->pub.len == 0)
		b = NULL; /* it stays the current one */
	if (s->closing || (b == NULL && !sync))
		return;
	if (b != NULL) {
		b->submitted = true;
		b->written = false;
		s->current = NULL;
	}
	pthread_mutex_lock(&s->lock);
	queue_locked(s, b, sync);
	pthread_mutex_unlock(&s->lock);
}

uint64_t
file_sink_total(const struct file_sink *s)
{
	return s->total;
}

bool
file_sink_idle(const struct file_sink *s)
{
	return s->answered == s->submitted;
}

void
file_sink_close(struct file_sink *s)
{
	if (s->closing)
		return;
	s->closing = true;
	pthread_mutex_lock(&s->lock);
	s->close_asked = true;
	s->close_asked_ms = loop_now_ms();
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

/* A batch came back: usable again, at its normal size. */
static void
take_back(struct batch *b)
{
	size_t cap = b->pub.nominal + BATCH_SPARE;
	uint8_t *data;

	b->submitted = false;
	b->written = false;
	b->pub.len = 0;
	if (b->pub.cap <= cap)
		return;
	if ((data = realloc(b->pub.data, cap)) != NULL) {
		b->pub.data = data;
		b->pub.cap = cap;
	}
}

static void
tell_lost(struct file_sink *s, const struct batch *b)
{
	if (b->kept < b->pub.len && s->ops->lost != NULL)
		s->ops->lost(s, b->pub.data + b->kept, b->pub.len - b->kept,
		    s->arg);
}

/* The writer's report, and the batches it is through with. */
static void
take_report(struct file_sink *s, struct report *r)
{
	bool back[SINK_BATCHES];
	size_t i;

	pthread_mutex_lock(&s->lock);
	s->report.posted = false;
	*r = s->report;
	for (i = 0; i < SINK_BATCHES; i++)
		back[i] = s->batches[i].submitted && s->batches[i].written;
	pthread_mutex_unlock(&s->lock);
	for (i = 0; i < SINK_BATCHES; i++) {
		if (!back[i])
			continue;
		tell_lost(s, &s->batches[i]);
		take_back(&s->batches[i]);
	}
}

/* The loop's side of a report: after file_sink_close() only closed(). */
static void
report_cb(void *arg)
{
	struct file_sink *s = arg;
	struct report r;
	const char *err;
	bool progress;

	take_report(s, &r);
	err = r.err[0] != '\0' ? r.err : NULL;
	progress = r.done != s->answered;
	s->answered = r.done;
	s->total = r.total;

	if (r.finished) {
		pthread_join(s->thread, NULL);
		s->ops->closed(s, err, s->arg);
		sink_destroy(s);
		return;
	}
	if (r.opened && !s->told_opened && !s->closing) {
		s->told_opened = true;
		s->told_error = r.refused;
		s->ops->opened(s, r.refused ? err : NULL, s->arg);
	}
	if (r.full && !s->told_full && err == NULL && !s->closing) {
		s->told_full = true;
		s->ops->full(s, s->arg);
	}
	if (err != NULL) {
		if (!s->told_error && !s->closing) {
			s->told_error = true;
			s->ops->failed(s, err, s->arg);
		}
	} else if (progress && !s->closing) {
		s->ops->written(s, r.total, s->arg);
	}
}
