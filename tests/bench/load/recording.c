#include "tests/bench/load/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/library/consumer_loop.h"
#include "client/trace/trace_losses.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/text_file.h"
#include "protos/trace_config_load.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

#define READ_EVERY_MS 250u
#define FLUSH_TIMEOUT_MS 10000u

enum recording_state {
	REC_CONNECTING,
	REC_IDLE,
	REC_RUNNING,
	REC_STOPPING,
	REC_READING, /* ended; the rest is being read */
	REC_ENDED,
};

struct recording {
	struct loop *loop;
	const struct load_options *options;
	struct consumer *consumer; /* whose the session is */
	struct consumer *control;  /* NULL: none */
	enum recording_state state;
	bool control_up;
	int fd;
	FILE *out; /* streaming; else NULL */
	uint8_t *config;
	size_t config_len;
	struct loop_timer *reads, *controls;
	bool reading;
	uint64_t flush_at, query_at; /* us; 0: none is under way */
	uint64_t started_at, stopped_at;
	struct recording_result result;
	void (*changed)(void *arg);
	void *arg;
};

static uint64_t
now_us(void)
{
	return loop_boottime_ns() / 1000;
}

static void
set_state(struct recording *r, enum recording_state state)
{
	r->state = state;
	r->changed(r->arg);
}

/* ---- the config ---- */

static void
make_config(struct recording *r)
{
	const struct load_options *o = r->options;
	size_t item, inner, test;
	struct pb_writer w;

	pb_writer_init(&w);
	item = pb_nest_begin(&w, 1); /* buffers */
	pb_put_uint(&w, 1, o->buffer_kb);
	pb_nest_end(&w, item);
	item = pb_nest_begin(&w, 2); /* data_sources */
	inner = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, o->source);
	test = pb_nest_begin(&w, 1001); /* for_testing */
	pb_put_uint(&w, 3, RECORDING_TAG);
	pb_nest_end(&w, test);
	pb_nest_end(&w, inner);
	pb_nest_end(&w, item);
	if (!o->stream) {
		pb_put_uint(&w, 8, 1);   /* write_into_file */
		pb_put_uint(&w, 9, 500); /* file_write_period_ms */
	}
	pb_put_uint(&w, 14, FLUSH_TIMEOUT_MS);
	pb_put_uint(&w, 23, 30000); /* data_source_stop_timeout_ms */
	pb_put_uint(&w, 43, 1);     /* trace_all_machines */
	r->config = w.data;
	r->config_len = w.failed ? 0 : w.len;
}

static int
load_config(struct recording *r, char *err, size_t err_size)
{
	struct trace_config_input in;
	size_t len;
	char *text;
	int rc;

	if (r->options->config == NULL) {
		make_config(r);
		return 0;
	}
	if ((text = text_file_read(r->options->config, &len, err, err_size)) ==
	    NULL)
		return -1;
	in = (struct trace_config_input){ (const uint8_t *)text, len,
	    r->options->config };
	rc = trace_config_load(&in, &r->config, &r->config_len, err, err_size);
	free(text);
	return rc;
}

/* ---- reading (o->stream) ---- */

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct recording *r = arg;
	uint8_t head[11] = { 0x0a };
	size_t n = 1 + pb_encode_varint(head + 1, len);

	if (fwrite(head, n, 1, r->out) != 1 ||
	    (len > 0 && fwrite(data, len, 1, r->out) != 1))
		snprintf(r->result.error, sizeof(r->result.error),
		    "%s: %s", r->options->session, strerror(errno));
}

static void
end_file(struct recording *r)
{
	struct stat st;

	if (r->out != NULL)
		fflush(r->out);
	if (r->fd >= 0 && fstat(r->fd, &st) == 0)
		r->result.file_bytes = (uint64_t)st.st_size;
	set_state(r, REC_ENDED);
}

static void
read_done_cb(void *arg, const char *error)
{
	struct recording *r = arg;

	r->reading = false;
	if (error != NULL)
		snprintf(r->result.error, sizeof(r->result.error), "%s",
		    error);
	if (r->state == REC_READING)
		end_file(r);
}

static void
read_cb(void *arg)
{
	struct recording *r = arg;

	if (r->reading || r->state < REC_RUNNING || r->state > REC_STOPPING)
		return;
	r->reading = true;
	consumer_read_buffers(r->consumer);
}

/* ---- the session ---- */

static void
connected_cb(void *arg)
{
	set_state(arg, REC_IDLE);
}

static void
disconnected_cb(void *arg, const char *why)
{
	struct recording *r = arg;

	if (r->state != REC_ENDED)
		snprintf(r->result.error, sizeof(r->result.error), "%s", why);
	consumer_free(r->consumer);
	r->consumer = NULL;
	if (r->state != REC_ENDED)
		end_file(r);
}

static void
disabled_cb(void *arg, const char *error)
{
	struct recording *r = arg;

	if (error != NULL)
		snprintf(r->result.error, sizeof(r->result.error), "%s",
		    error);
	r->result.stop_ms = r->stopped_at == 0 ? 0 :
	    (double)(now_us() - r->stopped_at) / 1000;
	if (r->out == NULL) {
		end_file(r);
		return;
	}
	r->state = REC_READING;
	if (!r->reading)
		consumer_read_buffers(r->consumer);
	r->reading = true;
}

static void
warned_cb(void *arg, const char *sentence)
{
	fprintf(stderr, "tributary-load: warning: %s\n", sentence);
}

/* ---- the control client ---- */

static void
flushed_cb(void *arg, bool ok)
{
	struct recording *r = arg;

	histogram_add(&r->result.flush_us, now_us() - r->flush_at);
	r->result.flush_failed += !ok;
	r->flush_at = 0;
}

static void
queried_cb(void *arg, const uint8_t *state, size_t len)
{
	struct recording *r = arg;

	if (state != NULL)
		histogram_add(&r->result.query_us, now_us() - r->query_at);
	r->query_at = 0;
}

static void
control_cb(void *arg)
{
	struct recording *r = arg;

	if (r->control_up && r->query_at == 0) {
		r->query_at = now_us();
		consumer_query_service_state(r->control, true, queried_cb, r);
	}
	if (r->state == REC_RUNNING && r->flush_at == 0) {
		r->flush_at = now_us();
		consumer_flush(r->consumer, FLUSH_TIMEOUT_MS, 0, flushed_cb,
		    r);
	}
}

static void
control_connected_cb(void *arg)
{
	struct recording *r = arg;

	r->control_up = true;
}

static void
control_disconnected_cb(void *arg, const char *why)
{
	struct recording *r = arg;

	fprintf(stderr, "tributary-load: the control client: %s\n", why);
	consumer_free(r->control);
	r->control = NULL;
	r->control_up = false;
}

/* ---- life ---- */

static int
connect_all(struct recording *r, char *err, size_t err_size)
{
	static const struct consumer_ops ops = {
		.connected = connected_cb,
		.disconnected = disconnected_cb,
		.warned = warned_cb,
		.tracing_disabled = disabled_cb,
		.packet = packet_cb,
		.read_done = read_done_cb,
	};
	static const struct consumer_ops control_ops = {
		.connected = control_connected_cb,
		.disconnected = control_disconnected_cb,
	};
	struct addr a;

	if (addr_parse(&a, r->options->consumer, err, err_size) != 0)
		return -1;
	if (r->options->session != NULL) {
		r->consumer = consumer_loop_new(r->loop, &(struct consumer_loop_setup){
		    .address = &a, .how = &r->options->how, .ops = &ops,
		    .arg = r }, err, err_size);
		if (r->consumer == NULL)
			return -1;
	}
	if (r->options->control_ms == 0)
		return 0;
	r->control = consumer_loop_new(r->loop, &(struct consumer_loop_setup){
	    .address = &a, .how = &r->options->how, .ops = &control_ops,
	    .arg = r }, err, err_size);
	if (r->control == NULL)
		return -1;
	loop_timer_set(r->controls, r->options->control_ms, 1);
	return 0;
}

static int
open_file(struct recording *r, char *err, size_t err_size)
{
	const char *path = r->options->session;

	if (path == NULL)
		return 0;
	r->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (r->fd >= 0 && r->options->stream)
		r->out = fdopen(r->fd, "w");
	if (r->fd >= 0 && (!r->options->stream || r->out != NULL))
		return 0;
	snprintf(err, err_size, "%s: %s", path, strerror(errno));
	return -1;
}

struct recording *
recording_new(struct loop *l, const struct load_options *o,
    void (*changed)(void *arg), void *arg, char *err, size_t err_size)
{
	struct recording *r = calloc(1, sizeof(*r));

	snprintf(err, err_size, "out of memory");
	if (r == NULL)
		return NULL;
	r->loop = l;
	r->options = o;
	r->fd = -1;
	r->changed = changed;
	r->arg = arg;
	r->reads = loop_timer_new(l, read_cb, r);
	r->controls = loop_timer_new(l, control_cb, r);
	if (r->reads == NULL || r->controls == NULL ||
	    load_config(r, err, err_size) != 0 ||
	    open_file(r, err, err_size) != 0 ||
	    connect_all(r, err, err_size) != 0) {
		recording_free(r);
		return NULL;
	}
	return r;
}

void
recording_free(struct recording *r)
{
	if (r == NULL)
		return;
	consumer_free(r->consumer);
	consumer_free(r->control);
	loop_timer_free(r->reads);
	loop_timer_free(r->controls);
	if (r->out != NULL)
		fclose(r->out);
	else if (r->fd >= 0)
		close(r->fd);
	free(r->config);
	free(r);
}

bool
recording_is_connected(const struct recording *r)
{
	return r->state != REC_CONNECTING;
}

bool
recording_has_ended(const struct recording *r)
{
	return r->state == REC_ENDED;
}

void
recording_start(struct recording *r)
{
	if (r->state != REC_IDLE)
		return;
	r->state = REC_RUNNING;
	r->started_at = now_us();
	consumer_enable_tracing(r->consumer, r->config, r->config_len,
	    r->options->stream ? -1 : r->fd);
	if (r->options->stream)
		loop_timer_set(r->reads, READ_EVERY_MS, 1);
}

void
recording_started(struct recording *r)
{
	r->result.start_ms = (double)(now_us() - r->started_at) / 1000;
}

static void
stats_cb(void *arg, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TraceStats *stats = NULL;
	struct recording *r = arg;
	size_t i;

	if (data != NULL)
		stats = perfetto__protos__trace_stats__unpack(NULL, len, data);
	if (stats != NULL) {
		r->result.has_stats = true;
		r->result.lost = trace_losses_total(stats);
		r->result.invalid_packets = stats->invalid_packets;
		for (i = 0; i < stats->n_buffer_stats; i++) {
			r->result.buffer_bytes +=
			    stats->buffer_stats[i]->bytes_written;
			r->result.chunks_overwritten +=
			    stats->buffer_stats[i]->chunks_overwritten;
			r->result.chunks_discarded +=
			    stats->buffer_stats[i]->chunks_discarded;
		}
		perfetto__protos__trace_stats__free_unpacked(stats, NULL);
	}
	if (r->state == REC_STOPPING) {
		r->stopped_at = now_us();
		consumer_disable_tracing(r->consumer, NULL, NULL);
	}
}

void
recording_stop(struct recording *r)
{
	if (r->state != REC_RUNNING)
		return;
	r->state = REC_STOPPING;
	consumer_get_trace_stats(r->consumer, stats_cb, r);
}

const struct recording_result *
recording_result(const struct recording *r)
{
	return &r->result;
}
