#include "tests/oom/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tributary/data_source.h>
#include <tributary/tributary.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/library/consumer_loop.h"
#include "client/tracing/consumer/consumer.h"
#include "client/tunnel/producer_loop.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "tests/oom/fail_malloc.h"
#include "tests/oom/job_config.h"
#include "tests/oom/traces.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define CLONE_TRIGGER_HIT                                                      \
	PERFETTO__PROTOS__OBSERVABLE_EVENTS__TYPE__TYPE_CLONE_TRIGGER_HIT

/* Nobody waits that long for anything, unless it was forgotten. */
#define STEP_MS 15000u
#define PATIENCE_MS 2000u
/* Where something does not begin or end by itself for want of memory. */
#define START_MS 150u
#define TEXT_BYTES 100

static struct {
	const struct job_plan *plan;
	struct job_result *result;
	struct loop *loop;
	struct loop_timer *timer;
	struct addr consumer_addr, producer_addr;
	struct dial_options how; /* of the producer */
	struct consumer *consumer;
	struct producer_loop *producer;
	int file;
	struct traces_count count;
	bool connected, ready, started, disabled, answered, read, hit, late;
	uint64_t session_id; /* of the hit */
} job;

/* A consumer of its own for each clone. */
struct viewer {
	struct consumer *consumer;
	int file; /* -1: it reads */
	struct traces_count count;
	bool connected, made, ended, asked;
	uint64_t lost; /* as the copy's statistics say; refused: something */
};

/* ---- waiting ---- */

static void
late_cb(void *arg)
{
	job.late = true;
	loop_stop(job.loop);
}

/* False: it did not come true in time, or the job is cut short. */
static bool
wait_for(const bool *what, unsigned ms)
{
	job.late = false;
	loop_timer_set(job.timer, ms, 0);
	while (!*what && !job.late && !job.result->in_short)
		loop_run(job.loop);
	loop_timer_clear(job.timer);
	return *what;
}

/* Something that comes where there is memory. */
static bool
may_come(const bool *what)
{
	return wait_for(what, job.plan->has_memory ? STEP_MS : START_MS);
}

/* Something that always comes, at the latest when there is memory again. */
static void
must(const bool *what, const char *name)
{
	struct fail_malloc *m = job.plan->memory;

	if (wait_for(what, PATIENCE_MS) || job.result->in_short)
		return;
	if (atomic_load(&m->failed) > 0)
		atomic_store(&m->armed, false);
	if (!wait_for(what, STEP_MS) && !job.result->in_short)
		fail_msg("no answer, and no end: %s", name);
}

static void
cut_short(const char *why)
{
	if (!job.result->in_short)
		snprintf(job.result->why, sizeof(job.result->why), "%s", why);
	job.result->in_short = true;
	loop_stop(job.loop);
}

static void
come_true(bool *what)
{
	*what = true;
	loop_stop(job.loop);
}

/* ---- the consumer ---- */

static void
connected_cb(void *arg)
{
	come_true(&job.connected);
}

static void
disconnected_cb(void *arg, const char *why)
{
	cut_short(why);
}

static void
warned_cb(void *arg, const char *sentence)
{
}

static void
disabled_cb(void *arg, const char *error)
{
	if (error != NULL)
		cut_short(error);
	else
		come_true(&job.disabled);
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	traces_packet(&job.count, data, len);
}

static void
read_cb(void *arg, const char *error)
{
	if (error != NULL)
		cut_short(error);
	else
		come_true(&job.read);
}

static void
observed_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__ObservableEvents *events;

	events = perfetto__protos__observable_events__unpack(NULL, len, data);
	if (events != NULL && events->clone_trigger_hit != NULL) {
		job.session_id = (uint64_t)
		    events->clone_trigger_hit->tracing_session_id;
		come_true(&job.hit);
	}
	if (events != NULL)
		perfetto__protos__observable_events__free_unpacked(events,
		    NULL);
}

static void
answered_cb(void *arg, bool ok)
{
	come_true(&job.answered);
}

static void
state_cb(void *arg, const uint8_t *state, size_t len)
{
	come_true(&job.answered);
}

/* False: there are no statistics. */
static bool
count_lost(const uint8_t *data, size_t len, uint64_t *lost)
{
	Perfetto__Protos__TraceStats *stats = NULL;

	if (data != NULL)
		stats = perfetto__protos__trace_stats__unpack(NULL, len, data);
	if (stats == NULL)
		return false;
	*lost = traces_lost(stats);
	perfetto__protos__trace_stats__free_unpacked(stats, NULL);
	return true;
}

static void
stats_cb(void *arg, const uint8_t *data, size_t len)
{
	job.result->in_doubt = !count_lost(data, len, &job.result->lost);
	come_true(&job.answered);
}

static const struct consumer_ops consumer_ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.warned = warned_cb,
	.tracing_disabled = disabled_cb,
	.packet = packet_cb,
	.read_done = read_cb,
	.observed = observed_cb,
};

static void
ask(void (*how)(void))
{
	job.answered = false;
	if (job.result->in_short)
		return;
	how();
	must(&job.answered, "an answer to the consumer");
}

static void
flush(void)
{
	consumer_flush(job.consumer, 1000, 0, answered_cb, NULL);
}

static void
query(void)
{
	consumer_query_service_state(job.consumer, false, state_cb, NULL);
}

static void
stats(void)
{
	consumer_get_trace_stats(job.consumer, stats_cb, NULL);
}

static void
disable(void)
{
	consumer_disable_tracing(job.consumer, answered_cb, NULL);
}

static void
free_buffers(void)
{
	consumer_free_buffers(job.consumer, answered_cb, NULL);
}

/* ---- the producer ---- */

static void
changed_cb(void *arg, bool connected, const char *text)
{
	if (connected)
		come_true(&job.ready);
	else
		cut_short(text);
}

static void
put_packet(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	tributary_begin(p, 900); /* for_testing */
	tributary_put_bytes(p, 1, arg, TEXT_BYTES); /* str */
	tributary_end(p);
}

static void
start_cb(struct tributary_instance *of, void *context)
{
	char text[TEXT_BYTES];
	int i;

	memset(text, 'x', sizeof(text));
	memcpy(text + 50, TRACES_SECRET, strlen(TRACES_SECRET));
	for (i = 0; i < JOB_PACKETS; i++)
		(void)tributary_instance_write(of, put_packet, text);
	come_true(&job.started);
}

static const struct tributary_source_ops source_ops = {
	.size = sizeof(source_ops),
	.start = start_cb,
};

static void
add_source(void)
{
	static const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "t",
		.full = TRIBUTARY_FULL_DROP,
	};
	static bool added; /* for ever */

	if (!added)
		assert_non_null(tributary_source_add(&o, &source_ops));
	added = true;
}

static void
pull_trigger(void)
{
	if (!job.result->in_short)
		tributary_trigger(JOB_TRIGGER);
}

/* ---- clones ---- */

static void
viewer_connected_cb(void *arg)
{
	struct viewer *v = arg;

	come_true(&v->connected);
}

static void
viewer_disconnected_cb(void *arg, const char *why)
{
	struct viewer *v = arg;

	v->made = false;
	v->connected = v->asked = true;
	come_true(&v->ended);
}

static void
viewer_disabled_cb(void *arg, const char *error)
{
}

static void
viewer_packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct viewer *v = arg;

	traces_packet(&v->count, data, len);
}

static void
viewer_read_cb(void *arg, const char *error)
{
	struct viewer *v = arg;

	v->made = error == NULL;
	come_true(&v->ended);
}

static void
cloned_cb(void *arg, const struct consumer_cloned *r)
{
	struct viewer *v = arg;

	v->made = r->error == NULL;
	if (r->error != NULL || r->written)
		come_true(&v->ended);
	else
		consumer_read_buffers(v->consumer);
}

static void
viewer_stats_cb(void *arg, const uint8_t *data, size_t len)
{
	struct viewer *v = arg;

	v->lost = 1;
	(void)!count_lost(data, len, &v->lost);
	come_true(&v->asked);
}

static const struct consumer_ops viewer_ops = {
	.connected = viewer_connected_cb,
	.disconnected = viewer_disconnected_cb,
	.warned = warned_cb,
	.tracing_disabled = viewer_disabled_cb,
	.packet = viewer_packet_cb,
	.read_done = viewer_read_cb,
};

/* The first by its number, where the trigger told it; else by name. */
static void
clone(int i)
{
	struct viewer v = { .file = i == 0 ?
		memfd_create("clone", MFD_CLOEXEC) : -1,
		.count.filtered = job_has_filter(job.plan->kind) };
	struct consumer_clone which = { .fd = v.file,
		.name = i == 0 && job.hit ? NULL : JOB_SESSION,
		.session_id = i == 0 && job.hit ? job.session_id : 0 };
	char err[256];

	if (job.result->in_short)
		return;
	v.consumer = consumer_loop_new(job.loop, &(struct consumer_loop_setup){
	    .address = &job.consumer_addr, .ops = &viewer_ops, .arg = &v },
	    err, sizeof(err));
	assert_non_null(v.consumer);
	must(&v.connected, "a viewer is connected");
	if (!v.ended && !job.result->in_short) {
		consumer_clone_session(v.consumer, &which, cloned_cb, &v);
		must(&v.ended, "a clone");
	}
	if (v.made && !job.result->in_short) {
		consumer_get_trace_stats(v.consumer, viewer_stats_cb, &v);
		must(&v.asked, "statistics of a clone");
	}
	consumer_free(v.consumer);
	if (v.file >= 0)
		traces_file(&v.count, v.file);
	close(v.file);
	job.result->clones[i].made = v.made && !job.result->in_short;
	job.result->clones[i].packets = v.count.packets;
	job.result->clones[i].lost = v.count.lost + v.lost;
}

/* ---- the job ---- */

static bool
begin(void)
{
	const struct producer_loop_setup po = { .address = &job.producer_addr,
		.how = &job.how, .name = "p", .machine_name = "device",
		.changed = changed_cb };
	char err[1024] = "";

	assert_int_equal(addr_parse(&job.consumer_addr, job.plan->consumer,
	    err, sizeof(err)), 0);
	job.consumer = consumer_loop_new(job.loop, &(struct consumer_loop_setup){
	    .address = &job.consumer_addr, .ops = &consumer_ops },
	    err, sizeof(err));
	if (job.consumer == NULL)
		fail_msg("%s", err);
	assert_int_equal(addr_parse(&job.producer_addr, job.plan->producer,
	    err, sizeof(err)), 0);
	job.how.tls_dir = job.plan->certs;
	add_source();
	job.producer = producer_loop_new(job.loop, &po);
	assert_non_null(job.producer);
	must(&job.connected, "the consumer is connected");
	must(&job.ready, "the producer is registered");
	return !job.result->in_short;
}

/* A trigger, or what stands for it, and what it is for. */
static void
pulled(void)
{
	int i;

	switch (job.plan->kind) {
	case JOB_PLAIN:
	case JOB_STARTED:
		break;
	case JOB_STOPPED:
		pull_trigger();
		job.result->triggered = may_come(&job.disabled);
		break;
	case JOB_CLONED:
		pull_trigger();
		job.result->triggered = may_come(&job.hit);
		for (i = 0; i < JOB_CLONES; i++)
			clone(i);
		break;
	}
}

static void
trace(void)
{
	size_t len;
	uint8_t *config = job_config(job.plan->kind, &len);

	if (job.plan->kind == JOB_CLONED)
		consumer_observe_events(job.consumer, CLONE_TRIGGER_HIT);
	consumer_enable_tracing(job.consumer, config, len,
	    job.plan->kind == JOB_STOPPED ||
	    job.plan->kind == JOB_CLONED ? -1 : job.file);
	free(config);
	ask(query);
	if (job.plan->kind == JOB_STARTED)
		pull_trigger();
	job.result->started = may_come(&job.started);
	if (job.result->in_short)
		return;
	if (job.plan->kind == JOB_STARTED)
		job.result->triggered = job.result->started;
	ask(query);
	ask(flush);
	ask(stats);
	pulled();
	if (!job.disabled)
		ask(disable);
	must(&job.disabled, "the session's end");
	/* One that is there to be cloned has nothing for its own consumer. */
	if (job.plan->kind == JOB_STOPPED && !job.result->in_short) {
		consumer_read_buffers(job.consumer);
		must(&job.read, "the end of the trace");
	}
	/* What went wrong on the way out is in these. */
	ask(stats);
	ask(free_buffers);
}

void
job_run(const struct job_plan *plan, struct job_result *result)
{
	static const bool never;

	memset(&job, 0, sizeof(job));
	memset(result, 0, sizeof(*result));
	job.plan = plan;
	job.result = result;
	job.count.filtered = job_has_filter(plan->kind);
	job.loop = loop_new();
	assert_non_null(job.loop);
	job.timer = loop_timer_new(job.loop, late_cb, NULL);
	job.file = memfd_create("trace", MFD_CLOEXEC);
	assert_true(job.file >= 0);
	if (begin())
		trace();
	traces_file(&job.count, job.file);
	result->packets = job.count.packets;
	/* Its connection was cut, and it has not heard of it yet. */
	if (job_lost_silently(plan, result))
		(void)wait_for(&never, STEP_MS);
	consumer_free(job.consumer);
	producer_loop_free(job.producer, 1);
	loop_timer_free(job.timer);
	loop_free(job.loop);
	close(job.file);
}

static bool
clones_are_complete(const struct job_result *r)
{
	int i;

	for (i = 0; i < JOB_CLONES; i++)
		if (!r->clones[i].made || r->clones[i].packets != JOB_PACKETS)
			return false;
	return true;
}

bool
job_is_complete(const struct job_plan *plan, const struct job_result *r)
{
	if (r->in_short || r->lost > 0 ||
	    (plan->kind != JOB_PLAIN && !r->triggered))
		return false;
	return plan->kind == JOB_CLONED ? clones_are_complete(r) :
	    r->packets == JOB_PACKETS;
}

bool
job_lost_silently(const struct job_plan *plan, const struct job_result *r)
{
	int i;

	if (r->in_short || r->in_doubt || !r->started)
		return false;
	/* Nothing is read of one that its trigger did not reach; the log. */
	if (plan->kind == JOB_STOPPED && !r->triggered)
		return false;
	for (i = 0; i < JOB_CLONES; i++)
		if (r->clones[i].made && r->clones[i].lost == 0 &&
		    r->clones[i].packets < JOB_PACKETS)
			return true;
	return plan->kind != JOB_CLONED && r->packets < JOB_PACKETS &&
	    r->lost == 0;
}
