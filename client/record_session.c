#include "client/record_session.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/consumer.h"
#include "client/record_advice.h"
#include "client/record_config.h"
#include "client/record_file.h"
#include "client/record_live.h"
#include "client/record_notify.h"
#include "client/trace_follow.h"
#include "client/trace_losses.h"
#include "client/trace_summary.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/human.h"
#include "transport/loop.h"

/* A service that does not end a session this long after its time is stuck. */
#define END_GRACE_MS 60000
/* A session that ends so much before its time was ended by somebody. */
#define EARLY_MS 500
/* While the trace is read, something comes at least this often. */
#define READ_STALL_MS 30000
/* Bytes of a growing file that one turn of the loop looks at. */
#define FOLLOW_A_TURN (64ull << 20)

enum travel {
	TRAVEL_READ_AT_END, /* the buffers are read after the session */
	TRAVEL_STREAM,      /* they are read during it, too */
	TRAVEL_SERVICE,     /* the service writes into our file */
	TRAVEL_REMOTE,      /* the service writes into a file of its own */
};

enum state {
	CONNECTING, /* connect timer: the kernel's */
	RECORDING,  /* EnableTracing is out; end timer if there is a duration */
	STOPPING,   /* flush, then disable; end timer */
	SAVING,     /* the last read; stall timer */
	DRAINING,   /* a pipe takes the rest; no timer: its reader may think */
	DONE,       /* the owner was told */
};

struct record_session {
	struct record_session_setup with;
	record_session_fn done;
	void *arg;
	struct consumer *consumer;   /* owned; NULL when DONE */
	struct trace_follow *follow; /* owned; TRAVEL_SERVICE */
	struct loop_timer *deadline; /* end or stall, by state */
	struct loop_timer *tick;     /* the live line */
	struct loop_timer *stream;   /* TRAVEL_STREAM: the next read */
	struct loop_timer *starting; /* record_notify's time-out */
	enum state state;
	enum travel travel;
	uint64_t began_ms;
	uint64_t max_file_bytes; /* TRAVEL_STREAM; 0: no limit */
	uint64_t read_bytes;     /* TRAVEL_STREAM: of the read under way */
	bool reading;            /* ReadBuffers is under way */
	bool ended;              /* the session is over at the service */
	bool full;               /* max_file_bytes was reached */
	bool paused;             /* the pipe is full */
	bool stats_asked;
	unsigned stops; /* calls of record_session_stop() */
	uint64_t buffered; /* bytes that came into the buffers, ever */
	uint64_t stored;   /* packets, the same; 0: not known */
	struct record_numbers numbers;
	struct record_result result;
};

static void tick_cb(void *arg);
static void finish(struct record_session *s);

static void
set_state(struct record_session *s, enum state to)
{
	static const char *const phases[] = { "Connecting", "Recording",
	    "Stopping", "Saving", "Saving", "Done" };

	s->state = to;
	s->numbers.phase = phases[to];
	switch (to) {
	case CONNECTING:
	case RECORDING:
	case STOPPING:
		break;
	case SAVING:
		loop_timer_set(s->deadline, READ_STALL_MS, 0);
		break;
	case DRAINING:
	case DONE:
		loop_timer_clear(s->deadline);
		break;
	}
}

/* Takes in what the service wrote into the file.  -1: it is no trace. */
static int
catch_up(struct record_session *s, uint64_t max, char *err, size_t err_size)
{
	if (s->follow == NULL)
		return 0;
	return trace_follow_read(s->follow, max, err, err_size);
}

/* Tells the owner, once.  The failure is in the result already. */
static void
report(struct record_session *s)
{
	if (s->state == DONE)
		return;
	set_state(s, DONE);
	loop_timer_clear(s->tick);
	loop_timer_clear(s->stream);
	loop_timer_clear(s->starting);
	consumer_free(s->consumer);
	s->consumer = NULL;
	if (s->result.wall_ms == 0 && s->began_ms != 0)
		s->result.wall_ms = loop_now_ms() - s->began_ms;
	s->done(s->arg, &s->result);
}

/* The recording failed: saves what can be saved, then reports. */
static void PRINTF_LIKE(2, 3)
fail(struct record_session *s, const char *fmt, ...)
{
	char ignored[256];
	va_list ap;

	if (s->state == DONE)
		return;
	va_start(ap, fmt);
	vsnprintf(s->result.failure, sizeof(s->result.failure), fmt, ap);
	va_end(ap);
	s->result.whole = false;
	/* Already failing: that the rest fails too changes nothing. */
	if (s->travel == TRAVEL_SERVICE) {
		(void)!catch_up(s, s->stops > 1 ? FOLLOW_A_TURN :
		    UINT64_MAX / 2, ignored, sizeof(ignored));
	} else if (s->with.file != NULL && s->result.began) {
		(void)!record_file_finish(s->with.file);
	}
	report(s);
}

/* Reading the trace. */

static void
start_reading(struct record_session *s)
{
	loop_timer_clear(s->stream);
	s->reading = true;
	s->read_bytes = 0;
	consumer_read_buffers(s->consumer);
}

static void
save(struct record_session *s)
{
	set_state(s, SAVING);
	if (!s->reading)
		start_reading(s);
}

static void
stream_cb(void *arg)
{
	struct record_session *s = arg;

	if (!s->reading && s->state == RECORDING)
		start_reading(s);
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct record_session *s = arg;
	const struct trace_totals *t = trace_summary_totals(s->with.summary);

	if (s->state == DONE || s->full)
		return;
	/* As the service does: stop before the packet that would pass it. */
	if (s->max_file_bytes != 0 && t->bytes + len > s->max_file_bytes) {
		s->full = true;
		if (s->state == RECORDING)
			consumer_disable_tracing(s->consumer, NULL, NULL);
		return;
	}
	if (record_file_packet(s->with.file, data, len) < 0) {
		fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	s->read_bytes += len;
	trace_summary_packet(s->with.summary, data, len);
	if (s->state == SAVING)
		loop_timer_set(s->deadline, READ_STALL_MS, 0);
	if (!s->paused && record_file_full(s->with.file)) {
		s->paused = true;
		loop_timer_clear(s->deadline);
		consumer_pause(s->consumer);
	}
}

static void
drained_cb(void *arg)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (record_file_error(s->with.file)[0] != '\0') {
		fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	if (s->paused) {
		s->paused = false;
		if (s->state == SAVING)
			loop_timer_set(s->deadline, READ_STALL_MS, 0);
		consumer_resume(s->consumer);
	}
	if (s->state == DRAINING)
		finish(s);
}

/* Between two reads of a session: what came is on its way to the disk. */
static void
read_again_later(struct record_session *s)
{
	bool soon = s->read_bytes >=
	    record_config_read_soon_bytes(s->with.config);

	if (record_file_flush(s->with.file) < 0) {
		fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	loop_timer_set(s->stream, soon ? 0
	    : record_config_read_period_ms(s->with.config), 0);
}

static void
read_done_cb(void *arg, const char *error)
{
	struct record_session *s = arg;

	s->reading = false;
	if (s->state == DONE)
		return;
	if (error != NULL) {
		fail(s, "%s", error);
	} else if (s->state == SAVING && s->ended) {
		/* A read that began before the end may lack the end. */
		s->ended = false;
		start_reading(s);
	} else if (s->state == SAVING) {
		finish(s);
	} else {
		read_again_later(s);
	}
}

/* The end. */

static void
finish_service_file(struct record_session *s)
{
	uint64_t loose;
	char err[256];

	if (catch_up(s, UINT64_MAX / 2, err, sizeof(err)) < 0) {
		fail(s, "%s is not a whole trace: %s",
		    record_file_name(s->with.file), err);
		return;
	}
	loose = trace_summary_loose_bytes(s->with.summary);
	if (loose != 0) {
		fail(s, "%s ends within a packet, %" PRIu64 " byte%s too early",
		    record_file_name(s->with.file), loose, human_s(loose));
		return;
	}
	if (record_file_sync(s->with.file) < 0) {
		fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	s->result.whole = true;
	report(s);
}

static void
finish(struct record_session *s)
{
	if (s->travel == TRAVEL_SERVICE) {
		finish_service_file(s);
		return;
	}
	if (s->travel == TRAVEL_REMOTE) {
		s->result.whole = true;
		report(s);
		return;
	}
	switch (record_file_finish(s->with.file)) {
	case 1:
		s->result.whole = true;
		report(s);
		break;
	case 0:
		set_state(s, DRAINING);
		break;
	default:
		fail(s, "%s", record_file_error(s->with.file));
		break;
	}
}

/* The service's state: names for the summary, advice at the beginning. */

static void
advice_cb(void *arg, const char *sentence)
{
	struct record_session *s = arg;

	record_live_say(s->with.live, "%s", sentence);
}

static void
name_producers(struct record_session *s,
    const Perfetto__Protos__TracingServiceState *state)
{
	size_t i;

	for (i = 0; i < state->n_producers; i++) {
		const Perfetto__Protos__TracingServiceState__Producer *p =
		    state->producers[i];

		if (p->name != NULL && p->id != 0)
			trace_summary_name(s->with.summary, p->id,
			    p->machine_id, p->pid, p->name);
		if (p->machine_name != NULL && p->machine_id != 0)
			trace_summary_machine(s->with.summary,
			    p->machine_id, p->machine_name);
	}
}

static void
first_state_cb(void *arg, const Perfetto__Protos__TracingServiceState *state)
{
	struct record_session *s = arg;

	if (state == NULL || s->state == DONE)
		return;
	name_producers(s, state);
	record_advice(record_config_message(s->with.config), state, advice_cb,
	    s);
}

static void
last_state_cb(void *arg, const Perfetto__Protos__TracingServiceState *state)
{
	struct record_session *s = arg;

	if (state != NULL && s->state != DONE)
		name_producers(s, state);
}

/* The buffers are read all the time, in place of what the service writes. */
static int
choose_stream(struct record_session *s)
{
	s->travel = TRAVEL_STREAM;
	s->max_file_bytes =
	    record_config_message(s->with.config)->max_file_size_bytes;
	if (record_config_stream_instead(s->with.config) < 0) {
		fail(s, "out of memory");
		return -1;
	}
	return 0;
}

static void
enable(struct record_session *s)
{
	const uint8_t *config;
	size_t len;

	config = record_config_bytes(s->with.config, &len);
	consumer_enable_tracing(s->consumer, config, len,
	    s->travel == TRAVEL_SERVICE ? record_file_fd(s->with.file) : -1);
	if (record_config_wants_start(s->with.config))
		consumer_start_tracing(s->consumer, NULL, NULL);
	if (s->travel == TRAVEL_STREAM)
		loop_timer_set(s->stream,
		    record_config_read_period_ms(s->with.config), 0);
}

/*
 * A socket that somebody forwards looks like one to the service, but carries
 * no descriptors: the service says that it misses one.
 */
static bool
descriptor_was_lost(const struct record_session *s, const char *error)
{
	return s->travel == TRAVEL_SERVICE && s->state == RECORDING &&
	    strstr(error, "write_into_file") != NULL &&
	    trace_summary_totals(s->with.summary)->bytes == 0;
}

static void
stream_instead(struct record_session *s)
{
	trace_follow_free(s->follow);
	s->follow = NULL;
	if (choose_stream(s) == 0)
		enable(s);
}

/*
 * Nobody here stopped it, and it had time left: a collector that is ended, say.
 * What it recorded is whole, but shorter than was asked for.
 */
static void
tell_early_end(struct record_session *s)
{
	const Perfetto__Protos__TraceConfig *m =
	    record_config_message(s->with.config);
	char had[HUMAN_TEXT_MAX], wanted[HUMAN_TEXT_MAX];

	if (s->stops > 0 || s->full || m->max_file_size_bytes != 0 ||
	    s->result.wall_ms + EARLY_MS >= m->duration_ms)
		return;
	record_live_say(s->with.live, "the collector ended the recording after "
	    "%s of %s", human_ms(had, s->result.wall_ms),
	    human_ms(wanted, m->duration_ms));
}

static void
tracing_disabled_cb(void *arg, const char *error)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (error != NULL && descriptor_was_lost(s, error)) {
		stream_instead(s);
		return;
	}
	s->result.wall_ms = loop_now_ms() - s->began_ms;
	s->numbers.expected_ms = 0;
	if (error != NULL) {
		fail(s, "the collector says: %s", error);
		return;
	}
	tell_early_end(s);
	/* Producers that came during the recording. */
	consumer_query_service_state(s->consumer, false, last_state_cb, s);
	if (s->travel == TRAVEL_SERVICE || s->travel == TRAVEL_REMOTE) {
		finish(s);
		return;
	}
	s->ended = s->reading;
	save(s);
}

/* The beginning. */

static void
observed_cb(void *arg, const Perfetto__Protos__ObservableEvents *events)
{
	struct record_session *s = arg;

	if (!events->all_data_sources_started)
		return;
	loop_timer_clear(s->starting);
	record_notify_started(s->with.notify, RECORD_STATUS_OK);
}

static void
starting_cb(void *arg)
{
	struct record_session *s = arg;

	record_notify_started(s->with.notify, RECORD_STATUS_TIMEOUT);
}

static void
deadline_cb(void *arg)
{
	struct record_session *s = arg;

	if (s->state == SAVING)
		fail(s, "the collector stopped sending the trace: nothing came "
		    "for %d seconds", READ_STALL_MS / 1000);
	else
		fail(s, "the collector did not end the session in time");
}

/* How the trace is going to travel; 0, or -1 after fail(). */
static int
choose_travel(struct record_session *s)
{
	if (!record_config_service_writes(s->with.config)) {
		s->travel = TRAVEL_READ_AT_END;
		return 0;
	}
	if (record_config_output_path(s->with.config) != NULL) {
		s->travel = TRAVEL_REMOTE;
		return 0;
	}
	if (consumer_can_pass_fds(s->consumer) &&
	    record_file_can_be_shared(s->with.file)) {
		s->travel = TRAVEL_SERVICE;
		return 0;
	}
	return choose_stream(s);
}

static int
begin_file(struct record_session *s)
{
	struct record_file *f = s->with.file;

	if (f == NULL)
		return 0;
	if (record_file_begin(f, s->with.loop, drained_cb, s) < 0) {
		fail(s, "%s", record_file_error(f));
		return -1;
	}
	if (s->travel != TRAVEL_SERVICE)
		return 0;
	s->follow = trace_follow_new(record_file_fd(f), s->with.summary);
	if (s->follow == NULL) {
		fail(s, "out of memory");
		return -1;
	}
	return 0;
}

static void
connected_cb(void *arg)
{
	struct record_session *s = arg;
	uint64_t longest = record_config_longest_ms(s->with.config);

	if (choose_travel(s) < 0 || begin_file(s) < 0)
		return;
	s->result.began = true;
	s->began_ms = loop_now_ms();
	s->numbers.expected_ms = longest;
	set_state(s, RECORDING);
	record_notify_connected(s->with.notify);

	consumer_query_service_state(s->consumer, false, first_state_cb, s);
	if (record_notify_wants_start(s->with.notify)) {
		consumer_observe_events(s->consumer,
	    PERFETTO__PROTOS__OBSERVABLE_EVENTS__TYPE__TYPE_ALL_DATA_SOURCES_STARTED);
		loop_timer_set(s->starting, RECORD_NOTIFY_TIMEOUT_MS, 0);
	}
	enable(s);
	if (longest != 0)
		loop_timer_set(s->deadline, longest + END_GRACE_MS +
		    record_config_grace_ms(s->with.config), 0);
	if (record_live_enabled(s->with.live)) {
		loop_timer_set(s->tick, RECORD_LIVE_PERIOD_MS, 1);
		tick_cb(s);
	}
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct record_session *s = arg;

	if (s->state == CONNECTING)
		fail(s, "%s", why); /* it says what to do, too */
	else
		fail(s, "the connection to the collector was lost: %s", why);
}

/* The live line. */

static void
stats_cb(void *arg, const Perfetto__Protos__TraceStats *stats)
{
	struct record_session *s = arg;
	uint64_t bytes = 0, chunks = 0;
	size_t i;

	s->stats_asked = false;
	if (stats == NULL || s->state == DONE)
		return;
	for (i = 0; i < stats->n_buffer_stats; i++) {
		bytes += stats->buffer_stats[i]->bytes_written;
		chunks += stats->buffer_stats[i]->chunks_written;
	}
	s->numbers.producers = stats->producers_connected;
	s->numbers.losses = trace_losses_total(stats);
	s->numbers.chunks = chunks;
	s->stored = stats->tributary_packets;
	s->numbers.packets_known = stats->has_tributary_packets ||
	    s->numbers.packets_known;
	s->buffered = bytes;
}

static void
tick_cb(void *arg)
{
	struct record_session *s = arg;
	const struct trace_totals *t = trace_summary_totals(s->with.summary);
	char ignored[256];

	/* What is wrong with the file is found again, and said, at the end. */
	(void)!catch_up(s, FOLLOW_A_TURN, ignored, sizeof(ignored));
	if (!s->stats_asked && s->state < SAVING) {
		s->stats_asked = true;
		consumer_get_trace_stats(s->consumer, stats_cb, s);
	}
	if (t->packets != 0)
		s->numbers.packets_known = true;
	s->numbers.packets = t->packets > s->stored ? t->packets : s->stored;
	/* Before the first write, and when nothing is written yet. */
	s->numbers.bytes = t->bytes > s->buffered ? t->bytes : s->buffered;
	s->numbers.elapsed_ms = loop_now_ms() - s->began_ms;
	record_live_show(s->with.live, &s->numbers);
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
record_session_stop(struct record_session *s)
{
	if (s->state == DONE)
		return;
	if (++s->stops > 1) {
		fail(s, "interrupted while the trace was being saved");
		return;
	}
	switch (s->state) {
	case CONNECTING:
		fail(s, "interrupted before the recording began");
		break;
	case RECORDING:
		record_live_note(s->with.live, "stopping; once more to give up "
		    "what is not saved yet");
		set_state(s, STOPPING);
		s->numbers.expected_ms = 0;
		loop_timer_set(s->deadline, END_GRACE_MS +
		    record_config_grace_ms(s->with.config), 0);
		consumer_flush(s->consumer, 0, CONSUMER_FLUSH_AT_STOP,
		    flushed_cb, s);
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

static const struct consumer_ops consumer_ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
	.tracing_disabled = tracing_disabled_cb,
	.packet = packet_cb,
	.read_done = read_done_cb,
	.observed = observed_cb,
};

struct record_session *
record_session_new(const struct record_session_setup *setup,
    record_session_fn done, void *arg, char *err, size_t err_size)
{
	struct record_session *s;

	snprintf(err, err_size, "out of memory");
	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->with = *setup;
	s->done = done;
	s->arg = arg;
	s->deadline = loop_timer_new(setup->loop, deadline_cb, s);
	s->tick = loop_timer_new(setup->loop, tick_cb, s);
	s->stream = loop_timer_new(setup->loop, stream_cb, s);
	s->starting = loop_timer_new(setup->loop, starting_cb, s);
	if (s->deadline == NULL || s->tick == NULL || s->stream == NULL ||
	    s->starting == NULL)
		goto fail;
	s->consumer = consumer_new(setup->loop, setup->addr, setup->how,
	    &consumer_ops, s, err, err_size);
	if (s->consumer == NULL)
		goto fail;
	set_state(s, CONNECTING);
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
	loop_timer_free(s->deadline);
	loop_timer_free(s->tick);
	loop_timer_free(s->stream);
	loop_timer_free(s->starting);
	free(s);
}
