#include "service/onlookers/clone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/ingest/buffer_vms.h"
#include "service/onlookers/clone_copy.h"
#include "service/output/file_writer.h"
#include "service/session/flush.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

/*
 * Bytes copied in a turn of the loop: less than a millisecond of large chunks.
 */
#define COPY_STEP (256u * 1024)

/* The stages of an operation; behind each, the event that it waits for. */
enum clone_state {
	CLONE_QUEUED,  /* another clone of the source is copied */
	CLONE_FLUSHES, /* the flush of the source */
	CLONE_FLUSHED, /* another clone of the source is copied */
	CLONE_COPIES,  /* turns of the loop, in which `clone` is filled */
};

/*
 * A CloneSession in progress: waits for a flush of the source, copies, one at a
 * time of a source, and then waits for the clone's file if there is one.
 */
struct clone_op {
	struct service *service;
	struct session *source; /* NULL once copied */
	struct session *clone;  /* NULL until it copies */
	struct clone_op *next;  /* of the same source, newest first */
	enum clone_state state;
	struct loop_call step;
	size_t buffer; /* being copied */
	bool flushed_all;
	bool for_bugreport;
	struct principal who;
	int fd;
	const struct trace_folder *archive; /* NULL: not into segments */
	bool skip_filter;
	bool has_trigger;
	struct clone_trigger trigger;
	char *trigger_name;
	char *trigger_producer;
	clone_fn done;
	void *arg;
};

static void
op_free(struct clone_op *op)
{
	loop_call_cancel(&op->step);
	if (op->fd >= 0)
		close(op->fd);
	free(op->trigger_name);
	free(op->trigger_producer);
	free(op);
}

static void
answer(struct clone_op *op, struct session *clone, bool was_file,
    const char *error)
{
	if (op->done != NULL)
		op->done(op->arg, clone, was_file, error);
	else if (clone != NULL)
		session_free(clone); /* clone_forget(): it has no owner */
	op_free(op);
}

static void
unlink_op(struct clone_op *op)
{
	struct clone_op **p;

	for (p = &op->source->clone_ops; *p != NULL; p = &(*p)->next)
		if (*p == op) {
			*p = op->next;
			break;
		}
	op->source = NULL;
}

static void
clear_buffer(struct session_buffer *b)
{
	ring_ahead_stop(&b->ahead, b->session->service->populator);
	trace_buffer_clear(b->tb);
	if (b->vms != NULL)
		buffer_vms_clear(b->vms);
}

/* Has the clone's file be a segment below op->archive.  -1: no memory. */
static int
aim_at_archive(const struct clone_op *op, struct session *s)
{
	const struct service_cut cut = {
		.number = 1,
		.cause = SERVICE_CUT_TRIGGER,
		.realtime_ns = (uint64_t)s->created_realtime_ns,
		.trigger = op->trigger_name,
		.trigger_producer = op->trigger_producer,
		.trigger_machine = op->trigger.machine,
	};
	Perfetto__Protos__TraceConfig *pb = s->config->pb;
	struct pb_writer w;

	s->folder = *op->archive;
	free(pb->output_path);
	/* The slash makes it the folder itself, and not one below it. */
	if (asprintf(&pb->output_path, "%s/", s->folder.path) < 0) {
		pb->output_path = NULL;
		return -1;
	}
	if (!op->has_trigger)
		return 0;
	pb_writer_init(&w);
	service_packets_begun_by(&w, &cut);
	s->begun_by = w.data;
	s->begun_by_len = w.len;
	return w.failed ? -1 : 0;
}

/* Writes the clone to its file, or gives it to done() at once. */
static void
hand_over(struct clone_op *op, bool was_file)
{
	struct session *s = op->clone;
	char err[256] = "Out of memory";

	op->clone = NULL;
	s->cloning = NULL;
	if (op->archive == NULL && (!was_file || op->fd < 0)) {
		answer(op, s, false, NULL);
		return;
	}
	if (op->archive != NULL && aim_at_archive(op, s) != 0) {
		session_free(s);
		answer(op, NULL, false, err);
		return;
	}
	session_note_file_path(s, op->fd);
	if (session_make_file(s, op->fd, err, sizeof(err)) != 0) {
		session_free(s);
		answer(op, NULL, false, err);
		return;
	}
	op->fd = -1;
	op->clone = s;
	s->cloning = op;
	file_writer_finish(s->file);
}

static void go_on(struct session *source);

static void
drop_clone(struct clone_op *op)
{
	struct session *s = op->clone;

	op->clone = NULL;
	if (s == NULL)
		return;
	s->cloning = NULL;
	session_free(s);
}

/* The source may write again what waited for the copy (file_writer.c). */
static void
leave_source(struct clone_op *op)
{
	struct session *source = op->source;

	unlink_op(op);
	if (source->file != NULL)
		file_writer_copied(source->file);
}

/* Ends an operation that has not copied its source. */
static void
fail_op(struct clone_op *op, const char *error)
{
	struct session *source = op->source;

	drop_clone(op);
	leave_source(op);
	answer(op, NULL, false, error);
	go_on(source);
}

static void
copied(struct clone_op *op)
{
	struct session *source = op->source;
	bool was_file = source->config->pb->write_into_file;

	log_limited(&op->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: cloned from session %llu",
	    (unsigned long long)op->clone->id,
	    (unsigned long long)source->id);
	leave_source(op);
	hand_over(op, was_file);
	go_on(source);
}

static void
copy_cb(void *arg)
{
	struct clone_op *op = arg;
	struct session *s = op->clone;

	if (op->done == NULL) {
		fail_op(op, NULL);
		return;
	}
	if (op->buffer == s->n_buffers) {
		copied(op);
		return;
	}
	switch (trace_buffer_fill(s->buffers[op->buffer].tb, COPY_STEP)) {
	case TB_FILL_DONE:
		op->buffer++;
		break;
	case TB_FILL_MORE:
		break;
	case TB_FILL_FAILED:
		fail_op(op, "Out of memory");
		return;
	}
	loop_defer_slow(op->service->loop, &op->step, true, copy_cb, op);
}

/* Makes op->clone, whose buffers are empty still.  -1: no memory or ids. */
static int
make_clone(struct clone_op *op)
{
	struct session *src = op->source;
	struct session *s;

	if ((s = clone_copy_new(src, &op->who, op->skip_filter)) == NULL)
		return -1;
	/* A clone has ended from its start: its final flush is the source's. */
	s->final_flush = op->flushed_all ? FINAL_FLUSH_SUCCEEDED :
	    FINAL_FLUSH_FAILED;
	event_log_event(s->events, SERVICE_EVENT_TRACING_DISABLED);
	if (op->has_trigger) {
		struct service_trigger t = {
			.name = op->trigger_name,
			.producer_name = op->trigger_producer,
			.producer_uid = op->trigger.producer_uid,
			.ts = op->trigger.boot_time_ns,
			.stop_delay_ms = op->trigger.delay_ms,
		};

		event_log_clone_trigger(s->events, &t);
	}
	session_set_state(s, SESSION_CLONED);
	/* The next clone's trace has the triggers from now on. */
	if (config_trigger_mode(src->config) ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT)
		event_log_drop_triggers(src->events);
	s->cloning = op;
	op->clone = s;
	return 0;
}

static void
start_copying(struct clone_op *op)
{
	char err[256] = "Out of memory or buffer ids";

	if (op->done == NULL) {
		fail_op(op, NULL);
		return;
	}
	/*
	 * A failed flush still copies the data of the producers that answered.
	 * Limits are checked again: sessions may have been cloned since.
	 */
	op->state = CLONE_COPIES;
	if (clone_copy_check(op->source, &op->who, err, sizeof(err)) != 0 ||
	    make_clone(op) != 0) {
		fail_op(op, err);
		return;
	}
	loop_defer_slow(op->service->loop, &op->step, true, copy_cb, op);
}

static void
flushed(struct session *source, bool success, void *arg)
{
	struct clone_op *op = arg;

	op->flushed_all = success;
	op->state = CLONE_FLUSHED;
	go_on(source);
}

static void
start_flush(struct clone_op *op)
{
	struct session *src = op->source;
	size_t i;

	op->state = CLONE_FLUSHES;
	for (i = 0; i < src->n_buffers; i++)
		if (src->buffers[i].clear_before_clone)
			clear_buffer(&src->buffers[i]);
	flush_start(src, config_flush_timeout_ms(src->config),
	    op->for_bugreport ? FLUSH_BUGREPORT_CLONE : FLUSH_TRACE_CLONE,
	    flushed, op);
}

/* The source's oldest operation in this state, or NULL. */
static struct clone_op *
oldest_in(const struct session *source, enum clone_state state)
{
	struct clone_op *op, *oldest = NULL;

	for (op = source->clone_ops; op != NULL; op = op->next)
		if (op->state == state)
			oldest = op;
	return oldest;
}

/*
 * Begins the next operations that can.  None can while one copies: the next
 * would empty the buffers (clear_before_clone), or copy them itself.
 */
static void
go_on(struct session *source)
{
	struct clone_op *op;

	while (oldest_in(source, CLONE_COPIES) == NULL) {
		if ((op = oldest_in(source, CLONE_FLUSHED)) != NULL)
			start_copying(op);
		else if ((op = oldest_in(source, CLONE_QUEUED)) != NULL)
			start_flush(op);
		else
			return;
	}
}

static void
file_closed(struct session *clone)
{
	struct clone_op *op = clone->cloning;
	const char *error = clone->discarding ? "The snapshot was discarded "
	    "while it was being written" : clone->end_error;

	clone->cloning = NULL;
	if (error != NULL) {
		answer(op, NULL, false, error);
		session_free(clone);
		return;
	}
	answer(op, clone, true, NULL);
}

static void
clone_gone(struct session *clone)
{
	struct clone_op *op = clone->cloning;

	if (op == NULL)
		return;
	clone->cloning = NULL;
	op->clone = NULL;
	if (op->source != NULL)
		fail_op(op, "The snapshot was discarded");
	else
		answer(op, NULL, false, "The snapshot was discarded");
}

static void
source_gone(struct session *source)
{
	struct clone_op *op;

	while ((op = source->clone_ops) != NULL) {
		source->clone_ops = op->next;
		op->source = NULL;
		drop_clone(op);
		answer(op, NULL, false, "The session ended while it was "
		    "being cloned");
	}
}

static void
on_session(struct session *s, enum session_event e)
{
	switch (e) {
	case SESSION_EVENT_FILE_CLOSED:
		file_closed(s);
		break;
	case SESSION_EVENT_LOSES_BUFFERS:
		source_gone(s);
		break;
	case SESSION_EVENT_FREED:
		source_gone(s);
		clone_gone(s);
		break;
	case SESSION_EVENT_STATE:
	case SESSION_EVENT_STARTS:
	case SESSION_EVENT_STARTED:
	case SESSION_EVENT_ENDED:
	case SESSION_EVENT_LEAVES:
		break;
	}
}

const struct session_observer clone_observer = { .session = on_session };

void
clone_forget(struct service *sv, void *arg)
{
	struct session *s;
	struct clone_op *op;

	TAILQ_FOREACH(s, &sv->sessions, link) {
		for (op = s->clone_ops; op != NULL; op = op->next)
			if (op->arg == arg)
				op->done = NULL;
		if (s->cloning != NULL && s->cloning->arg == arg)
			s->cloning->done = NULL;
	}
}

static struct session *
best_for_bugreport(struct service *sv)
{
	struct session *s, *best = NULL;

	TAILQ_FOREACH(s, &sv->sessions, link)
		if (session_phase(s->state) == SESSION_PHASE_STARTED &&
		    s->config->pb->bugreport_score > 0 && (best == NULL ||
		    s->config->pb->bugreport_score >
		    best->config->pb->bugreport_score))
			best = s;
	return best;
}

static struct session *
find_source(struct service *sv, const struct clone_request *r)
{
	if (r->session_id == CLONE_BUGREPORT_ID)
		return best_for_bugreport(sv);
	if (r->session_id != 0)
		return session_find(sv, r->session_id);
	/* Sessions without a name have none to be found by. */
	if (r->name != NULL && r->name[0] != '\0')
		return session_find_by_name(sv, r->name);
	return r->for_bugreport ? best_for_bugreport(sv) : NULL;
}

/*
 * One answer for another user's session and for none: whether others have
 * such a session is their secret.
 */
static const char *
no_source(const struct clone_request *r)
{
	if (r->session_id == CLONE_BUGREPORT_ID)
		return "No tracing sessions eligible for bugreport found";
	return "The tracing session to be cloned was not found, or it is not "
	    "yours: only its owner and an admin may clone one without "
	    "bugreport_score";
}

static int
copy_trigger(struct clone_op *op, const struct clone_trigger *t)
{
	if (t == NULL)
		return 0;
	op->has_trigger = true;
	op->trigger = *t;
	op->trigger_name = strdup(t->name);
	op->trigger_producer = strdup(t->producer_name);
	return op->trigger_name == NULL || op->trigger_producer == NULL ? -1 :
	    0;
}

void
clone_start(struct service *sv, const struct clone_request *r, clone_fn done,
    void *arg)
{
	struct clone_op *op;
	struct session *src;
	char err[256];

	if ((op = calloc(1, sizeof(*op))) == NULL) {
		if (r->fd >= 0)
			close(r->fd);
		done(arg, NULL, false, "Out of memory");
		return;
	}
	op->service = sv;
	op->fd = r->fd;
	op->archive = r->archive;
	op->who = *r->who;
	op->done = done;
	op->arg = arg;
	src = find_source(sv, r);
	if (src == NULL || src->state == SESSION_CLONED || src->freeing ||
	    !session_is_visible(src, r->who)) {
		answer(op, NULL, false, no_source(r));
		return;
	}
	if (clone_copy_check(src, r->who, err, sizeof(err)) != 0) {
		answer(op, NULL, false, err);
		return;
	}
	if (copy_trigger(op, r->trigger) != 0) {
		answer(op, NULL, false, "Out of memory");
		return;
	}
	/*
	 * A session that is visible for its bugreport_score alone keeps its
	 * filter.
	 */
	op->skip_filter = (r->skip_trace_filter ||
	    r->session_id == CLONE_BUGREPORT_ID) &&
	    principal_may(r->who, &src->owner);
	op->for_bugreport = r->for_bugreport ||
	    r->session_id == CLONE_BUGREPORT_ID;
	op->state = CLONE_QUEUED;
	op->source = src;
	op->next = src->clone_ops;
	src->clone_ops = op;
	go_on(src);
}
