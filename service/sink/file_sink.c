#include "service/sink/file_sink.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "service/sink/file_sink_internal.h"
#include "service/sink/sink_fd.h"

/* Spare bytes for the packet that completes a batch, unless it is large. */
#define BATCH_SPARE (16u * 1024u)

#define SINK_ABANDONED                                                         \
	"the trace file is given up: its disk, or the program that reads "       \
	"it, takes nothing, and does not return from a write"

static void patience_cb(void *arg);

static void
set_state(struct file_sink *s, enum sink_state to)
{
	assert(to > s->state);
	s->state = to;
}

static void
set_trust(struct file_sink *s, enum sink_trust to)
{
	assert(to >= s->trust);
	s->trust = to;
}

void
file_sink_destroy(struct file_sink *s)
{
	size_t i;

	for (i = 0; i < SINK_BATCHES; i++)
		free(s->batches[i].pub.data);
	loop_timer_free(s->patience);
	packet_compressor_free(s->compressor);
	sink_segments_free(s->segments);
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
	s->owner = o->owner;
	s->max_bytes = o->max_bytes;
	s->last_bytes = o->last_bytes;
	if (o->compression.kind != PACKET_PLAIN)
		s->nominal = PACKET_BATCH_BYTES;
	if (o->segments != NULL) {
		s->segments = sink_segments_new(o);
		return s->segments != NULL ? 0 : -1;
	}
	if (o->compression.kind == PACKET_PLAIN && o->max_bytes == 0)
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

	if (!sink_thread_may_begin(options != NULL ? options->owner : 0) ||
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
	file_sink_destroy(s);
	return NULL;
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
	set_state(s, SINK_OPEN);
	s->file = FILE_OPEN;
	s->regular = sink_fd_kind(fd) == SINK_FD_FILE;
	if (!sink_thread_start(s)) {
		file_sink_destroy(s);
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
	if ((s->path = strdup(place->path)) == NULL || !sink_thread_start(s)) {
		file_sink_destroy(s);
		return NULL;
	}
	return s;
}

/* ---- giving up ---- */

static void
tell_opened(struct file_sink *s, const char *err)
{
	set_state(s, err == NULL ? SINK_OPEN : SINK_FAILED);
	s->ops->opened(s, err, s->arg);
}

static void
tell_failed(struct file_sink *s, const char *err)
{
	if (s->state == SINK_FAILED)
		return;
	set_state(s, SINK_FAILED);
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
	return s->state >= SINK_CLOSING || s->state == SINK_OPENING ||
	    !file_sink_idle(s);
}

/* Time until the writer is cancelled, or interrupted again; false: none is set. */
static bool
patience_ms(const struct file_sink *s, uint64_t *ms)
{
	uint64_t now = loop_now_ms(), left;

	*ms = s->trust == WRITER_AWAITED ? s->wait_ms : SINK_CANCEL_STEP_MS;
	if (s->trust != WRITER_AWAITED || s->deadline_ms == 0)
		return *ms != 0;
	left = s->deadline_ms > now ? s->deadline_ms - now : 0;
	if (*ms == 0 || left < *ms)
		*ms = left;
	return true;
}

/* Starts the patience timer, unless it runs or the writer has no work. */
static void
watch(struct file_sink *s)
{
	uint64_t left, ms;

	if (!is_awaited(s) || s->trust == WRITER_ABANDONED ||
	    loop_timer_left(s->patience, &left) || !patience_ms(s, &ms))
		return;
	loop_timer_set(s->patience, ms, 0);
}

/* Stops the patience timer after progress; watch() restarts it. */
static void
sign_of_life(struct file_sink *s)
{
	s->interrupts = 0;
	loop_timer_clear(s->patience);
}

static void
gone_cb(void *arg)
{
	struct file_sink *s = arg;

	loop_timer_free(s->patience);
	s->patience = NULL;
	set_state(s, SINK_CLOSED);
	s->ops->closed(s, SINK_ABANDONED, s->arg);
	sink_thread_leave(s);
}

/*
 * Answers in place of a writer that hangs in the kernel.  It keeps its batches,
 * which count as lost: whether they get into the file is not known.
 */
static void
abandon(struct file_sink *s)
{
	size_t i;

	set_trust(s, WRITER_ABANDONED);
	for (i = 0; i < SINK_BATCHES; i++)
		if (s->batches[i].submitted)
			tell_lost(s, &s->batches[i], 0);
	if (s->state == SINK_CLOSING)
		loop_defer(s->l, &s->gone_call, gone_cb, s);
	else if (s->state == SINK_OPENING)
		tell_opened(s, SINK_ABANDONED);
	else
		tell_failed(s, SINK_ABANDONED);
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
	set_trust(s, WRITER_CANCELLED);
	s->interrupts++;
	sink_thread_cancel(s);
	watch(s);
}

void
file_sink_hurry(struct file_sink *s, uint64_t ms)
{
	if (s->regular)
		ms = SINK_DISK_WAIT_MS;
	if (s->wait_ms == 0 || ms < s->wait_ms) {
		s->wait_ms = ms;
		if (s->trust == WRITER_AWAITED)
			loop_timer_clear(s->patience);
	}
	watch(s);
}

void
file_sink_last_call(struct file_sink *s, uint64_t ms)
{
	uint64_t due = loop_now_ms() + ms, left;

	if (s->regular || s->trust != WRITER_AWAITED ||
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
		/* The last job has not begun yet: it syncs as well. */
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
	if (s->state >= SINK_CLOSING || (b == NULL && !sync))
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

unsigned
file_sink_recovered(const struct file_sink *s)
{
	return s->recovered;
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
	if (s->state >= SINK_CLOSING)
		return;
	set_state(s, SINK_CLOSING);
	pthread_mutex_lock(&s->lock);
	s->loop_side = LOOP_CLOSES;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->trust == WRITER_ABANDONED)
		loop_defer(s->l, &s->gone_call, gone_cb, s);
	else
		file_sink_hurry(s, SINK_WAIT_MS);
}

/* Makes a batch that came back usable again, at its normal size. */
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

/* Takes the writer's report, and the batches that it is done with. */
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
		if (!back[i] || s->trust == WRITER_ABANDONED)
			continue;
		tell_lost(s, &s->batches[i], s->batches[i].kept);
		take_back(&s->batches[i]);
	}
}

/* Runs the callbacks; each may close the sink, and is the last one then. */
static void
tell_report(struct file_sink *s, const struct report *r, bool progress)
{
	const char *err = r->err[0] != '\0' ? r->err : NULL;

	if (s->state == SINK_OPENING && r->file != FILE_OPENING)
		tell_opened(s, r->file == FILE_REFUSED ? err : NULL);
	if (s->state == SINK_OPEN && r->file == FILE_FULL) {
		set_state(s, SINK_FULL);
		s->ops->full(s, s->arg);
	}
	if (s->state == SINK_CLOSING)
		return;
	if (err == NULL && progress && r->number != 0 && s->ops->grown != NULL)
		s->ops->grown(s, r->number, r->largest, s->arg);
	if (s->state == SINK_CLOSING)
		return;
	if (err != NULL)
		tell_failed(s, err);
	else if (progress)
		s->ops->written(s, r->total, s->arg);
}

/* The writer has ended: its segments can be looked at. */
static void
segments_lost(void *arg, const uint8_t *data, size_t len)
{
	struct file_sink *s = arg;

	s->ops->lost(s, data, len, s->arg);
}

/* After file_sink_close() only closed(). */
void
file_sink_report_cb(void *arg)
{
	struct file_sink *s = arg;
	struct report r;
	bool progress;

	take_report(s, &r);
	if (s->state == SINK_CLOSED) {
		sink_thread_leave(s);
		return;
	}
	if (s->trust == WRITER_ABANDONED)
		return;
	progress = r.done != s->answered;
	s->answered = r.done;
	s->total = r.total;
	s->recovered = r.recovered;
	if (r.file == FILE_CLOSED) {
		pthread_join(s->thread, NULL);
		if (s->segments != NULL && s->ops->lost != NULL)
			sink_segments_lost(s->segments, segments_lost, s);
		s->ops->closed(s, r.err[0] != '\0' ? r.err : NULL, s->arg);
		file_sink_destroy(s);
		return;
	}
	sign_of_life(s);
	if (s->state != SINK_CLOSING)
		tell_report(s, &r, progress);
	watch(s);
}
