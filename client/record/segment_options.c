#include "client/record/segment_options.h"

#include <stdio.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/failure.h"
#include "transport/base/size_duration.h"
#include "transport/segment/segment_path.h"
#include "transport/wire/pb_writer.h"

/* As the service has them (service/config). */
#define EVERY_LEAST_MS 1000u
#define EVERY_MOST_MS (31ull * 24 * 3600 * 1000)
#define SIZE_LEAST 65536u

static int
take_every(struct segment_options *o, const char *value, char *err,
    size_t err_size)
{
	if (size_duration_parse_long_ms(value, &o->every_ms, err,
	    err_size) != 0)
		return -1;
	if (o->every_ms >= EVERY_LEAST_MS && o->every_ms <= EVERY_MOST_MS)
		return 0;
	return FAILURE(err, err_size, "a segment has a second at least and 31 "
	    "days at most, not \"%.40s\"", value);
}

static int
take_size(struct segment_options *o, const char *value, char *err,
    size_t err_size)
{
	if (size_duration_parse_bytes(value, &o->max_bytes, err,
	    err_size) != 0)
		return -1;
	return o->max_bytes >= SIZE_LEAST ? 0 : FAILURE(err, err_size,
	    "a segment has 64kb at least, not \"%.40s\"", value);
}

static int
take_keep(uint64_t *limit, int parsed, const char *value, char *err,
    size_t err_size)
{
	if (parsed != 0)
		return -1;
	return *limit > 0 ? 0 : FAILURE(err, err_size, "\"%.40s\" would keep "
	    "nothing", value);
}

static int
take_split(struct segment_options *o, const char *value, char *err,
    size_t err_size)
{
	o->by_machine = strcmp(value, "machine") == 0;
	return o->by_machine ? 0 : FAILURE(err, err_size, "segments are split "
	    "by machine alone: --split machine, not \"%.40s\"", value);
}

static int
take_command(struct segment_options *o, const char *value, char *err,
    size_t err_size)
{
	if (value[strspn(value, " \t\n")] == '\0')
		return FAILURE(err, err_size, "the command is empty");
	o->command = value;
	return 0;
}

int
segment_options_take(struct segment_options *o, enum segment_flag flag,
    const char *value, char *err, size_t err_size)
{
	switch (flag) {
	case SEGMENT_EVERY:
		return take_every(o, value, err, err_size);
	case SEGMENT_SIZE:
		return take_size(o, value, err, err_size);
	case SEGMENT_SPLIT:
		return take_split(o, value, err, err_size);
	case SEGMENT_KEEP:
		return take_keep(&o->keep_bytes, size_duration_parse_bytes(value,
		    &o->keep_bytes, err, err_size), value, err, err_size);
	case SEGMENT_KEEP_FOR:
		return take_keep(&o->keep_ms, size_duration_parse_long_ms(value,
		    &o->keep_ms, err, err_size), value, err, err_size);
	case SEGMENT_PATTERN:
		o->pattern = value;
		return segment_path_check(value, false, err, err_size);
	case SEGMENT_COMMAND:
		return take_command(o, value, err, err_size);
	}
	return -1;
}

bool
segment_options_cut(const struct segment_options *o)
{
	return o->every_ms != 0 || o->max_bytes != 0 || o->by_machine ||
	    o->pattern != NULL;
}

bool
segment_options_care(const struct segment_options *o)
{
	return o->command != NULL || o->keep_bytes != 0 || o->keep_ms != 0;
}

static bool
has_text(const char *s)
{
	return s != NULL && s[0] != '\0';
}

void
segment_options_put(const struct segment_options *o,
    const struct Perfetto__Protos__TraceConfig *m, uint64_t random,
    struct pb_writer *out)
{
	const Perfetto__Protos__SegmentConfig *was = m->tributary_segments;
	bool named = has_text(m->unique_session_name);
	uint64_t max_bytes = o->max_bytes;
	char name[40];
	size_t mark;

	if (max_bytes == 0 && was != NULL)
		max_bytes = was->max_bytes;
	mark = pb_nest_begin(out, TraceConfig_tributary_segments);
	if (o->every_ms != 0)
		pb_put_uint(out, SegmentConfig_every_ms, o->every_ms);
	if (o->max_bytes != 0)
		pb_put_uint(out, SegmentConfig_max_bytes, o->max_bytes);
	if (o->by_machine)
		pb_put_uint(out, SegmentConfig_split, SegmentConfig_BY_MACHINE);
	if (o->pattern != NULL)
		pb_put_string(out, SegmentConfig_file_pattern, o->pattern);
	if (was == NULL || !has_text(was->recording))
		pb_put_string(out, SegmentConfig_recording,
		    named ? m->unique_session_name : "recording");
	pb_nest_end(out, mark);
	if (max_bytes == 0 || named)
		return;
	snprintf(name, sizeof(name), "record-%016llx",
	    (unsigned long long)random);
	pb_put_string(out, TraceConfig_unique_session_name, name);
}
