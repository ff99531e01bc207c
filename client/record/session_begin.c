#include <string.h>

#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/notify.h"
#include "client/record/segments.h"
#include "client/record/session_internal.h"
#include "client/record/size_cuts.h"
#include "client/trace/trace_follow.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/trace_config.pb-c.h"
#include "transport/loop/loop.h"

#define BARS_TRIGGER "STOP_TRACING and CLONE_SNAPSHOT triggers do not go with " \
	"write_into_file: leave one of them out of the config"

/* Lets this program read the buffers instead of the service write the file. */
static int
choose_stream(struct record_session *s)
{
	s->travel = TRAVEL_STREAM;
	s->max_file_bytes =
	    record_config_message(s->config)->max_file_size_bytes;
	if (record_config_stream_instead(s->config) < 0) {
		record_fail(s, "out of memory");
		return -1;
	}
	return 0;
}

/* As choose_stream(), for segments, which this program splits. */
static int
choose_segments(struct record_session *s)
{
	if (record_config_file_bars_trigger(s->config)) {
		record_fail(s, BARS_TRIGGER);
		return -1;
	}
	if (record_config_stream_segments(s->config) == 0)
		return choose_stream(s);
	record_fail(s, "out of memory");
	return -1;
}

/* Chooses how the trace travels; 0, or -1 after record_fail(). */
static int
choose_travel(struct record_session *s)
{
	if (s->with.file != NULL && record_file_segments(s->with.file) != NULL)
		return choose_segments(s);
	if (!record_config_service_writes(s->config)) {
		s->travel = TRAVEL_READ_AT_END;
		return 0;
	}
	if (record_config_file_bars_trigger(s->config)) {
		record_fail(s, BARS_TRIGGER);
		return -1;
	}
	if (record_config_output_path(s->config) != NULL) {
		s->travel = TRAVEL_REMOTE;
		return 0;
	}
	if (consumer_can_pass_fds(s->consumer) &&
	    record_file_can_be_shared(s->with.file)) {
		s->travel = TRAVEL_SERVICE;
		return 0;
	}
	if (s->with.kind == RECORD_DETACH) {
		record_fail(s, "no program would write the trace after "
		    "--detach: the file cannot be handed to this collector; "
		    "give the config an output_path, a file on its machine");
		return -1;
	}
	return choose_stream(s);
}

static void
segment_full_cb(void *arg, uint32_t number)
{
	struct record_session *s = arg;

	if (s->with.size_cuts != NULL && s->state == RECORDING)
		size_cuts_ask(s->with.size_cuts, number);
}

static const struct record_segments_ops segments_ops = {
	.idle = record_drained_cb,
	.full = segment_full_cb,
};

int
record_begin_file(struct record_session *s)
{
	struct record_file *f = s->with.file;

	if (f == NULL)
		return 0;
	if (record_file_segments(f) != NULL) {
		if (record_file_begin_segments(f, s->with.loop, s->with.live,
		    &segments_ops, s) == 0)
			return 0;
		record_fail(s, "%s", record_file_error(f));
		return -1;
	}
	if (record_file_begin(f, s->with.loop, record_drained_cb, s) < 0) {
		record_fail(s, "%s", record_file_error(f));
		return -1;
	}
	if (s->travel != TRAVEL_SERVICE)
		return 0;
	s->follow = trace_follow_new(record_file_fd(f), s->with.summary);
	if (s->follow == NULL) {
		record_fail(s, "out of memory");
		return -1;
	}
	return 0;
}

void
record_session_start(struct record_session *s)
{
	if (s->consumer != NULL && record_config_wants_start(s->config))
		consumer_start_tracing(s->consumer, NULL, NULL);
}

/* Answers come in order: this one after the collector took the config. */
static void
armed_cb(void *arg, const uint8_t *data, size_t len)
{
	struct record_session *s = arg;

	if (s->state == RECORDING && data != NULL)
		s->with.armed(s->arg);
}

static void
enable(struct record_session *s)
{
	const uint8_t *config;
	size_t len;

	config = record_config_bytes(s->config, &len);
	consumer_enable_tracing(s->consumer, config, len,
	    s->travel == TRAVEL_SERVICE ? record_file_fd(s->with.file) : -1);
	if (s->with.armed != NULL)
		consumer_get_trace_stats(s->consumer, armed_cb, s);
	else
		record_session_start(s);
	if (s->travel == TRAVEL_STREAM)
		loop_timer_set(s->stream,
		    record_config_read_period_ms(s->config), 0);
}

/*
 * A forwarded UNIX socket, as of ssh or `tributary forward`, looks like one
 * that passes descriptors and does not: the service then complains of
 * write_into_file without a file.
 */
bool
record_descriptor_was_lost(const struct record_session *s, const char *error)
{
	return s->travel == TRAVEL_SERVICE && s->with.kind == RECORD_START &&
	    s->state == RECORDING &&
	    strstr(error, "write_into_file") != NULL &&
	    trace_summary_totals(s->with.summary)->bytes == 0;
}

void
record_stream_instead(struct record_session *s)
{
	trace_follow_free(s->follow);
	s->follow = NULL;
	if (choose_stream(s) == 0)
		enable(s);
}

/* The session, started or attached to, is recorded from now on. */
static void
go_on_recording(struct record_session *s)
{
	uint64_t longest = record_config_longest_ms(s->config);
	uint64_t grace = s->with.end_grace_ms != 0 ? s->with.end_grace_ms :
	    RECORD_END_GRACE_MS;

	s->numbers.expected_ms = longest;
	record_set_state(s, RECORDING);
	if (longest != 0)
		loop_timer_set(s->deadline, longest + grace +
		    record_config_grace_ms(s->config), 0);
	if (!s->with.no_line && record_live_enabled(s->with.live)) {
		loop_timer_set(s->tick, RECORD_LIVE_PERIOD_MS, 1);
		record_tick_cb(s);
	}
}

/* RECORD_START and RECORD_DETACH. */

static void
detached_cb(void *arg, bool ok)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (!ok) {
		record_fail(s, "the collector did not detach the session");
		return;
	}
	s->result.whole = true;
	record_report(s);
}

static void
start_session(struct record_session *s)
{
	uint32_t mask = record_observes(s);

	if (choose_travel(s) < 0)
		return;
	/* Snapshots have files of their own. */
	if (s->with.snapshots == NULL && record_begin_file(s) < 0)
		return;
	s->result.began = true;
	record_query_state(s, true);
	if (mask != 0)
		consumer_observe_events(s->consumer, mask);
	if (record_notify_wants_start(s->with.notify))
		loop_timer_set(s->starting, RECORD_NOTIFY_TIMEOUT_MS, 0);
	if (s->with.kind == RECORD_START) {
		record_set_state(s, RECORDING);
		enable(s);
		go_on_recording(s);
		return;
	}
	record_set_state(s, ASKING);
	loop_timer_set(s->deadline, RECORD_ASK_MS, 0);
	enable(s);
	consumer_detach(s->consumer, s->with.key, detached_cb, s);
}

/* RECORD_ATTACH. */

/*
 * The session was detached again: kept attached, it would end with this
 * connection, and its trace is in the buffers only.
 */
static void
redetached_cb(void *arg, bool ok)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	record_fail(s, "the session \"%s\" keeps its trace in its buffers, and "
	    "--attach has no file for it: `tributary snapshot` saves it%s",
	    s->with.key, ok ? "; it is detached again" : "");
}

static void
attached_cb(void *arg, const uint8_t *config, size_t len)
{
	struct record_session *s = arg;
	char err[256];

	if (s->state == DONE)
		return;
	if (config == NULL) {
		s->result.not_detached = true;
		record_fail(s, "there is no detached session \"%s\" of yours",
		    s->with.key);
		return;
	}
	s->attached = record_config_decode(config, len, err, sizeof(err));
	if (s->attached == NULL) {
		record_fail(s, "the config of the session makes no sense: %s",
		    err);
		return;
	}
	s->config = s->attached;
	s->travel = TRAVEL_REMOTE;
	if (!record_config_service_writes(s->config)) {
		consumer_detach(s->consumer, s->with.key, redetached_cb, s);
		return;
	}
	s->result.began = true;
	go_on_recording(s);
	consumer_watch_tracing(s->consumer);
	if (s->with.stop_attached)
		record_end_session(s);
}

static void
attach(struct record_session *s)
{
	record_set_state(s, ASKING);
	loop_timer_set(s->deadline, RECORD_ASK_MS, 0);
	consumer_attach(s->consumer, s->with.key, attached_cb, s);
}

/* RECORD_CLONE. */

static void
cloned_cb(void *arg, const struct consumer_cloned *r)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (r->error != NULL) {
		record_fail(s, "the collector says: %s", r->error);
		return;
	}
	s->result.wall_ms = loop_now_ms() - s->began_ms;
	if (r->written) {
		s->travel = TRAVEL_SERVICE;
		record_set_state(s, SAVING);
		record_finish(s);
		return;
	}
	/* The service wrote nothing into the file: this program does. */
	trace_follow_free(s->follow);
	s->follow = NULL;
	s->travel = TRAVEL_READ_AT_END;
	record_save(s);
}

static void
clone(struct record_session *s)
{
	struct consumer_clone which = *s->with.clone;
	bool share = consumer_can_pass_fds(s->consumer) &&
	    record_file_can_be_shared(s->with.file);

	s->travel = share ? TRAVEL_SERVICE : TRAVEL_READ_AT_END;
	if (record_begin_file(s) < 0)
		return;
	s->result.began = true;
	record_set_state(s, ASKING);
	loop_timer_set(s->deadline, RECORD_CLONE_MS, 0);
	record_query_state(s, false);
	which.fd = share ? record_file_fd(s->with.file) : -1;
	consumer_clone_session(s->consumer, &which, cloned_cb, s);
}

void
record_connected_cb(void *arg)
{
	struct record_session *s = arg;

	s->began_ms = loop_now_ms();
	if (s->with.notify != NULL)
		record_notify_connected(s->with.notify);
	switch (s->with.kind) {
	case RECORD_START:
	case RECORD_DETACH:
		start_session(s);
		break;
	case RECORD_ATTACH:
		attach(s);
		break;
	case RECORD_CLONE:
		clone(s);
		break;
	}
}
