#include "service/sink/file_sink.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "service/sink/sink_fd.h"
#include "service/sink/sink_path.h"
#include "service/sink/sink_writer.h"
#include "transport/loop/loop.h"

/*
 * Two sides.  The loop's side fills batches, submits jobs and runs the
 * callbacks; the writer's side runs jobs.  Between them, under the lock: the
 * queue of jobs one way, struct report the other.  At most one loop_post() is
 * outstanding (report.posted), so the one that finds the writer finished is the
 * last, and may free the sink.
 *
 * Giving up has one place, the patience timer on the loop's side: first it
 * cancels, and interrupts the writer until that returns from whatever it waits
 * for; a writer that does not is abandoned.  Then the loop's side answers in its
 * place, and the thread, an orphan, frees the sink when it ends.
 */

/* For the packet that completes a batch, unless it is a large one. */
#define BATCH_SPARE (16u * 1024u)

/* Bytes of address space; only a path and a few frames are touched. */
#define WRITER_STACK_BYTES (512u * 1024u)

/* The signal that interrupts a write: ignored by default. */
#define WRITER_SIGNAL SIGURG

#define SINK_ABANDONED                                                         \
	"the trace file is given up: its disk, or the program that reads "       \
	"it, takes nothing, and does not return from a write"

/* Most jobs: all batches, and one that only syncs. */
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
	bool last;
};

/* Messages from the writer's thread. */
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
	struct loop_timer *patience;
	uint64_t wait_ms; /* 0: nobody is in a hurry */
	bool regular;
	uint64_t deadline_ms; /* progress does not move it; 0: none */
	bool cancelled;
	unsigned interrupts; /* since it last moved */
	bool abandoned;
	bool told_closed; /* abandoned: only to be freed */
	struct loop_call gone_call;

	/* Both sides, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job jobs[MAX_JOBS];
	unsigned n_jobs;
	bool close_asked;
	bool orphan; /* the loop's side is gone */
	LIST_ENTRY(file_sink) of_orphans;
	struct report report;
	struct loop_post report_post;

	atomic_bool give_up; /* the writer waits for nothing any more */

	/* Writer's side */
	pthread_t thread;
	int fd; /* given, before writer has it */
	struct sink_writer writer;
	struct packet_compressor *compressor; /* NULL: bytes as they are */
	uint64_t max_bytes;
	uint64_t last_bytes;
	uint64_t owner;
	bool full;   /* max_bytes is reached; batches are dropped */
	bool broken; /* an error ended the file; jobs are dropped */
	struct sink_dir dir;
	char *path; /* NULL: a descriptor was given */
	long uid;
	long gid;
};

static void report_cb(void *arg);
static void patience_cb(void *arg);

/* Sinks whose writers were abandoned.  The lock is taken inside of a sink's. */
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, file_sink) list;
} orphans = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool
may_begin(uint64_t owner)
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

/* Writer's side.  With the lock held, after s->report changed. */
static void
report_locked(struct file_sink *s)
{
	if (s->report.posted || s->orphan)
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

/* Writer's side. */
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

/* Bytes that the file has room for; last: with those kept for its end. */
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
	s->full = job->last || taken < b->len;
	return data;
}

/*
 * Returns how many bytes of the batch are in the file.  What max_bytes leaves
 * out counts: full() tells of it.
 */
static size_t
writer_put(struct file_sink *s, const struct job *job)
{
	const struct sink_batch *b = &job->batch->pub;
	char err[SINK_ERR_MAX];
	const uint8_t *data;
	size_t len;

	if (!s->broken && give_up(s))
		report_error(s, "the trace file ended early: the program "
		    "that reads it, or its disk, takes nothing");
	if (s->broken)
		return 0;
	if (s->full && !job->last)
		return b->len;
	data = writer_prepare(s, job, &len);
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
		kept = writer_put(s, job);
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

/* Frees what the writer does not own; never started, joined, or the orphan. */
static void
sink_destroy(struct file_sink *s)
{
	size_t i;

	for (i = 0; i < SINK_BATCHES; i++)
		free(s->batches[i].pub.data);
	loop_timer_free(s->patience);
	packet_compressor_free(s->compressor);
	free(s->path);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void
writer_end(struct file_sink *s)
{
	bool orphan;

	pthread_mutex_lock(&s->lock);
	s->report.finished = true;
	report_locked(s);
	orphan = s->orphan;
	pthread_mutex_unlock(&s->lock);
	if (!orphan)
		return;
	pthread_mutex_lock(&orphans.lock);
	LIST_REMOVE(s, of_orphans);
	pthread_mutex_unlock(&orphans.lock);
	sink_destroy(s);
}

static void *
writer_main(void *arg)
{
	struct file_sink *s = arg;
	char err[SINK_ERR_MAX];
	struct job job;

	if (s->path != NULL)
		writer_open(s);
	else
		writer_begin(s, s->fd);
	while (writer_next(s, &job))
		writer_run(s, &job);
	if (s->writer.fd >= 0 &&
	    sink_writer_close(&s->writer, !s->broken, err, sizeof(err)) < 0)
		report_error(s, err);
	writer_end(s);
	return NULL;
}

static int
sink_set_options(struct file_sink *s, const struct file_sink_options *o)
{
	s->nominal = SINK_BATCH_BYTES;
	if (o == NULL)
		return 0;
	s->owner = o->owner;
	s->max_bytes = o->max_bytes;
	s->last_bytes = o->last_bytes;
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

	if (!may_begin(options != NULL ? options->owner : 0) ||
	    (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->l = l;
	s->ops = ops;
	s->arg = arg;
	s->writer.fd = -1;
	s->regular = true;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	if ((s->patience = loop_timer_new(l, patience_cb, s)) == NULL)
		goto fail;
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

/* write() returns, and give_up is looked at. */
static void
interrupted(int signo)
{
}

/*
 * The thread takes no signal but WRITER_SIGNAL: the others are the loop's, and
 * a broken pipe or a full file must come back as an error of write().
 */
static bool
sink_start(struct file_sink *s)
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

struct file_sink *
file_sink_new_fd(struct loop *l, int fd,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg)
{
	struct file_sink *s;

	if ((s = sink_new(l, options, ops, arg)) == NULL)
		return NULL;
	s->fd = fd;
	s->regular = sink_fd_kind(fd) == SINK_FD_FILE;
	if (!sink_start(s)) {
		sink_destroy(s);
		return NULL;
	}
	return s;
}

struct file_sink *
file_sink_new_path(struct loop *l, const struct file_sink_place *place,
    const struct file_sink_options *options, const struct file_sink_ops *ops,
    void *arg)
{
	struct file_sink *s;

	if ((s = sink_new(l, options, ops, arg)) == NULL)
		return NULL;
	s->dir = *place->dir;
	s->uid = place->uid;
	s->gid = place->gid;
	if ((s->path = strdup(place->path)) == NULL || !sink_start(s)) {
		sink_destroy(s);
		return NULL;
	}
	return s;
}

/* ---- giving up ---- */

static void
tell_opened(struct file_sink *s, const char *err)
{
	s->told_opened = true;
	s->told_error = err != NULL;
	s->ops->opened(s, err, s->arg);
}

static void
tell_failed(struct file_sink *s, const char *err)
{
	if (s->told_error)
		return;
	s->told_error = true;
	s->ops->failed(s, err, s->arg);
}

/* Tells that the packets behind the first `kept` bytes of a batch are lost. */
static void
tell_lost(struct file_sink *s, const struct batch *b, size_t kept)
{
	if (kept < b->pub.len && s->ops->lost != NULL)
		s->ops->lost(s, b->pub.data + kept, b->pub.len - kept, s->arg);
}

/* Whether the writer has something to do. */
static bool
is_awaited(const struct file_sink *s)
{
	return s->closing || !file_sink_idle(s) ||
	    (s->path != NULL && !s->told_opened);
}

/* Time until the writer is cancelled, or interrupted again; false: none is set. */
static bool
patience_ms(const struct file_sink *s, uint64_t *ms)
{
	uint64_t now = loop_now_ms(), left;

	*ms = s->cancelled ? SINK_CANCEL_STEP_MS : s->wait_ms;
	if (s->cancelled || s->deadline_ms == 0)
		return *ms != 0;
	left = s->deadline_ms > now ? s->deadline_ms - now : 0;
	if (*ms == 0 || left < *ms)
		*ms = left;
	return true;
}

/* Patience begins to run, unless it does. */
static void
watch(struct file_sink *s)
{
	uint64_t left, ms;

	if (!is_awaited(s) || s->abandoned ||
	    loop_timer_left(s->patience, &left) || !patience_ms(s, &ms))
		return;
	loop_timer_set(s->patience, ms, 0);
}

/* Patience begins anew. */
static void
sign_of_life(struct file_sink *s)
{
	s->interrupts = 0;
	loop_timer_clear(s->patience);
}

/* The owner is done with it; the thread is not, or its report is on its way. */
static void
leave_to_writer(struct file_sink *s)
{
	bool posted, finished;

	pthread_mutex_lock(&s->lock);
	posted = s->report.posted; /* report_cb() comes here, then */
	finished = s->report.finished;
	if (!posted && !finished) {
		s->orphan = true;
		pthread_detach(s->thread);
		pthread_mutex_lock(&orphans.lock);
		LIST_INSERT_HEAD(&orphans.list, s, of_orphans);
		pthread_mutex_unlock(&orphans.lock);
	}
	pthread_mutex_unlock(&s->lock);
	if (posted || !finished)
		return;
	pthread_join(s->thread, NULL);
	sink_destroy(s);
}

static void
gone_cb(void *arg)
{
	struct file_sink *s = arg;

	loop_timer_free(s->patience);
	s->patience = NULL;
	s->told_closed = true;
	s->ops->closed(s, SINK_ABANDONED, s->arg);
	leave_to_writer(s);
}

/*
 * The writer keeps its batches: whether they get into the file, nobody knows.
 */
static void
abandon(struct file_sink *s)
{
	size_t i;

	s->abandoned = true;
	for (i = 0; i < SINK_BATCHES; i++)
		if (s->batches[i].submitted)
			tell_lost(s, &s->batches[i], 0);
	if (s->closing)
		loop_defer(s->l, &s->gone_call, gone_cb, s);
	else if (s->path != NULL && !s->told_opened)
		tell_opened(s, SINK_ABANDONED);
	else
		tell_failed(s, SINK_ABANDONED);
}

/*
 * Again and again: a signal that comes between the look at give_up and the
 * write() that waits is taken in vain.
 */
static void
cancel(struct file_sink *s)
{
	s->cancelled = true;
	s->interrupts++;
	atomic_store(&s->give_up, true);
	pthread_kill(s->thread, WRITER_SIGNAL);
}

static void
patience_cb(void *arg)
{
	struct file_sink *s = arg;
	bool posted;

	pthread_mutex_lock(&s->lock);
	posted = s->report.posted;
	pthread_mutex_unlock(&s->lock);
	if (!posted && is_awaited(s) &&
	    s->interrupts >= SINK_CANCEL_MS / SINK_CANCEL_STEP_MS) {
		abandon(s);
		return;
	}
	cancel(s);
	watch(s);
}

void
file_sink_hurry(struct file_sink *s, uint64_t ms)
{
	if (s->regular)
		ms = SINK_DISK_WAIT_MS;
	if (s->wait_ms == 0 || ms < s->wait_ms) {
		s->wait_ms = ms;
		if (!s->cancelled)
			loop_timer_clear(s->patience);
	}
	watch(s);
}

void
file_sink_last_call(struct file_sink *s, uint64_t ms)
{
	uint64_t due = loop_now_ms() + ms, left;

	if (s->regular || s->cancelled || s->abandoned ||
	    (s->deadline_ms != 0 && s->deadline_ms <= due))
		return;
	s->deadline_ms = due;
	if (loop_timer_left(s->patience, &left) && left > ms)
		loop_timer_clear(s->patience);
	watch(s);
}

/* ---- batches and jobs ---- */

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
queue_locked(struct file_sink *s, struct batch *b, bool sync, bool last)
{
	if (b == NULL && s->n_jobs > 0) {
		/* Something that was not begun will sync for us */
		s->jobs[s->n_jobs - 1].sync = true;
		return;
	}
	assert(s->n_jobs < MAX_JOBS);
	s->jobs[s->n_jobs++] = (struct job){ b, sync, last };
	s->submitted++;
	pthread_cond_signal(&s->wake);
}

static void
submit(struct file_sink *s, bool sync, bool last)
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
	queue_locked(s, b, sync, last);
	pthread_mutex_unlock(&s->lock);
	watch(s);
}

void
file_sink_submit(struct file_sink *s, bool sync)
{
	submit(s, sync, false);
}

void
file_sink_submit_last(struct file_sink *s, bool sync)
{
	submit(s, sync, true);
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
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->abandoned)
		loop_defer(s->l, &s->gone_call, gone_cb, s);
	else
		file_sink_hurry(s, SINK_WAIT_MS);
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
		if (!back[i] || s->abandoned)
			continue;
		tell_lost(s, &s->batches[i], s->batches[i].kept);
		take_back(&s->batches[i]);
	}
}

/* Each callback may close it, and is the last one then. */
static void
tell_report(struct file_sink *s, const struct report *r, bool progress)
{
	const char *err = r->err[0] != '\0' ? r->err : NULL;

	if (r->opened && !s->told_opened)
		tell_opened(s, r->refused ? err : NULL);
	if (r->full && !s->told_full && err == NULL && !s->closing) {
		s->told_full = true;
		s->ops->full(s, s->arg);
	}
	if (s->closing)
		return;
	if (err != NULL)
		tell_failed(s, err);
	else if (progress)
		s->ops->written(s, r->total, s->arg);
}

/* The loop's side of a report: after file_sink_close() only closed(). */
static void
report_cb(void *arg)
{
	struct file_sink *s = arg;
	struct report r;
	bool progress;

	take_report(s, &r);
	if (s->told_closed) {
		leave_to_writer(s);
		return;
	}
	if (s->abandoned)
		return;
	progress = r.done != s->answered;
	s->answered = r.done;
	s->total = r.total;
	if (r.finished) {
		pthread_join(s->thread, NULL);
		s->ops->closed(s, r.err[0] != '\0' ? r.err : NULL, s->arg);
		sink_destroy(s);
		return;
	}
	if (progress || (r.opened && !s->told_opened))
		sign_of_life(s);
	if (!s->closing)
		tell_report(s, &r, progress);
	watch(s);
}
