#include "client/tracing/local/local_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tracing/session/session_config.h"
#include "protos/fields.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define TIMEOUT_MS        5000u
#define SNAPSHOT_MS       10000u

struct parser {
	struct local_config *c;
	char *why;
	size_t why_len;
};

static bool
fail(const struct parser *p, const char *sentence)
{
	snprintf(p->why, p->why_len, "%s", sentence);
	return false;
}

static bool
fail_number(const struct parser *p, const char *what, uint32_t field)
{
	snprintf(p->why, p->why_len, "The %s has the field %u, which a session "
	    "inside of a program does not know.", what, field);
	return false;
}

static bool
read_buffer(const struct parser *p, const struct pb_field *of)
{
	struct local_buffer_config *b = &p->c->buffers[p->c->n_buffers];
	struct pb_reader r;
	struct pb_field f;

	if (p->c->n_buffers == LOCAL_BUFFERS_MAX)
		return fail(p, "There are too many buffers.");
	PB_FOREACH(&f, &r, of->data, of->len) {
		switch (f.number) {
		case BufferConfig_size_kb:
			b->bytes = f.value * 1024;
			break;
		case BufferConfig_fill_policy:
			b->discard = f.value == BufferConfig_DISCARD;
			break;
		case BufferConfig_transfer_on_clone:
			b->transfer_on_clone = f.value != 0;
			break;
		case BufferConfig_clear_before_clone:
			b->clear_before_clone = f.value != 0;
			break;
		case BufferConfig_name:
			b->name = f.data;
			b->name_len = f.len;
			break;
		case BufferConfig_experimental_mode:
			break;
		default:
			return fail_number(p, "buffer", f.number);
		}
	}
	if (r.bad || b->bytes == 0)
		return fail(p, "A buffer has no size_kb.");
	p->c->n_buffers++;
	return true;
}

/* By its name, when all buffers are known. */
static bool
find_buffer(const struct parser *p, const struct pb_field *name, uint32_t *out)
{
	const struct local_buffer_config *b;
	uint32_t i;

	for (i = 0; i < p->c->n_buffers; i++) {
		b = &p->c->buffers[i];
		if (b->name_len == name->len && name->len > 0 &&
		    memcmp(b->name, name->data, name->len) == 0) {
			*out = i;
			return true;
		}
	}
	return fail(p, "No buffer has the name that a data source's "
	    "target_buffer_name says.");
}

static bool
read_source_config(const struct parser *p, struct local_source_config *s)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, s->config, s->len) {
		if (f.number == DataSourceConfig_name && f.wire == PB_BYTES) {
			s->name = f.data;
			s->name_len = f.len;
		}
		if (f.number == DataSourceConfig_target_buffer)
			s->buffer = f.value < LOCAL_BUFFERS_MAX ?
			    (uint32_t)f.value : LOCAL_BUFFERS_MAX;
		if (f.number == DataSourceConfig_target_buffer_name &&
		    !find_buffer(p, &f, &s->buffer))
			return false;
		if (f.number == DataSourceConfig_buffer_exhausted_policy)
			s->policy = f.value;
	}
	if (r.bad || s->name_len == 0)
		return fail(p, "A data source has no name.");
	if (s->buffer >= p->c->n_buffers)
		return fail(p, "A data source's target_buffer does not exist.");
	return true;
}

static bool
read_source(const struct parser *p, const struct pb_field *of)
{
	struct local_source_config *s = &p->c->sources[p->c->n_sources];
	struct pb_reader r;
	struct pb_field f;

	if (p->c->n_sources == LOCAL_SOURCES_MAX)
		return fail(p, "There are too many data sources.");
	PB_FOREACH(&f, &r, of->data, of->len) {
		if (f.number != TraceConfig_DataSource_config)
			return fail(p, "A data source has a filter of names of "
			    "producers or machines; a session inside of a "
			    "program has one producer.");
		s->config = f.data;
		s->len = f.len;
	}
	if (!read_source_config(p, s))
		return false;
	p->c->n_sources++;
	return true;
}

static bool
read_builtin(const struct parser *p, const struct pb_field *of)
{
	struct local_config *c = p->c;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, of->data, of->len) {
		switch (f.number) {
		case BuiltinDataSource_disable_clock_snapshotting:
			c->no_snapshots = f.value != 0;
			break;
		case BuiltinDataSource_disable_trace_config:
			c->no_config = f.value != 0;
			break;
		case BuiltinDataSource_disable_system_info:
			c->no_system_info = f.value != 0;
			break;
		case BuiltinDataSource_disable_service_events:
			c->no_events = f.value != 0;
			break;
		case BuiltinDataSource_primary_trace_clock:
			c->primary_clock = (uint32_t)f.value;
			break;
		case BuiltinDataSource_snapshot_interval_ms:
			c->snapshot_ms = f.value != 0 ? f.value : SNAPSHOT_MS;
			break;
		default: /* nothing of it is there to be disabled */
			break;
		}
	}
	return true;
}

/* Sizes of the shared memory: there is one producer, whatever its name is. */
static void
read_producer(const struct parser *p, const struct pb_field *of)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, of->data, of->len) {
		if (f.number == ProducerConfig_shm_size_kb)
			p->c->memory_kb = f.value;
		if (f.number == ProducerConfig_page_size_kb)
			p->c->page_kb = f.value;
	}
}

static void
read_incremental(const struct parser *p, const struct pb_field *of)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, of->data, of->len)
		if (f.number == IncrementalStateConfig_clear_period_ms)
			p->c->clear_period_ms = f.value;
}

/* Fields that would change the trace, or what becomes of it. */
static bool
refuse(const struct parser *p, const struct pb_field *f)
{
	if (f->wire != PB_BYTES && f->value == 0)
		return true;
	switch (f->number) {
	case TraceConfig_write_into_file:
	case TraceConfig_output_path:
	case TraceConfig_file_write_period_ms:
	case TraceConfig_max_file_size_bytes:
	case TraceConfig_write_flush_mode:
	case TraceConfig_fflush_post_write:
		return fail(p, "A session inside of a program writes no file by "
		    "itself: leave write_into_file and its options out, and "
		    "call tributary_local_write().");
	case TraceConfig_trigger_config:
		return fail(p, "A session inside of a program knows no "
		    "triggers (trigger_config).");
	case TraceConfig_compression_type:
	case TraceConfig_compression:
		return fail(p, "A session inside of a program does not "
		    "compress its trace (compression_type).");
	case TraceConfig_trace_filter:
		return fail(p, "A session inside of a program has no "
		    "trace_filter.");
	case TraceConfig_session_semaphores:
	case TraceConfig_exclusive_prio:
	case TraceConfig_priority_boost:
		return fail(p, "A session inside of a program is not weighed "
		    "against others: leave session_semaphores, exclusive_prio "
		    "and priority_boost out.");
	case TraceConfig_incident_report_config:
	case TraceConfig_android_report_config:
		return fail(p, "A session inside of a program sends no "
		    "reports.");
	default:
		return fail_number(p, "config", f->number);
	}
}

static bool
read_field(const struct parser *p, const struct pb_field *f)
{
	struct local_config *c = p->c;

	switch (f->number) {
	case TraceConfig_buffers:
		return read_buffer(p, f);
	case TraceConfig_data_sources:
		return true; /* when all buffers are known */
	case TraceConfig_builtin_data_sources:
		return read_builtin(p, f);
	case TraceConfig_producers:
		read_producer(p, f);
		return true;
	case TraceConfig_incremental_state_config:
		read_incremental(p, f);
		return true;
	case TraceConfig_trace_attributes:
		c->has_attributes = true;
		return true;
	case TraceConfig_duration_ms:
		c->duration_ms = f->value;
		return true;
	case TraceConfig_flush_period_ms:
		c->flush_period_ms = f->value;
		return true;
	case TraceConfig_flush_timeout_ms:
		c->flush_timeout_ms = f->value != 0 ? f->value : TIMEOUT_MS;
		return true;
	case TraceConfig_data_source_stop_timeout_ms:
		c->stop_timeout_ms = f->value != 0 ? f->value : TIMEOUT_MS;
		return true;
	/* Fields without a meaning where there is one program. */
	case TraceConfig_prefer_suspend_clock_for_duration:
	case TraceConfig_enable_extra_guardrails:
	case TraceConfig_lockdown_mode:
	case TraceConfig_statsd_metadata:
	case TraceConfig_guardrail_overrides:
	case TraceConfig_deferred_start:
	case TraceConfig_notify_traceur:
	case TraceConfig_bugreport_score:
	case TraceConfig_bugreport_filename:
	case TraceConfig_activate_triggers:
	case TraceConfig_allow_user_build_tracing:
	case TraceConfig_unique_session_name:
	case TraceConfig_statsd_logging:
	case TraceConfig_trace_uuid_msb:
	case TraceConfig_trace_uuid_lsb:
	case TraceConfig_cmd_trace_start_delay:
	case TraceConfig_trace_all_machines:
		return true;
	default:
		return refuse(p, f);
	}
}

static bool
parse(const struct parser *p)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, p->c->bytes, p->c->len)
		if (!read_field(p, &f))
			return false;
	if (r.bad)
		return fail(p, "The config is no TraceConfig.");
	if (p->c->n_buffers == 0)
		return fail(p, "The config has no buffers.");
	PB_FOREACH(&f, &r, p->c->bytes, p->c->len)
		if (f.number == TraceConfig_data_sources &&
		    !read_source(p, &f))
			return false;
	if (p->c->n_sources == 0)
		return fail(p, "The config has no data sources.");
	return true;
}

/* Owns bytes, also on failure. */
static struct local_config *
take(uint8_t *bytes, size_t len, char *why, size_t why_len)
{
	struct parser p = { .why = why, .why_len = why_len };

	if ((p.c = calloc(1, sizeof(*p.c))) == NULL) {
		free(bytes);
		(void)fail(&p, "There is no memory.");
		return NULL;
	}
	p.c->bytes = bytes;
	p.c->len = len;
	p.c->flush_timeout_ms = p.c->stop_timeout_ms = TIMEOUT_MS;
	p.c->snapshot_ms = SNAPSHOT_MS;
	p.c->primary_clock = SERVICE_PACKETS_CLOCK_BOOTTIME;
	if (!parse(&p)) {
		local_config_free(p.c);
		return NULL;
	}
	return p.c;
}

struct local_config *
local_config_new(const uint8_t *bytes, size_t len, char *why, size_t why_len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_raw(&w, bytes, len);
	if (w.failed) {
		pb_writer_done(&w);
		snprintf(why, why_len, "There is no memory.");
		return NULL;
	}
	return take(w.data, w.len, why, why_len);
}

struct local_config *
local_config_simple(const struct tributary_session_options *options, char *why,
    size_t why_len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	session_config_put(&w, options);
	if (w.failed) {
		pb_writer_done(&w);
		snprintf(why, why_len, "There is no memory.");
		return NULL;
	}
	return take(w.data, w.len, why, why_len);
}

void
local_config_free(struct local_config *c)
{
	if (c != NULL)
		free(c->bytes);
	free(c);
}
