#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/session_internal.h"
#include "client/trace/trace_summary.h"
#include "client/tracing/consumer/consumer.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

static void
start_reading(struct record_session *s)
{
	loop_timer_clear(s->stream);
	s->reading = true;
	s->read_bytes = 0;
	consumer_read_buffers(s->consumer);
}

void
record_save(struct record_session *s)
{
	record_set_state(s, SAVING);
	if (!s->reading)
		start_reading(s);
}

void
record_stream_cb(void *arg)
{
	struct record_session *s = arg;

	if (!s->reading && s->state == RECORDING)
		start_reading(s);
}

void
record_packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct record_session *s = arg;
	const struct trace_totals *t = trace_summary_totals(s->with.summary);

	if (s->state == DONE || s->full)
		return;
	/*
	 * Stop, like the service, before the packet that would pass the limit.
	 */
	if (s->max_file_bytes != 0 &&
	    t->bytes + 1 + pb_varint_size(len) + len > s->max_file_bytes) {
		s->full = true;
		if (s->state == RECORDING)
			consumer_disable_tracing(s->consumer, NULL, NULL);
		return;
	}
	if (record_file_packet(s->with.file, data, len) < 0) {
		record_fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	s->read_bytes += len;
	trace_summary_packet(s->with.summary, data, len);
	if (s->state == SAVING)
		loop_timer_set(s->deadline, RECORD_READ_STALL_MS, 0);
	if (!s->paused && record_file_full(s->with.file)) {
		s->paused = true;
		loop_timer_clear(s->deadline);
		consumer_pause(s->consumer);
	}
}

void
record_drained_cb(void *arg)
{
	struct record_session *s = arg;

	if (s->state == DONE)
		return;
	if (!s->failed && record_file_error(s->with.file)[0] != '\0') {
		record_fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	if (s->paused) {
		s->paused = false;
		if (s->state == SAVING)
			loop_timer_set(s->deadline, RECORD_READ_STALL_MS, 0);
		consumer_resume(s->consumer);
	}
	if (s->state == DRAINING)
		record_finish(s);
}

/* Between two reads during the session: writes out the packets of the last. */
static void
read_again_later(struct record_session *s)
{
	bool soon = s->read_bytes >=
	    record_config_read_soon_bytes(s->config);

	if (record_file_flush(s->with.file) < 0) {
		record_fail(s, "%s", record_file_error(s->with.file));
		return;
	}
	loop_timer_set(s->stream, soon ? 0
	    : record_config_read_period_ms(s->config), 0);
}

void
record_read_done_cb(void *arg, const char *error)
{
	struct record_session *s = arg;

	s->reading = false;
	if (s->state == DONE)
		return;
	if (error != NULL) {
		record_fail(s, "%s", error);
	} else if (s->state == SAVING && s->ended) {
		/* The read began before the session ended: read the rest. */
		s->ended = false;
		start_reading(s);
	} else if (s->state == SAVING) {
		record_finish(s);
	} else {
		read_again_later(s);
	}
}
