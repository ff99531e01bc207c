#include "service/output/file_writer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/access/principal.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/output/file_config.h"
#include "service/output/file_gate.h"
#include "service/output/file_loss.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/output/trace_compression.h"
#include "service/settings/settings.h"
#include "service/sink/file_sink.h"
#include "service/sink/sink_fd.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/sink/sink_path.h"

/*
 * Late: file_writer_finish() was called, as the session is over.  The timers
 * are armed from file_writer_start() until then.  Up to FILE_REST_PASS
 * producers are held back where the settings want it, from FILE_LIMIT on none
 * are.
 */
enum file_state {
	FILE_OPENING,      /* the sink's opened() comes */
	FILE_OPENING_LATE, /* the same, late; then FILE_LAST_PASS */
	FILE_IDLE,         /* a timer or a full buffer starts a pass */
	FILE_PASS,         /* the sink's written() comes; then FILE_IDLE */
	FILE_LAST_PASS,    /* late; written() comes; then FILE_SCRAPE */
	FILE_SCRAPE,       /* late; on its turn scrapes shared memory */
	FILE_REST_PASS,    /* late; written() comes; then FILE_WRITTEN */
	FILE_LIMIT,        /* limit_call ends the session; the next batch is */
	                   /* the last; then FILE_FULL */
	FILE_LIMIT_LATE,   /* the same, late; then FILE_WRITTEN */
	FILE_FULL,         /* nothing comes but the session's end */
	FILE_WRITTEN,      /* late; on its turn closes the file, once the */
	                   /* sink has written all, and found no limit */
	FILE_FAILED,       /* nothing comes but the session's end */
	FILE_CLOSING,      /* late; closed() comes, and after a failure the */
	                   /* packets that were never written are counted */
};

struct file_writer {
	struct session *session;
	const struct file_ops *ops;
	struct file_sink *sink;
	struct packet_out *out;
	enum file_state state;
	bool pass_syncs;  /* fdatasync at the end of the pass */
	uint32_t last_call_ms; /* deadline for finishing; 0: none */
	struct loop_call retry_call, limit_call, turn_call;
	uint64_t *limit;  /* &left; NULL: none, or the sink's (compressed) */
	uint64_t left;    /* bytes up to max_file_size_bytes, */
	uint64_t kept;    /* less those for its end */
	uint64_t written;
	uint32_t segment_cut; /* the last one that was full */
	struct loop_timer *write_timer;
	struct loop_timer *flush_timer;
	struct file_gate *gate; /* of the session's buffers */
	char *error;
	struct file_loss *loss; /* of a file that failed */
};

static void pump(struct file_writer *f);
static void post_turn(void *arg);

/* Whether file_writer_finish() was called. */
static bool
is_late(const struct file_writer *f)
{
	switch (f->state) {
	case FILE_OPENING_LATE:
	case FILE_LAST_PASS:
	case FILE_SCRAPE:
	case FILE_REST_PASS:
	case FILE_LIMIT_LATE:
	case FILE_WRITTEN:
	case FILE_CLOSING:
		return true;
	case FILE_OPENING:
	case FILE_IDLE:
	case FILE_PASS:
	case FILE_LIMIT:
	case FILE_FULL:
	case FILE_FAILED:
		break;
	}
	return false;
}

/* Whether a pass reads the buffers, and may make room in them. */
static bool
is_reading(const struct file_writer *f)
{
	return f->state == FILE_PASS || f->state == FILE_LAST_PASS ||
	    f->state == FILE_REST_PASS;
}

static bool
is_at_limit(const struct file_writer *f)
{
	return f->state == FILE_LIMIT || f->state == FILE_LIMIT_LATE;
}

static bool
is_in_pass(const struct file_writer *f)
{
	return is_reading(f) || is_at_limit(f);
}

/* The one place where the state changes. */
static void
set_state(struct file_writer *f, enum file_state state)
{
	f->state = state;
	file_gate_watch(f->gate, state == FILE_IDLE);
	if (state > FILE_REST_PASS)
		file_gate_open(f->gate);
}

static void
retry_cb(void *arg)
{
	struct file_writer *f = arg;

	f->ops->has_room(f->session);
}

/*
 * Lets waiting producers try again: in a pass, with every batch, as many as
 * fit; otherwise all that need not wait any more.
 */
static void
wake(struct file_writer *f)
{
	if (is_reading(f))
		file_gate_wake_some(f->gate);
	else
		file_gate_wake(f->gate);
	/* On a later turn: a waiting flush may be further up the stack. */
	if (!TAILQ_EMPTY(&f->session->flushes) ||
	    f->session->service->n_gone > 0)
		loop_defer(f->session->service->loop, &f->retry_call, retry_cb,
		    f);
}

/* state: one of is_in_pass(). */
static void
begin_pass(struct file_writer *f, enum file_state state)
{
	set_state(f, state);
	file_gate_begin_pass(f->gate);
	readback_begin(f->session->readback);
	pump(f);
}

static void
limit_cb(void *arg)
{
	struct file_writer *f = arg;

	log_limited(&f->session->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: max_file_size_bytes is reached",
	    (unsigned long long)f->session->id);
	f->ops->full(f->session);
}

static enum file_state
state_after_pass(const struct file_writer *f)
{
	switch (f->state) {
	case FILE_LAST_PASS:
		return FILE_SCRAPE;
	case FILE_REST_PASS:
	case FILE_LIMIT_LATE:
		return FILE_WRITTEN;
	case FILE_LIMIT:
		return FILE_FULL;
	default:
		return FILE_IDLE;
	}
}

static void
end_pass(struct file_writer *f)
{
	set_state(f, state_after_pass(f));
	file_gate_end_pass(f->gate);
}

static void
close_file(struct file_writer *f)
{
	set_state(f, FILE_CLOSING);
	wake(f);
	file_sink_close(f->sink);
}

static void
take_rest(struct file_writer *f)
{
	bool all = f->ops->scrape(f->session);

	readback_want_stats(f->session->readback);
	begin_pass(f, all ? FILE_REST_PASS : FILE_LAST_PASS);
}

/* The session ends; one more batch is the file's end, and is synced as such. */
static void
hit_limit(struct file_writer *f)
{
	f->pass_syncs = f->pass_syncs || file_config_syncs(f->session);
	set_state(f, is_late(f) ? FILE_LIMIT_LATE : FILE_LIMIT);
	loop_defer(f->session->service->loop, &f->limit_call, limit_cb, f);
}

static void
put_end(struct file_writer *f)
{
	readback_put_stats(f->session->readback, f->out, f->kept);
	end_pass(f);
}

static void
put_some(struct file_writer *f)
{
	switch (readback_fill(f->session->readback, f->out, f->limit)) {
	case READBACK_LIMIT:
		hit_limit(f);
		break;
	case READBACK_DONE:
		end_pass(f);
		break;
	case READBACK_FULL:
		break;
	}
}

static void
submit(struct file_writer *f, bool last)
{
	bool sync = !is_in_pass(f) && f->pass_syncs;

	if (last)
		file_sink_submit_last(f->sink, sync);
	else
		file_sink_submit(f->sink, sync);
	if (sync)
		f->pass_syncs = false;
}

/*
 * Fills and hands over batches, as long as there is one and something to write.
 */
static void
pump(struct file_writer *f)
{
	struct sink_batch *b;
	bool last;

	while (is_in_pass(f) && (b = file_sink_batch(f->sink)) != NULL) {
		packet_out_set_batch(f->out, b);
		last = is_at_limit(f);
		if (last)
			put_end(f);
		else
			put_some(f);
		packet_out_set_batch(f->out, NULL);
		submit(f, last);
	}
	wake(f);
	if (f->state == FILE_SCRAPE || f->state == FILE_WRITTEN)
		post_turn(f);
}

/* On a turn of its own, while no producer is in the middle of a commit. */
static void
turn_cb(void *arg)
{
	struct file_writer *f = arg;

	if (f->state == FILE_IDLE)
		begin_pass(f, FILE_PASS);
	else if (f->state == FILE_SCRAPE)
		take_rest(f);
	else if (f->state == FILE_WRITTEN && file_sink_idle(f->sink))
		close_file(f);
}

static void
post_turn(void *arg)
{
	struct file_writer *f = arg;

	loop_defer(f->session->service->loop, &f->turn_call, turn_cb, f);
}

/* Gives the file up: the session ends, and no producer waits any more. */
static void
fail_file(struct file_writer *f, const char *err)
{
	bool late = is_late(f);

	if (f->error == NULL)
		f->error = strdup(err);
	if (late) {
		close_file(f);
		return;
	}
	set_state(f, FILE_FAILED);
	wake(f);
	f->ops->failed(f->session, err);
}

static void
log_recovered(const struct file_writer *f)
{
	const struct session *s = f->session;
	unsigned n = file_sink_recovered(f->sink);

	if (n > 0)
		log_limited(&s->service->file_log, loop_now_ms(),
		    LOG_LEVEL_WARN, "session %llu: %u segment%s that a crash "
		    "left in %s end%s with the last whole packet",
		    (unsigned long long)s->id, n, human_s(n),
		    s->file_path != NULL ? s->file_path : "its folder",
		    n == 1 ? "s" : "");
}

static void
opened_cb(struct file_sink *sink, const char *err, void *arg)
{
	struct file_writer *f = arg;

	if (file_writer_is_open(f))
		return;
	if (err != NULL) {
		fail_file(f, err);
		return;
	}
	log_recovered(f);
	if (is_late(f)) {
		begin_pass(f, FILE_LAST_PASS);
	} else {
		set_state(f, FILE_IDLE);
		f->ops->opened(f->session);
	}
	/* A session that has not started writes nothing periodically. */
	wake(f);
	if (file_gate_wants_pass(f->gate))
		post_turn(f);
}

static void
written_cb(struct file_sink *sink, uint64_t total, void *arg)
{
	struct file_writer *f = arg;

	f->written = total;
	if (f->state != FILE_FAILED && f->state != FILE_CLOSING)
		pump(f);
}

/* A segment that is full is cut once, whenever that may be. */
static void
grown_cb(struct file_sink *sink, uint32_t number, uint64_t bytes, void *arg)
{
	struct file_writer *f = arg;
	uint64_t most = f->session->config->pb->tributary_segments->max_bytes;

	if (most == 0 || bytes < most || number <= f->segment_cut ||
	    is_late(f))
		return;
	f->segment_cut = number;
	f->ops->segment_full(f->session);
}

/* A compressed file reached max_file_size_bytes: its sink knows the sizes. */
static void
full_cb(struct file_sink *sink, void *arg)
{
	struct file_writer *f = arg;

	switch (f->state) {
	case FILE_IDLE:
	case FILE_SCRAPE:
	case FILE_WRITTEN:
		hit_limit(f);
		begin_pass(f, f->state);
		break;
	case FILE_PASS:
	case FILE_LAST_PASS:
	case FILE_REST_PASS:
		hit_limit(f);
		break;
	default:
		break;
	}
}

static void
failed_cb(struct file_sink *sink, const char *err, void *arg)
{
	struct file_writer *f = arg;

	if (f->state != FILE_FAILED && f->state != FILE_CLOSING)
		fail_file(f, err);
}

static void
lost_cb(struct file_sink *sink, const uint8_t *data, size_t len, void *arg)
{
	struct file_writer *f = arg;

	file_loss_count(f->loss, data, len);
}

static void
log_loss(const struct file_writer *f)
{
	const struct session *s = f->session;
	uint64_t n = file_loss_packets(f->loss);

	if (n > 0)
		log_limited(&s->service->file_log, loop_now_ms(),
		    LOG_LEVEL_WARN, "session %llu: %llu packets are lost that "
		    "%s should have got", (unsigned long long)s->id,
		    (unsigned long long)n,
		    s->file_path != NULL ? s->file_path : "its file");
}

/* All losses are counted; a chunk that comes later counts as late. */
static void
drained_cb(void *arg)
{
	struct file_writer *f = arg;

	log_loss(f);
	f->ops->closed(f->session, f->error);
}

static void
closed_cb(struct file_sink *sink, const char *err, void *arg)
{
	struct file_writer *f = arg;

	f->written = file_sink_total(sink);
	f->sink = NULL;
	if (f->error == NULL && err != NULL)
		f->error = strdup(err);
	if (f->error != NULL)
		file_loss_drain(f->loss, f->out, drained_cb, f);
	else
		f->ops->closed(f->session, err);
}

static const struct file_sink_ops sink_ops = {
	.opened = opened_cb,
	.written = written_cb,
	.grown = grown_cb,
	.full = full_cb,
	.failed = failed_cb,
	.lost = lost_cb,
	.closed = closed_cb,
};

static void
flushed_before_write(struct session *s, bool success, void *arg)
{
	struct file_writer *f = arg;

	f->pass_syncs = f->pass_syncs || file_config_syncs(s);
	if (f->state == FILE_IDLE)
		begin_pass(f, FILE_PASS);
}

static void
write_cb(void *arg)
{
	struct file_writer *f = arg;
	struct session *s = f->session;

	if (f->state != FILE_IDLE && f->state != FILE_PASS)
		return;
	if (file_config_flushes_each_write(s))
		f->ops->flush(s, flushed_before_write, f);
	else
		flushed_before_write(s, true, f);
}

static void
clock_flush_cb(void *arg)
{
	struct file_writer *f = arg;

	if (f->state == FILE_IDLE || f->state == FILE_PASS)
		f->ops->flush(f->session, NULL, f);
}

static void
set_limit(struct file_writer *f, struct file_sink_options *options)
{
	uint64_t most = f->session->config->pb->max_file_size_bytes;

	f->kept = file_config_stats_bytes(f->session, most);
	if (options->compression.kind != PACKET_PLAIN) {
		options->max_bytes = most;
		options->last_bytes = f->kept;
	} else {
		f->left = most - f->kept;
	}
	if (f->left > 0)
		f->limit = &f->left;
}

struct file_writer *
file_writer_new(struct session *s, const struct file_ops *ops, int fd,
    char *err, size_t err_size)
{
	struct service *sv = s->service;
	struct sink_dir dir = { .path = s->folder.path,
		.fd = s->folder.fd,
		.mode = sv->settings->trace_file_mode };
	struct file_sink_options options = { .max_bytes = 0 };
	struct file_sink_segments segments;
	struct file_writer *f;

	if (fd >= 0 && sink_fd_check(fd, err, err_size) != 0)
		return NULL;
	snprintf(err, err_size, "out of memory");
	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->session = s;
	f->ops = ops;
	options.owner = principal_key(&s->owner);
	options.compression = trace_compression(s->config);
	if (fd < 0 && file_config_segments(s, &segments))
		options.segments = &segments;
	else
		set_limit(f, &options);
	f->gate = file_gate_new(s, sv->settings->lossless, post_turn, f);
	f->out = packet_out_new_file();
	f->loss = file_loss_new(s);
	f->write_timer = loop_timer_new(sv->loop, write_cb, f);
	f->flush_timer = loop_timer_new(sv->loop, clock_flush_cb, f);
	if (f->gate == NULL || f->out == NULL || f->loss == NULL ||
	    f->write_timer == NULL || f->flush_timer == NULL)
		goto fail;
	if (fd >= 0) {
		set_state(f, FILE_IDLE);
		f->sink = file_sink_new_fd(sv->loop, fd, &options,
		    &sink_ops, f);
	} else if (s->folder.fd < 0) {
		snprintf(err, err_size, "output_path is not allowed: the "
		    "daemon was started without --trace-dir");
		goto fail;
	} else {
		set_state(f, FILE_OPENING);
		f->sink = file_sink_new_path(sv->loop,
		    &(struct file_sink_place){ .dir = &dir,
		    .path = file_config_path(s),
		    .uid = file_config_owner(s), .gid = -1 }, &options, &sink_ops, f);
	}
	if (f->sink == NULL) {
		snprintf(err, err_size, "the trace file's writer could not "
		    "be started (out of memory or threads, or too many "
		    "earlier ones of this user hang in a write)");
		goto fail;
	}
	return f;

fail:
	file_writer_free(f);
	return NULL;
}

bool
file_writer_is_open(const struct file_writer *f)
{
	return f->state != FILE_OPENING && f->state != FILE_OPENING_LATE;
}

void
file_writer_start(struct file_writer *f)
{
	uint32_t flush_ms = file_config_flush_period_ms(f->session);

	loop_timer_set(f->write_timer,
	    file_config_write_period_ms(f->session), 1);
	if (flush_ms > 0)
		loop_timer_set(f->flush_timer, flush_ms, 1);
}

void
file_writer_hurry(struct file_writer *f, uint32_t ms)
{
	if (f->sink != NULL)
		file_sink_hurry(f->sink, ms);
}

void
file_writer_last_call(struct file_writer *f, uint32_t ms)
{
	file_writer_hurry(f, ms);
	f->last_call_ms = ms;
	if (is_late(f) && f->sink != NULL)
		file_sink_last_call(f->sink, ms);
}

/* A file that is being opened, or in a pass, goes on when that is done. */
static void
finish(struct file_writer *f)
{
	switch (f->state) {
	case FILE_OPENING:
		set_state(f, FILE_OPENING_LATE);
		break;
	case FILE_IDLE:
		f->pass_syncs = f->pass_syncs || file_config_syncs(f->session);
		begin_pass(f, FILE_LAST_PASS);
		break;
	case FILE_PASS:
		set_state(f, FILE_LAST_PASS);
		break;
	case FILE_LIMIT:
		set_state(f, FILE_LIMIT_LATE);
		break;
	default:
		close_file(f);
		break;
	}
}

void
file_writer_finish(struct file_writer *f)
{
	if (is_late(f))
		return;
	loop_timer_clear(f->write_timer);
	loop_timer_clear(f->flush_timer);
	file_writer_hurry(f, SINK_WAIT_MS);
	if (f->last_call_ms > 0) {
		file_writer_hurry(f, f->last_call_ms);
		file_sink_last_call(f->sink, f->last_call_ms);
	}
	finish(f);
}

void
file_writer_free(struct file_writer *f)
{
	if (f == NULL)
		return;
	file_gate_free(f->gate);
	loop_cancel(f->session->service->loop, f);
	loop_timer_free(f->write_timer);
	loop_timer_free(f->flush_timer);
	packet_out_free(f->out);
	file_loss_free(f->loss);
	free(f->error);
	free(f);
}

void
file_writer_want_pass(struct file_writer *f)
{
	if (f->state == FILE_IDLE)
		post_turn(f);
}

void
file_writer_copied(struct file_writer *f)
{
	post_turn(f);
}

uint64_t
file_writer_bytes(const struct file_writer *f)
{
	return f->written;
}
