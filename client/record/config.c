#include "client/record/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/command/machine_filter.h"
#include "client/record/additions.h"
#include "client/record/config_from_names.h"
#include "client/record/options.h"
#include "client/record/segment_options.h"
#include "protos/fields.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_config_load.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Defaults of the service where a config leaves these at 0. */
#define DEFAULT_FLUSH_TIMEOUT_MS 5000
#define DEFAULT_STOP_TIMEOUT_MS  5000

/* Bounds of the period of reads; the least is the service's own bound. */
#define READ_PERIOD_LEAST_MS 100u
#define READ_PERIOD_MOST_MS  1000u

struct record_config {
	Perfetto__Protos__TraceConfig *message; /* owned */
	struct pb_writer bytes;
};

/* Replaces bytes without the fields whose number has its bit in drop. */
static int
drop_fields(struct record_config *c, uint64_t drop)
{
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;

	pb_writer_init(&w);
	PB_FOREACH(&f, &r, c->bytes.data, c->bytes.len) {
		if (f.number < 64 && (drop >> f.number & 1) != 0)
			continue;
		pb_put_raw(&w, f.start, (size_t)(r.p - f.start));
	}
	if (w.failed) {
		pb_writer_done(&w);
		return -1;
	}
	pb_writer_done(&c->bytes);
	c->bytes = w;
	return 0;
}

/* Gives a trace without a uuid a random one, as Perfetto's command does. */
static int
put_uuid(struct record_config *c)
{
	uint64_t id[2];

	if (c->message->trace_uuid_msb != 0 || c->message->trace_uuid_lsb != 0)
		return 0;
	if (drop_fields(c,
	    1ull << TraceConfig_trace_uuid_msb |
	    1ull << TraceConfig_trace_uuid_lsb) < 0)
		return -1;
	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		return 0; /* the service makes one */
	pb_put_uint(&c->bytes, TraceConfig_trace_uuid_msb, id[0]);
	pb_put_uint(&c->bytes, TraceConfig_trace_uuid_lsb, id[1]);
	return c->bytes.failed ? -1 : 0;
}

struct record_config *
record_config_decode(const uint8_t *data, size_t len, char *err,
    size_t err_size)
{
	struct record_config *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		goto no_memory;
	pb_writer_init(&c->bytes);
	pb_put_raw(&c->bytes, data, len);
	if (c->bytes.failed)
		goto no_memory;
	c->message = perfetto__protos__trace_config__unpack(NULL, len, data);
	if (c->message == NULL) {
		snprintf(err, err_size, "it is neither a trace config as text "
		    "nor an encoded one");
		goto fail;
	}
	if (put_uuid(c) < 0)
		goto no_memory;
	return c;

no_memory:
	snprintf(err, err_size, "out of memory");
fail:
	record_config_free(c);
	return NULL;
}

void
record_config_free(struct record_config *c)
{
	if (c == NULL)
		return;
	if (c->message != NULL)
		perfetto__protos__trace_config__free_unpacked(c->message, NULL);
	pb_writer_done(&c->bytes);
	free(c);
}

/* All of a file, up to the limit; 0, or -1 with a sentence. */
static int
read_all(const char *path, struct pb_writer *w, char *err, size_t err_size)
{
	static uint8_t piece[64 * 1024];
	const char *name = path;
	int fd = STDIN_FILENO;
	ssize_t n;

	if (strcmp(path, "-") == 0)
		name = "standard input";
	else if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		goto fail;
	while ((n = read(fd, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto fail;
		pb_put_raw(w, piece, (size_t)n);
		if (w->len > TRACE_CONFIG_LOAD_MAX) {
			snprintf(err, err_size, "%s: over %u MiB is no trace "
			    "config", name, TRACE_CONFIG_LOAD_MAX >> 20);
			break;
		}
	}
	if (fd != STDIN_FILENO)
		close(fd);
	if (w->failed)
		snprintf(err, err_size, "out of memory");
	return n == 0 && !w->failed ? 0 : -1;

fail:
	snprintf(err, err_size, "cannot read the config %s: %s", name,
	    strerror(errno));
	if (fd > STDIN_FILENO)
		close(fd);
	return -1;
}

static struct record_config *
load_names(const struct record_options *o, char *err, size_t err_size)
{
	const struct config_from_names names = {
		.names = o->names,
		.n_names = o->n_names,
		.duration_ms = o->duration_ms,
		.buffer_bytes = o->buffer_bytes,
		.max_file_bytes = o->max_file_bytes,
	};
	struct record_config *c = NULL;
	struct pb_writer w;

	pb_writer_init(&w);
	if (config_from_names(&names, &w, err, err_size) == 0)
		c = record_config_decode(w.data, w.len, err, err_size);
	pb_writer_done(&w);
	return c;
}

static struct record_config *
load_file(const char *path, char *err, size_t err_size)
{
	const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
	struct trace_config_input in;
	struct record_config *c = NULL;
	uint8_t *encoded = NULL;
	struct pb_writer w;
	size_t len;

	pb_writer_init(&w);
	if (read_all(path, &w, err, err_size) < 0)
		goto out;
	if (w.len == 0) {
		snprintf(err, err_size, "the trace config %s is empty", name);
		goto out;
	}
	in = (struct trace_config_input){ w.data, w.len, name };
	if (trace_config_load(&in, &encoded, &len, err, err_size) < 0)
		goto out;
	c = record_config_decode(encoded, len, err, err_size);

out:
	free(encoded);
	pb_writer_done(&w);
	return c;
}

/* Takes c over.  NULL with a sentence in err. */
static struct record_config *
choose_machines(struct record_config *c, const struct machine_filter *m,
    char *err, size_t err_size)
{
	struct record_config *chosen = NULL;
	struct pb_writer w;

	if (c == NULL || (m->n_names == 0 && !m->all))
		return c;
	pb_writer_init(&w);
	if (machine_filter_put(m, c->bytes.data, c->bytes.len, &w, err,
	    err_size) == 0)
		chosen = record_config_decode(w.data, w.len, err, err_size);
	pb_writer_done(&w);
	record_config_free(c);
	return chosen;
}

/* Takes c over.  NULL with a sentence in err. */
static struct record_config *
add(struct record_config *c, const struct record_additions *a, char *err,
    size_t err_size)
{
	struct record_config *more = NULL;
	struct pb_writer w;

	if (c == NULL || !record_additions_any(a))
		return c;
	pb_writer_init(&w);
	if (record_additions_put(a, c->bytes.data, c->bytes.len, &w) == 0)
		more = record_config_decode(w.data, w.len, err, err_size);
	else
		snprintf(err, err_size, "the config is damaged");
	pb_writer_done(&w);
	record_config_free(c);
	return more;
}

/* Takes c over.  NULL with a sentence in err. */
static struct record_config *
add_segments(struct record_config *c, const struct segment_options *o,
    char *err, size_t err_size)
{
	struct record_config *more;
	uint64_t random = 0;

	if (c == NULL || (c->message->tributary_segments == NULL &&
	    !segment_options_cut(o)))
		return c;
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	segment_options_put(o, c->message, random, &c->bytes);
	more = record_config_decode(c->bytes.data, c->bytes.len, err,
	    err_size);
	record_config_free(c);
	return more;
}

struct record_config *
record_config_load(const struct record_options *o, char *err, size_t err_size)
{
	struct record_config *c = o->config != NULL ?
	    load_file(o->config, err, err_size) : load_names(o, err, err_size);

	c = choose_machines(c, &o->machines, err, err_size);
	c = add(c, &o->additions, err, err_size);
	return add_segments(c, &o->segments, err, err_size);
}

const Perfetto__Protos__TraceConfig *
record_config_message(const struct record_config *c)
{
	return c->message;
}

const uint8_t *
record_config_bytes(const struct record_config *c, size_t *len)
{
	*len = c->bytes.len;
	return c->bytes.data;
}

bool
record_config_service_writes(const struct record_config *c)
{
	return c->message->write_into_file;
}

const char *
record_config_output_path(const struct record_config *c)
{
	const char *path = c->message->output_path;

	return path != NULL && path[0] != '\0' ? path : NULL;
}

static bool
waits_for_trigger(const struct record_config *c)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    c->message->trigger_config;

	return t != NULL && t->n_triggers > 0;
}

uint64_t
record_config_longest_ms(const struct record_config *c)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    c->message->trigger_config;
	uint64_t delay = 0;
	size_t i;

	if (c->message->duration_ms != 0 || !waits_for_trigger(c))
		return c->message->duration_ms;
	for (i = 0; i < t->n_triggers; i++) {
		if (t->triggers[i]->stop_delay_ms > delay)
			delay = t->triggers[i]->stop_delay_ms;
	}
	return t->trigger_timeout_ms == 0 ? 0 : t->trigger_timeout_ms + delay;
}

uint64_t
record_config_grace_ms(const struct record_config *c)
{
	uint64_t flush = c->message->flush_timeout_ms;
	uint64_t stop = c->message->data_source_stop_timeout_ms;

	return (flush == 0 ? DEFAULT_FLUSH_TIMEOUT_MS : flush) +
	    (stop == 0 ? DEFAULT_STOP_TIMEOUT_MS : stop);
}

bool
record_config_wants_start(const struct record_config *c)
{
	return c->message->deferred_start && !waits_for_trigger(c);
}

bool
record_config_only_snapshots(const struct record_config *c)
{
	const Perfetto__Protos__TraceConfig__TriggerConfig *t =
	    c->message->trigger_config;

	return t != NULL && t->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT;
}

bool
record_config_file_bars_trigger(const struct record_config *c)
{
	return c->message->write_into_file && waits_for_trigger(c) &&
	    c->message->trigger_config->trigger_mode !=
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__START_TRACING;
}

bool
record_config_takes_snapshots(const struct record_config *c)
{
	return record_config_only_snapshots(c) ||
	    (c->message->trigger_config != NULL &&
	    c->message->trigger_config->use_clone_snapshot_if_available);
}

int
record_config_start_delay(const struct record_config *c, uint64_t random,
    uint64_t *ms, char *err, size_t err_size)
{
	const Perfetto__Protos__TraceConfig__CmdTraceStartDelay *d =
	    c->message->cmd_trace_start_delay;

	*ms = 0;
	if (d == NULL || (!d->has_min_delay_ms && !d->has_max_delay_ms))
		return 0;
	if (!d->has_min_delay_ms || !d->has_max_delay_ms)
		return FAILURE(err, err_size, "cmd_trace_start_delay needs "
		    "both min_delay_ms and max_delay_ms");
	if (d->min_delay_ms > d->max_delay_ms)
		return FAILURE(err, err_size, "cmd_trace_start_delay has a "
		    "min_delay_ms above its max_delay_ms");
	*ms = d->min_delay_ms + random %
	    ((uint64_t)d->max_delay_ms - d->min_delay_ms + 1);
	return 0;
}

uint32_t
record_config_read_period_ms(const struct record_config *c)
{
	uint32_t period = c->message->file_write_period_ms;

	if (period == 0 || period > READ_PERIOD_MOST_MS)
		return READ_PERIOD_MOST_MS;
	return period < READ_PERIOD_LEAST_MS ? READ_PERIOD_LEAST_MS : period;
}

uint64_t
record_config_read_soon_bytes(const struct record_config *c)
{
	uint64_t least = UINT64_MAX, size;
	size_t i;

	for (i = 0; i < c->message->n_buffers; i++) {
		size = (uint64_t)c->message->buffers[i]->size_kb * 1024;
		if (size < least)
			least = size;
	}
	return least / 4;
}

int
record_config_stream_instead(struct record_config *c)
{
	return drop_fields(c, 1ull << TraceConfig_write_into_file |
	    1ull << TraceConfig_file_write_period_ms |
	    1ull << TraceConfig_max_file_size_bytes |
	    1ull << TraceConfig_write_flush_mode |
	    1ull << TraceConfig_fflush_post_write);
}

bool
record_config_makes_segments(const struct record_config *c)
{
	return c->message->tributary_segments != NULL &&
	    record_config_output_path(c) == NULL;
}

int
record_config_stream_segments(struct record_config *c)
{
	if (drop_fields(c, 1ull << TraceConfig_compression_type |
	    1ull << TraceConfig_compression) < 0)
		return -1;
	return record_config_stream_instead(c);
}

bool
record_config_wants_cuts(const struct record_config *c)
{
	const Perfetto__Protos__SegmentConfig *s =
	    c->message->tributary_segments;

	return s != NULL && (s->every_ms != 0 || s->max_bytes != 0 ||
	    s->n_at_trigger > 0);
}

struct packet_compression
record_config_compression(const struct record_config *c)
{
	const Perfetto__Protos__TraceConfig__CompressionConfig *new =
	    c->message->compression;
	struct packet_compression how = { .kind = PACKET_PLAIN };

	if (new != NULL && new->zstd != NULL) {
		how.kind = PACKET_ZSTD;
		how.level = new->zstd->level;
	} else if ((new != NULL && new->deflate != NULL) ||
	    c->message->compression_type ==
	    PERFETTO__PROTOS__TRACE_CONFIG__COMPRESSION_TYPE__COMPRESSION_TYPE_DEFLATE) {
		how.kind = PACKET_DEFLATE;
	}
	return how;
}
