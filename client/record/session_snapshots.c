#include "client/record/session_snapshots.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "client/record/file.h"
#include "client/record/live_line.h"
#include "client/record/session.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/service_state.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/loop/loop.h"

typedef Perfetto__Protos__ObservableEvents__CloneTriggerHit clone_hit;

struct snapshot {
	TAILQ_ENTRY(snapshot) link;
	uint64_t session_id;
	struct consumer_hit hit; /* its strings are the two below */
	char *trigger;  /* owned */
	char *producer; /* owned */
};

struct record_snapshots {
	struct record_snapshots_setup with;
	TAILQ_HEAD(, snapshot) waiting;
	unsigned n_waiting;
	struct snapshot *now; /* owned, as are the three that save it */
	struct consumer_clone which;
	struct record_file *file;
	struct trace_summary *summary;
	struct record_session *session;
	unsigned next; /* number of the next file */
	unsigned taken;
	unsigned failed;
	void (*idle)(void *arg);
	void *idle_arg;
	struct loop_call next_call, idle_call;
};

static void begin_next(void *arg);

struct record_snapshots *
record_snapshots_new(const struct record_snapshots_setup *setup)
{
	struct record_snapshots *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->with = *setup;
	TAILQ_INIT(&s->waiting);
	return s;
}

static void
snapshot_free(struct snapshot *n)
{
	if (n == NULL)
		return;
	free(n->trigger);
	free(n->producer);
	free(n);
}

static void
end_now(struct record_snapshots *s)
{
	record_session_free(s->session);
	record_file_free(s->file);
	trace_summary_free(s->summary);
	snapshot_free(s->now);
	s->session = NULL;
	s->file = NULL;
	s->summary = NULL;
	s->now = NULL;
}

void
record_snapshots_free(struct record_snapshots *s)
{
	struct snapshot *n;

	if (s == NULL)
		return;
	while ((n = TAILQ_FIRST(&s->waiting)) != NULL) {
		TAILQ_REMOVE(&s->waiting, n, link);
		snapshot_free(n);
	}
	if (s->session != NULL) {
		record_session_stop(s->session);
		if (s->session != NULL)
			record_session_stop(s->session);
	}
	end_now(s);
	loop_cancel(s->with.loop, s);
	free(s);
}

static void
say_saved(const struct record_snapshots *s)
{
	const struct trace_totals *t = trace_summary_totals(s->summary);
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX], text[1024];

	snprintf(text, sizeof(text), "trigger \"%.200s\" of %.200s: saved %s "
	    "packet%s (%s) in %.400s", s->now->trigger, s->now->producer,
	    human_count(packets, t->packets), human_s(t->packets),
	    human_bytes(bytes, t->bytes), record_file_name(s->file));
	record_live_note(s->with.live, text);
}

static void
next_or_idle(struct record_snapshots *s)
{
	end_now(s);
	if (!TAILQ_EMPTY(&s->waiting)) {
		loop_defer(s->with.loop, &s->next_call, begin_next, s);
	} else if (s->idle != NULL) {
		loop_defer(s->with.loop, &s->idle_call, s->idle, s->idle_arg);
		s->idle = NULL;
	}
}

static void
fail(struct record_snapshots *s, const char *why)
{
	s->failed++;
	record_live_say(s->with.live, "trigger \"%.200s\": %s",
	    s->now->trigger, why);
	if (s->file != NULL)
		(void)record_file_remove_if_empty(s->file);
}

static void
done_cb(void *arg, const struct record_result *r)
{
	struct record_snapshots *s = arg;

	if (r->whole)
		say_saved(s);
	else
		fail(s, r->failure);
	next_or_idle(s);
}

/* Opens the next of FILE.0, FILE.1, ...; NULL with a sentence in err. */
static struct record_file *
open_next(struct record_snapshots *s, char *err, size_t err_size)
{
	size_t size = strlen(s->with.out) + 16;
	struct record_file *f = NULL;
	char *path;

	if ((path = malloc(size)) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	do
		snprintf(path, size, "%s.%u", s->with.out, s->next++);
	while (s->with.no_clobber && access(path, F_OK) == 0);
	f = record_file_open(path, s->with.no_clobber, err, err_size);
	free(path);
	return f;
}

static int
begin(struct record_snapshots *s, char *err, size_t err_size)
{
	struct record_session_setup setup = {
		.loop = s->with.loop,
		.addr = s->with.addr,
		.how = s->with.how,
		.kind = RECORD_CLONE,
		.clone = &s->which,
		.live = s->with.live,
		.no_line = true,
	};

	if ((setup.file = s->file = open_next(s, err, err_size)) == NULL)
		return -1;
	snprintf(err, err_size, "out of memory");
	if ((setup.summary = s->summary = trace_summary_new()) == NULL)
		return -1;
	s->which = (struct consumer_clone){
		.session_id = s->now->session_id,
		.hit = &s->now->hit,
		.fd = -1,
	};
	s->session = record_session_new(&setup, done_cb, s, err, err_size);
	return s->session == NULL ? -1 : 0;
}

static void
begin_next(void *arg)
{
	struct record_snapshots *s = arg;
	char err[768];

	if (s->now != NULL || (s->now = TAILQ_FIRST(&s->waiting)) == NULL)
		return;
	TAILQ_REMOVE(&s->waiting, s->now, link);
	s->n_waiting--;
	if (begin(s, err, sizeof(err)) == 0)
		return;
	fail(s, err);
	next_or_idle(s);
}

static struct snapshot *
snapshot_new(const clone_hit *hit)
{
	struct snapshot *n;

	if ((n = calloc(1, sizeof(*n))) == NULL)
		return NULL;
	n->session_id = (uint64_t)hit->tracing_session_id;
	n->hit.uid = (int32_t)hit->producer_uid;
	n->hit.boot_time_ns = hit->boot_time_ns;
	n->hit.delay_ms = hit->trigger_delay_ms;
	n->trigger = strdup(hit->trigger_name == NULL ? "" :
	    hit->trigger_name);
	n->producer = strdup(hit->producer_name == NULL ? "" :
	    hit->producer_name);
	if (n->trigger == NULL || n->producer == NULL) {
		snapshot_free(n);
		return NULL;
	}
	n->hit.trigger = n->trigger;
	n->hit.producer = n->producer;
	return n;
}

void
record_snapshots_take(struct record_snapshots *s, const clone_hit *hit)
{
	struct snapshot *n = NULL;

	s->taken++;
	if (s->n_waiting < RECORD_SNAPSHOTS_QUEUE_MAX)
		n = snapshot_new(hit);
	if (n == NULL) {
		s->failed++;
		record_live_say(s->with.live, "trigger \"%.200s\": no snapshot, "
		    "as %u wait already", hit->trigger_name == NULL ? "" :
		    hit->trigger_name, s->n_waiting);
		return;
	}
	TAILQ_INSERT_TAIL(&s->waiting, n, link);
	s->n_waiting++;
	begin_next(s);
}

unsigned
record_snapshots_taken(const struct record_snapshots *s)
{
	return s->taken;
}

unsigned
record_snapshots_failed(const struct record_snapshots *s)
{
	return s->failed;
}

void
record_snapshots_when_idle(struct record_snapshots *s, void (*fn)(void *arg),
    void *arg)
{
	s->idle = fn;
	s->idle_arg = arg;
	if (s->now == NULL && TAILQ_EMPTY(&s->waiting))
		next_or_idle(s);
}
