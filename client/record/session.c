#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/library/consumer_loop.h"
#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/segments.h"
#include "client/record/session_internal.h"
#include "client/record/session_snapshots.h"
#include "client/trace/trace_follow.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/config_support.h"
#include "protos/trace_config.pb-c.h"
#include "protos/utf8.h"
#include "transport/base/human_numbers.h"
#include "transport/loop/loop.h"

/* A session that ends so much before its time did not end by itself. */
#define EARLY_MS 500

static const char *
phase_of(const struct record_session *s, enum record_state state)
{
	switch (state) {
	case DELAYED:
		return "Waiting";
	case CONNECTING:
		return "Connecting";
	case ASKING:
		return s->with.kind == RECORD_CLONE ? "Copying" : "Asking";
	case RECORDING:
		return "Recording";
	case STOPPING:
		return "Stopping";
	case SAVING:
	case DRAINING:
		return "Saving";
	case DONE:
		break;
	}
	return "Done";
}

void
record_set_state(struct record_session *s, enum record_state to)
{
	s->state = to;
	s->numbers.phase = phase_of(s, to);
	switch (to) {
	case DELAYED:
	case ASKING:
	case STOPPING:
		break; /* its callers set the deadline */
	case SAVING:
		loop_timer_set(s->deadline, RECORD_READ_STALL_MS, 0);
		break;
	case CONNECTING:
	case RECORDING:
	case DRAINING:
	case DONE:
		loop_timer_clear(s->deadline);
		break;
	}
}

int
record_catch_up(struct record_session *s, uint64_t max, char *err,
    size_t err_size)
{
	if (s->follow == NULL)
		return 0;
	return trace_follow_read(s->follow, max, err, err_size);
}

void
record_report(struct record_session *s)
{
	if (s->state == DONE)
		return;
	record_set_state(s, DONE);
	loop_timer_clear(s->tick);
	loop_timer_clear(s->stream);
	loop_timer_clear(s->starting);
	consumer_free(s->consumer);
	s->consumer = NULL;
	if (s->result.wall_ms == 0 && s->began_ms != 0)
		s->result.wall_ms = loop_now_ms() - s->began_ms;
	s->done(s->arg, &s->result);
}

static unsigned
commands_left(const struct record_session *s)
{
	const struct record_segments *segments = s->with.file == NULL ? NULL :
	    record_file_segments(s->with.file);

	return segments == NULL ? 0 : record_segments_commands(segments);
}

/* Waits for the commands of segments that are whole, also after a failure. */
static void
wait_for_commands(struct record_session *s)
{
	unsigned n = commands_left(s);
	char text[120];

	record_set_state(s, DRAINING);
	loop_timer_clear(s->stream);
	loop_timer_clear(s->starting);
	consumer_free(s->consumer); /* it has nothing more to say */
	s->consumer = NULL;
	snprintf(text, sizeof(text), "waiting for the command of --on-segment, "
	    "for %u segment%s; interrupt to end it", n, human_s(n));
	record_live_note(s->with.live, text);
}

void
record_fail(struct record_session *s, const char *fmt, ...)
{
	char ignored[256];
	va_list ap;

	if (s->state == DONE || s->failed)
		return;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(s->result.failure, sizeof(s->result.failure), fmt, ap);
	va_end(ap);
	s->result.whole = false;
	/* The first failure is reported; further ones are ignored. */
	if (s->travel == TRAVEL_SERVICE) {
		(void)!record_catch_up(s, s->stops > 1 ? RECORD_FOLLOW_A_TURN :
		    UINT64_MAX / 2, ignored, sizeof(ignored));
	} else if (s->with.file != NULL && s->result.began) {
		(void)!record_file_finish(s->with.file);
	}
	if (commands_left(s) > 0 && s->stops > 1)
		record_segments_give_up(record_file_segments(s->with.file));
	if (commands_left(s) > 0)
		wait_for_commands(s);
	else
		record_report(s);
}

/* The end. */

static void
finish_service_file(struct record_session *s)
{
	uint64_t loose;
	char err[256];

	if (record_catch_up(s, UINT64_MAX / 2, err, sizeof(err)) < 0) {
		record_fail(s, "%s is not a whole trace: %s",
		    record_file_name(s->with.file), err);
		return;
	}
	loose = trace_summary_loose_bytes(s->with.summary);
	if (loose != 0) {
		record_fail(s, "%s ends within a packet, %" PRIu64
		    " byte%s too early", record_file_name(s->with.file), loose,
		    human_s(loose));
		return;
	}
	if (record_file_sync(s->with.file) < 0) {
		record_fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	s->result.whole = true;
	record_report(s);
}

void
record_finish(struct record_session *s)
{
	if (s->failed) {
		record_report(s);
		return;
	}
	if (s->travel == TRAVEL_SERVICE) {
		finish_service_file(s);
		return;
	}
	if (s->travel == TRAVEL_REMOTE) {
		s->result.whole = true;
		record_report(s);
		return;
	}
	switch (record_file_finish(s->with.file)) {
	case 1:
		s->result.whole = true;
		record_report(s);
		break;
	case 0:
		if (commands_left(s) > 0)
			wait_for_commands(s);
		else
			record_set_state(s, DRAINING);
		break;
	default:
		record_fail(s, "%s", record_file_error(s->with.file));
		break;
	}
}

static void
snapshots_idle_cb(void *arg)
{
	struct record_session *s = arg;

	if (s->state != SAVING)
		return;
	if (record_snapshots_failed(s->with.snapshots) > 0) {
		record_fail(s, "not every snapshot could be saved");
		return;
	}
	s->result.whole = true;
	record_report(s);
}

/*
 * The session is over, but its snapshots may still be under way.  Where no
 * trigger came and the config allows a trace of the session's own, the buffers
 * are read.
 */
static void
finish_snapshots(struct record_session *s)
{
	struct record_snapshots *all = s->with.snapshots;

	if (record_snapshots_taken(all) == 0 &&
	    !record_config_only_snapshots(s->config)) {
		if (record_begin_file(s) == 0)
			record_save(s);
		return;
	}
	record_set_state(s, SAVING);
	loop_timer_clear(s->deadline); /* each snapshot has its own */
	record_snapshots_when_idle(all, snapshots_idle_cb, s);
}

/*
 * Says that the session ended before its duration_ms without a stop from here,
 * as when the collector is shut down: the trace is whole, but shorter than was
 * asked for.
 */
static void
tell_early_end(struct record_session *s)
{
	const Perfetto__Protos__TraceConfig *m =
	    record_config_message(s->config);
	char had[HUMAN_TEXT_MAX], wanted[HUMAN_TEXT_MAX];

	if (s->with.kind != RECORD_START || s->stops > 0 || s->full ||
	    m->max_file_size_bytes != 0 ||
	    s->result.wall_ms + EARLY_MS >= m->duration_ms)
		return;
	record_live_say(s->with.live, "the collector ended the recording after "
	    "%s of %s", human_ms(had, s->result.wall_ms),
	    human_ms(wanted, m->duration_ms));
}

struct said {
	const char *sentence;
	bool before;
};

static void
said_cb(void *arg, const char *path, const char *text)
{
	struct said *said = arg;

	if (strcmp(text, said->sentence) == 0)
		said->before = true;
}

/*
 * Says the collector's warning, unless load_config() in run.c has said the same
 * sentence before the start.
 */
static void
warned_cb(void *arg, const char *sentence)
{
	struct record_session *s = arg;
	struct said said = { .sentence = sentence };
	char text[512];
	const uint8_t *config;
	size_t len;

	config = record_config_bytes(s->config, &len);
	config_support_check(config, len, said_cb, &said);
	if (!said.before)
		record_live_say(s->with.live, "the collector warns: %s",
		    utf8_escape(text, sizeof(text), sentence,
		    strlen(sentence), ""));
}

static void
tracing_disabled_cb(void *arg, const char *error)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (error != NULL && record_descriptor_was_lost(s, error)) {
		record_stream_instead(s);
		return;
	}
	s->result.wall_ms = loop_now_ms() - s->began_ms;
	s->numbers.expected_ms = 0;
	if (error != NULL) {
		record_fail(s, "the collector says: %s", error);
		return;
	}
	if (s->state == ASKING)
		return; /* the reply to Detach follows and decides */
	tell_early_end(s);
	/* Names of producers that connected during the recording. */
	record_query_state(s, false);
	if (s->with.snapshots != NULL) {
		finish_snapshots(s);
		return;
	}
	if (s->travel == TRAVEL_SERVICE || s->travel == TRAVEL_REMOTE) {
		record_finish(s);
		return;
	}
	s->ended = s->reading;
	record_save(s);
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct record_session *s = arg;

	if (s->state == CONNECTING)
		record_fail(s, "%s", why); /* with the remedy in it */
	else
		record_fail(s, "the connection to the collector was lost: %s",
		    why);
}

/* Stopping. */

static void
flushed_cb(void *arg, bool ok)
{
	struct record_session *s = arg;

	if (s->state != STOPPING)
		return;
	if (!ok)
		record_live_say(s->with.live, "not all producers handed over "
		    "their newest data in time");
	consumer_disable_tracing(s->consumer, NULL, NULL);
}

void
record_end_session(struct record_session *s)
{
	record_set_state(s, STOPPING);
	s->numbers.expected_ms = 0;
	loop_timer_set(s->deadline, RECORD_END_GRACE_MS +
	    record_config_grace_ms(s->config), 0);
	consumer_flush(s->consumer, 0, CONSUMER_FLUSH_AT_STOP, flushed_cb, s);
}

void
record_session_stop(struct record_session *s)
{
	if (s->state == DONE)
		return;
	s->stops++;
	if (s->state == DRAINING && commands_left(s) > 0) {
		/* Every segment is whole, or as whole as it gets. */
		record_segments_give_up(record_file_segments(s->with.file));
		record_finish(s);
		return;
	}
	if (s->stops > 1) {
		record_fail(s, "interrupted while the trace was being saved");
		return;
	}
	switch (s->state) {
	case DELAYED:
	case CONNECTING:
	case ASKING:
		record_fail(s, "interrupted before the recording began");
		break;
	case RECORDING:
		record_live_note(s->with.live, "stopping; once more to give up "
		    "the unsaved rest");
		record_end_session(s);
		break;
	case STOPPING:
	case SAVING:
	case DRAINING:
		record_live_note(s->with.live, "the trace is being saved; once "
		    "more to give it up");
		break;
	case DONE:
		break;
	}
}

/* The beginning. */

static const struct consumer_ops consumer_ops = {
	.connected = record_connected_cb,
	.disconnected = disconnected_cb,
	.warned = warned_cb,
	.tracing_disabled = tracing_disabled_cb,
	.packet = record_packet_cb,
	.read_done = record_read_done_cb,
	.observed = record_observed_cb,
};

static int
connect_to_collector(struct record_session *s, char *err, size_t err_size)
{
	s->consumer = consumer_loop_new(s->with.loop, &(struct consumer_loop_setup){
	    .address = s->with.addr, .how = s->with.how, .ops = &consumer_ops,
	    .arg = s }, err, err_size);
	if (s->consumer == NULL)
		return -1;
	record_set_state(s, CONNECTING);
	return 0;
}

static void
deadline_cb(void *arg)
{
	struct record_session *s = arg;
	char err[512];

	switch (s->state) {
	case DELAYED:
		if (connect_to_collector(s, err, sizeof(err)) < 0)
			record_fail(s, "%s", err);
		break;
	case ASKING:
		record_fail(s, "the collector does not answer");
		break;
	case SAVING:
		record_fail(s, "the collector stopped sending the trace: "
		    "nothing came for %d seconds",
		    RECORD_READ_STALL_MS / 1000);
		break;
	case RECORDING:
		/*
		 * `tributary start` may have started a session that waited for
		 * a trigger: its trigger time-out does not end it any more, and
		 * its data must not be lost.
		 */
		record_live_say(s->with.live, "the collector did not end the "
		    "session in time: it is ended now");
		record_end_session(s);
		break;
	case STOPPING:
		record_fail(s, "the collector did not end the session in time");
		break;
	case CONNECTING:
	case DRAINING:
	case DONE:
		break;
	}
}

struct record_session *
record_session_new(const struct record_session_setup *setup,
    record_session_fn done, void *arg, char *err, size_t err_size)
{
	struct record_session *s;

	snprintf(err, err_size, "out of memory");
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->with = *setup;
	s->config = setup->config;
	s->done = done;
	s->arg = arg;
	s->deadline = loop_timer_new(setup->loop, deadline_cb, s);
	s->tick = loop_timer_new(setup->loop, record_tick_cb, s);
	s->stream = loop_timer_new(setup->loop, record_stream_cb, s);
	s->starting = loop_timer_new(setup->loop, record_starting_cb, s);
	if (s->deadline == NULL || s->tick == NULL || s->stream == NULL ||
	    s->starting == NULL)
		goto fail;
	if (setup->delay_ms != 0) {
		record_set_state(s, DELAYED);
		loop_timer_set(s->deadline, setup->delay_ms, 0);
		return s;
	}
	if (connect_to_collector(s, err, err_size) < 0)
		goto fail;
	return s;

fail:
	record_session_free(s);
	return NULL;
}

void
record_session_free(struct record_session *s)
{
	if (s == NULL)
		return;
	consumer_free(s->consumer);
	trace_follow_free(s->follow);
	record_config_free(s->attached);
	loop_timer_free(s->deadline);
	loop_timer_free(s->tick);
	loop_timer_free(s->stream);
	loop_timer_free(s->starting);
	free(s);
}
