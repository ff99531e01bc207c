#include <string.h>

#include "client/record/advice.h"
#include "client/record/config.h"
#include "client/record/notify.h"
#include "client/record/session_internal.h"
#include "client/record/session_snapshots.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/loop/loop.h"

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

/* Whether the collector cuts the session, if that is asked for. */
static bool
may_cut(const struct record_session *s,
    const Perfetto__Protos__TracingServiceState *state)
{
	return s->config == NULL || !record_config_wants_cuts(s->config) ||
	    (state->tracing_service_version != NULL &&
	    strncmp(state->tracing_service_version, "Tributary", 9) == 0);
}

static void
take_state(struct record_session *s, const uint8_t *data, size_t len,
    bool advise)
{
	Perfetto__Protos__TracingServiceState *state;

	if (data == NULL || s->state == DONE)
		return;
	state = perfetto__protos__tracing_service_state__unpack(NULL, len,
	    data);
	if (state == NULL)
		return;
	name_producers(s, state);
	if (advise && !may_cut(s, state)) {
		perfetto__protos__tracing_service_state__free_unpacked(state,
		    NULL);
		record_fail(s, "the collector at this address is none of "
		    "Tributary's and cuts no session: leave out --rotate-every "
		    "and --rotate-size (tributary_segments)");
		return;
	}
	if (advise)
		record_advice(record_config_message(s->config), state,
		    advice_cb, s);
	perfetto__protos__tracing_service_state__free_unpacked(state, NULL);
}

static void
first_state_cb(void *arg, const uint8_t *data, size_t len)
{
	take_state(arg, data, len, true);
}

static void
later_state_cb(void *arg, const uint8_t *data, size_t len)
{
	take_state(arg, data, len, false);
}

void
record_query_state(struct record_session *s, bool advise)
{
	consumer_query_service_state(s->consumer, false,
	    advise ? first_state_cb : later_state_cb, s);
}

/* Events while a session records. */

uint32_t
record_observes(const struct record_session *s)
{
	uint32_t mask = 0;

	if (record_notify_wants_start(s->with.notify))
		mask |= PERFETTO__PROTOS__OBSERVABLE_EVENTS__TYPE__TYPE_ALL_DATA_SOURCES_STARTED;
	if (s->with.snapshots != NULL)
		mask |= PERFETTO__PROTOS__OBSERVABLE_EVENTS__TYPE__TYPE_CLONE_TRIGGER_HIT;
	return mask;
}

static void
take_events(struct record_session *s,
    const Perfetto__Protos__ObservableEvents *events)
{
	if (events->all_data_sources_started) {
		loop_timer_clear(s->starting);
		record_notify_started(s->with.notify, RECORD_STATUS_OK);
	}
	if (events->clone_trigger_hit != NULL && s->with.snapshots != NULL)
		record_snapshots_take(s->with.snapshots,
		    events->clone_trigger_hit);
}

void
record_observed_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__ObservableEvents *events;
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	events = perfetto__protos__observable_events__unpack(NULL, len, data);
	if (events == NULL)
		return;
	take_events(s, events);
	perfetto__protos__observable_events__free_unpacked(events, NULL);
}

void
record_starting_cb(void *arg)
{
	struct record_session *s = arg;

	record_notify_started(s->with.notify, RECORD_STATUS_TIMEOUT);
}

/* The live line. */

static void
take_stats(struct record_session *s, const Perfetto__Protos__TraceStats *stats)
{
	uint64_t bytes = 0, chunks = 0;
	size_t i;

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
stats_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TraceStats *stats;
	struct record_session *s = arg;

	s->stats_asked = false;
	if (data == NULL || s->state == DONE)
		return;
	stats = perfetto__protos__trace_stats__unpack(NULL, len, data);
	if (stats == NULL)
		return;
	take_stats(s, stats);
	perfetto__protos__trace_stats__free_unpacked(stats, NULL);
}

const struct record_numbers *
record_session_numbers(struct record_session *s)
{
	const struct trace_totals *t = trace_summary_totals(s->with.summary);
	char ignored[256];

	/* Errors of the file recur at the end and are reported there. */
	(void)!record_catch_up(s, RECORD_FOLLOW_A_TURN, ignored, sizeof(ignored));
	if (!s->stats_asked && s->state < SAVING && s->consumer != NULL) {
		s->stats_asked = true;
		consumer_get_trace_stats(s->consumer, stats_cb, s);
	}
	if (t->packets != 0)
		s->numbers.packets_known = true;
	s->numbers.packets = t->packets > s->stored ? t->packets : s->stored;
	/* Bytes in the buffers count until the file has more. */
	s->numbers.bytes = t->bytes > s->buffered ? t->bytes : s->buffered;
	if (s->began_ms != 0 && s->state != DONE)
		s->numbers.elapsed_ms = loop_now_ms() - s->began_ms;
	return &s->numbers;
}

void
record_tick_cb(void *arg)
{
	struct record_session *s = arg;

	record_live_show(s->with.live, record_session_numbers(s));
}
