#include "service/recordings/recording_plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/text_file.h"
#include "protos/trace_config_load.h"
#include "service/config/config.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Bounds how long data may stay with producers. */
#define FLUSH_MS 5000u
#define DISCARD                                                               \
	PERFETTO__PROTOS__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__DISCARD

void
recording_plan_free(struct recording_plan *p)
{
	if (p == NULL)
		return;
	free(p->name);
	free(p->config);
	free(p);
}

bool
recording_plan_equal(const struct recording_plan *a,
    const struct recording_plan *b)
{
	return strcmp(a->name, b->name) == 0 &&
	    a->is_flight == b->is_flight && a->config_len == b->config_len &&
	    memcmp(a->config, b->config, a->config_len) == 0;
}

/* Fields that a recording says itself; NULL: any other. */
static const char *
field_of_ours(const struct pb_field *f)
{
	switch (f->number) {
	case TraceConfig_output_path:
		return "output_path: its segments go below archive_dir";
	case TraceConfig_trigger_config:
		return "trigger_config: name triggers in `rotate` or `flight`";
	case TraceConfig_tributary_segments:
		return "tributary_segments: say so in `rotate` and `split`";
	case TraceConfig_deferred_start:
		return f->value == 0 ? NULL :
		    "deferred_start: it begins with the daemon";
	default:
		return NULL;
	}
}

static int
put_source(const struct recording_setting *r, const struct pb_field *source,
    struct pb_writer *out, char *err, size_t err_size)
{
	size_t i, mark = pb_nest_begin(out, TraceConfig_data_sources);
	struct pb_reader reader;
	struct pb_field f;

	PB_FOREACH(&f, &reader, source->data, source->len)
		if (f.number == TraceConfig_DataSource_machine_name_filter)
			return FAILURE(err, err_size, "the config says "
			    "itself which machines take part "
			    "(machine_name_filter): leave out `machines`, or "
			    "take it out of the config");
	pb_put_raw(out, source->data, source->len);
	for (i = 0; i < r->machines.n; i++)
		pb_put_string(out, TraceConfig_DataSource_machine_name_filter,
		    r->machines.words[i]);
	pb_nest_end(out, mark);
	return 0;
}

/* Fields of the config file that stand as they are. */
static int
put_config(const struct recording_setting *r, const uint8_t *config,
    size_t len, struct pb_writer *out, char *err, size_t err_size)
{
	const char *ours;
	struct pb_reader reader;
	struct pb_field f;

	PB_FOREACH(&f, &reader, config, len) {
		if ((ours = field_of_ours(&f)) != NULL)
			return FAILURE(err, err_size, "the config of a "
			    "recording has no %s", ours);
		if (f.number == TraceConfig_unique_session_name ||
		    f.number == TraceConfig_write_into_file)
			continue; /* said by the recording, always */
		if (f.number == TraceConfig_data_sources &&
		    f.wire == PB_BYTES && r->machines.n > 0) {
			if (put_source(r, &f, out, err, err_size) != 0)
				return -1;
			continue;
		}
		pb_put_raw(out, f.start, (size_t)(reader.p - f.start));
	}
	return reader.bad ? FAILURE(err, err_size, "the config is damaged") :
	    0;
}

static void
put_segments(const struct recording_setting *r, const char *archive,
    struct pb_writer *out)
{
	char path[PATH_MAX];
	size_t i, mark;

	if (!r->is_flight) {
		/* The slash makes it the folder itself, and not one below. */
		snprintf(path, sizeof(path), "%s/", archive);
		pb_put_uint(out, TraceConfig_write_into_file, 1);
		pb_put_string(out, TraceConfig_output_path, path);
	}
	mark = pb_nest_begin(out, TraceConfig_tributary_segments);
	if (r->every_ms > 0)
		pb_put_uint(out, SegmentConfig_every_ms, r->every_ms);
	if (r->max_bytes > 0)
		pb_put_uint(out, SegmentConfig_max_bytes, r->max_bytes);
	for (i = 0; i < r->triggers.n && !r->is_flight; i++)
		pb_put_string(out, SegmentConfig_at_trigger,
		    r->triggers.words[i]);
	if (r->by_machine)
		pb_put_uint(out, SegmentConfig_split,
		    SegmentConfig_BY_MACHINE);
	if (r->file_pattern != NULL)
		pb_put_string(out, SegmentConfig_file_pattern,
		    r->file_pattern);
	pb_put_string(out, SegmentConfig_recording, r->name);
	pb_nest_end(out, mark);
}

/*
 * A copy at each trigger.  trigger_timeout_ms has to be there; a recording's
 * session does not heed it (session_request.standing).
 */
static void
put_triggers(const struct recording_setting *r, struct pb_writer *out)
{
	size_t i, one, mark = pb_nest_begin(out, TraceConfig_trigger_config);

	pb_put_uint(out, TriggerConfig_trigger_mode,
	    TriggerConfig_CLONE_SNAPSHOT);
	pb_put_uint(out, TriggerConfig_trigger_timeout_ms, 1);
	for (i = 0; i < r->triggers.n; i++) {
		one = pb_nest_begin(out, TriggerConfig_triggers);
		pb_put_string(out, TriggerConfig_Trigger_name,
		    r->triggers.words[i]);
		pb_put_uint(out,
		    TriggerConfig_Trigger_stop_delay_ms,
		    r->after_ms);
		pb_nest_end(out, one);
	}
	pb_nest_end(out, mark);
}

static bool
has_field(const uint8_t *config, size_t len, uint32_t number)
{
	struct pb_reader reader;
	struct pb_field f;

	PB_FOREACH(&f, &reader, config, len)
		if (f.number == number)
			return true;
	return false;
}

/* Interned data is of no use once the ring has lost the packet that had it. */
static void
put_clearing(const struct recording_setting *r, const uint8_t *config,
    size_t len, struct pb_writer *out)
{
	size_t mark;

	if (has_field(config, len, TraceConfig_incremental_state_config))
		return;
	mark = pb_nest_begin(out, TraceConfig_incremental_state_config);
	pb_put_uint(out, IncrementalStateConfig_clear_period_ms,
	    r->before_ms / 2);
	pb_nest_end(out, mark);
}

/* Checks what the session would be refused for. */
static int
check(const struct recording_plan *p, const struct limits *limits, char *err,
    size_t err_size)
{
	struct config *c = config_new(p->config, p->config_len, false, limits,
	    err, err_size);
	size_t i;
	int rc = 0;

	if (c == NULL)
		return -1;
	if (c->pb->n_buffers == 0 || c->pb->n_data_sources == 0)
		rc = FAILURE(err, err_size, "the config has no %s: it would "
		    "record nothing", c->pb->n_buffers == 0 ? "buffers" :
		    "data_sources");
	for (i = 0; rc == 0 && i < c->pb->n_buffers; i++)
		if (c->pb->buffers[i]->fill_policy == DISCARD)
			rc = FAILURE(err, err_size, "buffer %zu: a recording "
			    "has no end, so a buffer that takes nothing more "
			    "once it is full (fill_policy: DISCARD) does not "
			    "fit it", i);
	config_free(c);
	return rc;
}

struct recording_plan *
recording_plan_of(const struct recording_setting *r,
    const struct settings *of, const uint8_t *config, size_t len, char *err,
    size_t err_size)
{
	struct recording_plan *p;
	struct pb_writer w;

	pb_writer_init(&w);
	if ((p = calloc(1, sizeof(*p))) == NULL ||
	    (p->name = strdup(r->name)) == NULL) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
	if (put_config(r, config, len, &w, err, err_size) != 0)
		goto fail;
	pb_put_string(&w, TraceConfig_unique_session_name, r->name);
	put_segments(r, of->archive_dir, &w);
	if (!has_field(config, len, TraceConfig_flush_period_ms))
		pb_put_uint(&w, TraceConfig_flush_period_ms, FLUSH_MS);
	if (r->is_flight) {
		put_triggers(r, &w);
		put_clearing(r, config, len, &w);
	}
	if (w.failed) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
	p->config = w.data;
	p->config_len = w.len;
	p->is_flight = r->is_flight;
	p->by_machine = r->by_machine;
	p->every_ms = r->every_ms;
	p->max_bytes = r->max_bytes;
	p->keep_bytes = r->keep_bytes;
	p->keep_ms = r->keep_ms;
	if (check(p, &of->limits, err, err_size) == 0)
		return p;
	recording_plan_free(p);
	return NULL;

fail:
	pb_writer_done(&w);
	recording_plan_free(p);
	return NULL;
}

struct recording_plan *
recording_plan_new(const struct recording_setting *r,
    const struct settings *of, char *err, size_t err_size)
{
	struct recording_plan *p = NULL;
	uint8_t *config = NULL;
	char why[512];
	size_t len = 0, config_len = 0;
	char *text;

	text = text_file_read(r->config_path, &len, why, sizeof(why));
	if (text == NULL) {
		snprintf(err, err_size, "recording %s: %s", r->name, why);
		return NULL;
	}
	if (trace_config_load(&(struct trace_config_input){
	    .data = (const uint8_t *)text, .len = len,
	    .name = r->config_path }, &config, &config_len, err, err_size) == 0) {
		p = recording_plan_of(r, of, config, config_len, why,
		    sizeof(why));
		if (p == NULL)
			snprintf(err, err_size, "%s: error: recording %s: %s",
			    r->config_path, r->name, why);
	}
	free(config);
	free(text);
	return p;
}
