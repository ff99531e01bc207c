#include "service/config/config.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/utf8.h"
#include "service/config/config_guard.h"
#include "service/config/name_filter.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/segment/segment_path.h"
#include "transport/wire/pb_reader.h"

typedef Perfetto__Protos__TraceConfig trace_config_pb;
typedef Perfetto__Protos__TraceConfig__DataSource data_source_pb;
typedef Perfetto__Protos__TraceConfig__TriggerConfig trigger_config_pb;

#define FLUSH_TIMEOUT_DEFAULT_MS 5000u
#define STOP_TIMEOUT_DEFAULT_MS 5000u

static int
refuse(char *err, size_t err_size, const char *sentence)
{
	return FAILURE(err, err_size, "%s", sentence);
}

/* The decoder does not say what it lacked. */
static const char *
parse_failure(const uint8_t *bytes, size_t len)
{
	return pb_well_formed(bytes, len) ?
	    "trace_config does not parse, or there is no memory for it" :
	    "trace_config does not parse";
}

/* A name of a config in a sentence, which may go to the log. */
static const char *
shown(const char *name, char *out, size_t out_size)
{
	return log_escape(out, out_size, name == NULL ? "" : name,
	    name == NULL ? 0 : strlen(name));
}

static int
refuse_duplicate(char *err, size_t err_size, const char *what,
    const char *name)
{
	char text[128];

	return FAILURE(err, err_size, "Duplicate %s name: %s", what,
	    shown(name, text, sizeof(text)));
}

static int
check_sizes(const trace_config_pb *pb, const struct limits *lim, char *err,
    size_t err_size)
{
	uint64_t total = 0;
	size_t i, k;

	if (pb->duration_ms > lim->max_trace_duration_ms)
		return FAILURE(err, err_size, "Requested too long trace (%u ms "
		    "> %llu ms)", pb->duration_ms,
		    (unsigned long long)lim->max_trace_duration_ms);
	if (pb->n_buffers > lim->max_buffers_per_session)
		return FAILURE(err, err_size, "Too many buffers configured "
		    "(%zu > %u)", pb->n_buffers, lim->max_buffers_per_session);
	for (i = 0; i < pb->n_buffers; i++) {
		if (pb->buffers[i]->size_kb == 0)
			return FAILURE(err, err_size, "Buffer %zu: size_kb "
			    "must be over 0", i);
		total += pb->buffers[i]->size_kb;
		if (pb->buffers[i]->name == NULL)
			continue;
		for (k = 0; k < i; k++)
			if (pb->buffers[k]->name != NULL &&
			    strcmp(pb->buffers[k]->name,
			    pb->buffers[i]->name) == 0)
				return refuse_duplicate(err, err_size,
				    "buffer", pb->buffers[i]->name);
	}
	if (total > lim->max_total_buffer_kb)
		return FAILURE(err, err_size, "Buffers of %llu KiB exceed the "
		    "limit of %llu KiB (limits.max_total_buffer_kb)",
		    (unsigned long long)total,
		    (unsigned long long)lim->max_total_buffer_kb);
	if (pb->n_data_sources > CONFIG_MAX_DATA_SOURCES)
		return FAILURE(err, err_size, "Too many data sources "
		    "configured (%zu > %u)", pb->n_data_sources,
		    CONFIG_MAX_DATA_SOURCES);
	if (pb->n_session_semaphores > CONFIG_MAX_SEMAPHORES)
		return FAILURE(err, err_size, "Too many session semaphores "
		    "(%zu > %u)", pb->n_session_semaphores,
		    CONFIG_MAX_SEMAPHORES);
	for (i = 0, k = 0; i < pb->n_data_sources; i++)
		k += pb->data_sources[i]->n_producer_name_regex_filter;
	if (k > CONFIG_MAX_PATTERNS)
		return FAILURE(err, err_size, "Too many "
		    "producer_name_regex_filter in all (%zu > %u)", k,
		    CONFIG_MAX_PATTERNS);
	if (pb->unique_session_name != NULL &&
	    strlen(pb->unique_session_name) > lim->max_name_bytes)
		return refuse(err, err_size, "unique_session_name is longer "
		    "than limits.max_name_bytes");
	return 0;
}

static int
check_triggers(const trace_config_pb *pb, const struct limits *lim, char *err,
    size_t err_size)
{
	const trigger_config_pb *t = pb->trigger_config;
	size_t i, k;

	if (t == NULL || t->trigger_mode ==
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__UNSPECIFIED)
		return 0;
	if (pb->duration_ms != 0)
		return refuse(err, err_size, "duration_ms was set, this must "
		    "not be set for traces with triggers");
	if (t->trigger_timeout_ms == 0)
		return refuse(err, err_size, "Trace config with "
		    "trigger_config must set trigger_timeout_ms");
	if (t->trigger_timeout_ms > lim->max_trace_duration_ms)
		return refuse(err, err_size, "trigger_timeout_ms is too long "
		    "(limits.max_trace_duration_ms)");
	if (t->trigger_mode !=
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__START_TRACING &&
	    pb->write_into_file)
		return refuse(err, err_size, "STOP_TRACING and CLONE_SNAPSHOT "
		    "triggers are incompatible with write_into_file");
	if (t->n_triggers == 0)
		return refuse(err, err_size,
		    "trigger_config must name at least one trigger");
	if (t->n_triggers > CONFIG_MAX_TRIGGERS)
		return refuse(err, err_size, "Too many triggers");
	for (i = 0; i < t->n_triggers; i++) {
		if (t->triggers[i]->name == NULL ||
		    t->triggers[i]->name[0] == '\0')
			return refuse(err, err_size, "A trigger has no name");
		for (k = 0; k < i; k++)
			if (strcmp(t->triggers[k]->name,
			    t->triggers[i]->name) == 0)
				return refuse_duplicate(err, err_size,
				    "trigger", t->triggers[i]->name);
	}
	return 0;
}

/* Fields of tributary_segments about files, which the service may write. */
static int
check_segment_files(const trace_config_pb *pb,
    const Perfetto__Protos__SegmentConfig *c, bool has_fd, char *err,
    size_t err_size)
{
	bool by_machine = c->split ==
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE;
	char why[320];

	if (has_fd && pb->write_into_file && (by_machine ||
	    c->max_bytes != 0 || c->file_pattern != NULL))
		return refuse(err, err_size, "tributary_segments: split, "
		    "max_bytes and file_pattern need output_path, the folder "
		    "for segments; a descriptor takes one file alone");
	if (!has_fd && pb->write_into_file && pb->max_file_size_bytes != 0)
		return refuse(err, err_size, "max_file_size_bytes does not go "
		    "with tributary_segments: max_bytes there is the size of "
		    "a segment");
	if (c->max_bytes != 0 && c->max_bytes < CONFIG_SEGMENT_LEAST_BYTES)
		return FAILURE(err, err_size, "tributary_segments.max_bytes is "
		    "%llu: it must be %u (64 KiB) or more, or 0 for no cuts by "
		    "size", (unsigned long long)c->max_bytes,
		    CONFIG_SEGMENT_LEAST_BYTES);
	if (c->file_pattern != NULL && segment_path_check(c->file_pattern,
	    by_machine, why, sizeof(why)) != 0)
		return FAILURE(err, err_size, "tributary_segments.%s", why);
	return 0;
}

static int
check_segments(const trace_config_pb *pb, bool has_fd, char *err,
    size_t err_size)
{
	const Perfetto__Protos__SegmentConfig *c = pb->tributary_segments;
	size_t i;

	if (c == NULL)
		return 0;
	if (check_segment_files(pb, c, has_fd, err, err_size) != 0)
		return -1;
	if (c->every_ms != 0 && (c->every_ms < CONFIG_SEGMENT_LEAST_MS ||
	    c->every_ms > CONFIG_SEGMENT_MOST_MS))
		return FAILURE(err, err_size, "tributary_segments.every_ms is "
		    "%llu: it must be %u (a second) to %u (31 days), or 0 for "
		    "no cuts by time", (unsigned long long)c->every_ms,
		    CONFIG_SEGMENT_LEAST_MS, CONFIG_SEGMENT_MOST_MS);
	if (c->n_at_trigger > CONFIG_MAX_TRIGGERS)
		return refuse(err, err_size, "tributary_segments.at_trigger "
		    "names too many triggers");
	for (i = 0; i < c->n_at_trigger; i++)
		if (c->at_trigger[i][0] == '\0')
			return refuse(err, err_size, "tributary_segments."
			    "at_trigger is empty: say the name of a trigger");
	return 0;
}

/*
 * A name that says what it is wherever it is listed.  Read from the bytes: in
 * the decoded message a NUL ends it early.
 */
static int
check_path_text(const uint8_t *bytes, size_t len, char *err, size_t err_size)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i, n;

	PB_FOREACH(&f, &r, bytes, len) {
		if (f.number != TraceConfig_output_path || f.wire != PB_BYTES)
			continue;
		for (i = 0; i < f.len; i += n)
			if ((n = utf8_printable((const char *)f.data + i,
			    f.len - i)) == 0)
				return refuse(err, err_size, "output_path may "
				    "hold printable UTF-8 only: no NUL, no "
				    "control characters, none that turn the "
				    "direction of writing");
	}
	return 0;
}

static int
check_output(const trace_config_pb *pb, bool has_fd, char *err,
    size_t err_size)
{
	if (pb->output_path != NULL && pb->output_path[0] != '\0' && has_fd)
		return refuse(err, err_size, "output_path and a file "
		    "descriptor exclude each other: pass one of the two");
	if (pb->write_into_file && !has_fd &&
	    (pb->output_path == NULL || pb->output_path[0] == '\0'))
		return refuse(err, err_size, "write_into_file needs a file "
		    "descriptor with EnableTracing, or output_path");
	if (!pb->write_into_file && pb->output_path != NULL &&
	    pb->output_path[0] != '\0')
		return refuse(err, err_size,
		    "output_path was set, but write_into_file was not");
	return 0;
}

/* The encoded DataSourceConfig of data_sources[i], pieces joined. */
static int
take_config_bytes(struct config_data_source *ds, const uint8_t *data,
    size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	uint8_t *joined;

	PB_FOREACH(&f, &r, data, len) {
		if (f.number != TraceConfig_DataSource_config ||
		    f.wire != PB_BYTES)
			continue;
		if (ds->config == NULL) {
			ds->config = f.data;
			ds->config_len = f.len;
			continue;
		}
		/* Rare: protobuf says that pieces are merged. */
		joined = malloc(ds->config_len + f.len + 1);
		if (joined == NULL)
			return -1;
		memcpy(joined, ds->config, ds->config_len);
		memcpy(joined + ds->config_len, f.data, f.len);
		free(ds->joined);
		ds->config = ds->joined = joined;
		ds->config_len += f.len;
	}
	return r.bad ? -1 : 0;
}

static int
find_buffer(const trace_config_pb *pb, const Perfetto__Protos__DataSourceConfig
    *dsc, uint32_t *out, char *err, size_t err_size)
{
	char ds[128], buffer[128];
	size_t i;

	shown(dsc->name, ds, sizeof(ds));
	shown(dsc->target_buffer_name, buffer, sizeof(buffer));
	if (dsc->target_buffer_name == NULL) {
		*out = dsc->target_buffer;
		if (dsc->target_buffer < pb->n_buffers)
			return 0;
		return FAILURE(err, err_size, "Data source %s: target_buffer "
		    "%u does not exist (%zu buffers)", ds, dsc->target_buffer,
		    pb->n_buffers);
	}
	for (i = 0; i < pb->n_buffers; i++)
		if (pb->buffers[i]->name != NULL &&
		    strcmp(pb->buffers[i]->name, dsc->target_buffer_name) == 0)
			break;
	if (i == pb->n_buffers)
		return FAILURE(err, err_size, "Data source %s: "
		    "target_buffer_name %s does not exist", ds, buffer);
	if (dsc->has_target_buffer && dsc->target_buffer != i)
		return FAILURE(err, err_size, "Data source %s: target_buffer "
		    "%u and target_buffer_name %s name different buffers", ds,
		    dsc->target_buffer, buffer);
	*out = (uint32_t)i;
	return 0;
}

static int
add_filters(struct config_data_source *ds, const data_source_pb *pb, char *err,
    size_t err_size)
{
	size_t i;

	for (i = 0; i < pb->n_producer_name_filter; i++)
		if (name_filter_add_name(ds->producers,
		    pb->producer_name_filter[i]) != 0)
			return refuse(err, err_size, "out of memory");
	for (i = 0; i < pb->n_producer_name_regex_filter; i++)
		if (name_filter_add_regex(ds->producers,
		    pb->producer_name_regex_filter[i], err, err_size) != 0)
			return -1;
	return 0;
}

static int
read_data_sources(struct config *c, char *err, size_t err_size)
{
	struct pb_reader r;
	struct pb_field f;
	size_t i = 0;

	c->data_sources = calloc(c->pb->n_data_sources + 1,
	    sizeof(*c->data_sources));
	if (c->data_sources == NULL)
		return refuse(err, err_size, "out of memory");
	c->n_data_sources = c->pb->n_data_sources;
	PB_FOREACH(&f, &r, c->bytes, c->len) {
		if (f.number != TraceConfig_data_sources ||
		    f.wire != PB_BYTES || i >= c->n_data_sources)
			continue;
		if (take_config_bytes(&c->data_sources[i++], f.data, f.len) !=
		    0)
			return refuse(err, err_size,
			    parse_failure(f.data, f.len));
	}
	for (i = 0; i < c->n_data_sources; i++) {
		struct config_data_source *ds = &c->data_sources[i];
		const data_source_pb *pb = c->pb->data_sources[i];

		if ((ds->producers = name_filter_new()) == NULL)
			return refuse(err, err_size, "out of memory");
		ds->name = pb->config != NULL && pb->config->name != NULL ?
		    pb->config->name : "";
		ds->machines = pb->machine_name_filter;
		ds->n_machines = pb->n_machine_name_filter;
		if (pb->config != NULL && pb->config->protovm_config != NULL) {
			ds->wants_vm = true;
			ds->vm_memory_kb =
			    pb->config->protovm_config->memory_limit_kb;
		}
		if (pb->config != NULL && find_buffer(c->pb, pb->config,
		    &ds->buffer, err, err_size) != 0)
			return -1;
		if (add_filters(ds, pb, err, err_size) != 0)
			return -1;
	}
	return 0;
}

/*
 * All zero, which is no session's, where there is no memory.  Each collector may
 * have an output_path of its own: it says where, and not what.
 */
static void
take_digest(struct config *c)
{
	unsigned char all[EVP_MAX_MD_SIZE];
	struct pb_reader r;
	struct pb_field f;
	uint8_t *same;
	size_t n = 0;

	if ((same = malloc(c->len + 1)) == NULL)
		return;
	PB_FOREACH(&f, &r, c->bytes, c->len) {
		if (f.number == TraceConfig_output_path)
			continue;
		memcpy(same + n, f.start, (size_t)(r.p - f.start));
		n += (size_t)(r.p - f.start);
	}
	if (EVP_Digest(same, n, all, NULL, EVP_sha256(), NULL) == 1)
		memcpy(c->digest, all, sizeof(c->digest));
	free(same);
}

struct config *
config_new(const uint8_t *bytes, size_t len, bool has_fd,
    const struct limits *limits, char *err, size_t err_size)
{
	struct config *c;

	if (len > CONFIG_MAX_BYTES) {
		snprintf(err, err_size, "trace_config is too large (%zu > %u "
		    "bytes)", len, CONFIG_MAX_BYTES);
		return NULL;
	}
	if ((c = calloc(1, sizeof(*c))) == NULL ||
	    (c->bytes = malloc(len + 1)) == NULL) {
		refuse(err, err_size, "out of memory");
		goto fail;
	}
	memcpy(c->bytes, bytes, len);
	c->len = len;
	take_digest(c);
	c->pb = perfetto__protos__trace_config__unpack(NULL, len, c->bytes);
	if (c->pb == NULL) {
		refuse(err, err_size, parse_failure(bytes, len));
		goto fail;
	}
	if (check_sizes(c->pb, limits, err, err_size) != 0 ||
	    check_triggers(c->pb, limits, err, err_size) != 0 ||
	    check_segments(c->pb, has_fd, err, err_size) != 0 ||
	    check_output(c->pb, has_fd, err, err_size) != 0 ||
	    check_path_text(c->bytes, c->len, err, err_size) != 0 ||
	    config_guard_check(c->pb, err, err_size) != 0 ||
	    read_data_sources(c, err, err_size) != 0)
		goto fail;
	return c;

fail:
	config_free(c);
	return NULL;
}

struct config *
config_copy(const struct config *from)
{
	struct config *c;

	if ((c = calloc(1, sizeof(*c))) == NULL ||
	    (c->bytes = malloc(from->len + 1)) == NULL)
		goto fail;
	memcpy(c->bytes, from->bytes, from->len);
	c->len = from->len;
	c->pb = perfetto__protos__trace_config__unpack(NULL, c->len, c->bytes);
	if (c->pb == NULL)
		goto fail;
	return c;

fail:
	config_free(c);
	return NULL;
}

void
config_free(struct config *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; c->data_sources != NULL && i < c->n_data_sources; i++) {
		name_filter_free(c->data_sources[i].producers);
		free(c->data_sources[i].joined);
		free(c->data_sources[i].for_producers);
	}
	free(c->data_sources);
	if (c->pb != NULL)
		perfetto__protos__trace_config__free_unpacked(c->pb, NULL);
	free(c->bytes);
	free(c);
}

/* An empty filter fits all: adding to it would narrow it. */
static bool
takes_filters(const struct config_data_source *ds, const data_source_pb *more)
{
	return more->config != NULL && more->config->name != NULL &&
	    strcmp(ds->name, more->config->name) == 0 &&
	    !name_filter_is_empty(ds->producers);
}

/* Memory that the filters of one more data source take, at most. */
static uint64_t
filters_cost(const data_source_pb *ds)
{
	uint64_t cost = (uint64_t)ds->n_producer_name_regex_filter *
	    CONFIG_PATTERN_COST;
	size_t i;

	for (i = 0; i < ds->n_producer_name_filter; i++)
		cost += strlen(ds->producer_name_filter[i]) +
		    CONFIG_NAME_COST;
	return cost;
}

/* Additions go to every source of that name, call after call: hence a limit. */
static int
check_added(struct config *c, const trace_config_pb *pb, char *err,
    size_t err_size)
{
	uint64_t cost, total = c->added;
	size_t i, k;

	if (pb->n_data_sources > CONFIG_MAX_DATA_SOURCES)
		return refuse(err, err_size, "Too many data sources");
	for (i = 0; i < pb->n_data_sources; i++) {
		cost = filters_cost(pb->data_sources[i]);
		for (k = 0; k < c->n_data_sources && cost > 0; k++)
			if (takes_filters(&c->data_sources[k],
			    pb->data_sources[i]))
				total += cost;
	}
	if (total > CONFIG_MAX_ADDED)
		return refuse(err, err_size, "Too many producer name filters "
		    "were added to this session");
	c->added = total;
	return 0;
}

int
config_add_filters(struct config *c, const uint8_t *bytes, size_t len,
    char *err, size_t err_size)
{
	trace_config_pb *pb;
	size_t i, k;
	int ret = -1;

	pb = perfetto__protos__trace_config__unpack(NULL, len, bytes);
	if (pb == NULL)
		return refuse(err, err_size, parse_failure(bytes, len));
	if (check_added(c, pb, err, err_size) != 0)
		goto out;
	for (i = 0; i < pb->n_data_sources; i++)
		for (k = 0; k < c->n_data_sources; k++)
			if (takes_filters(&c->data_sources[k],
			    pb->data_sources[i]) &&
			    add_filters(&c->data_sources[k],
			    pb->data_sources[i], err, err_size) != 0)
				goto out;
	ret = 0;
out:
	perfetto__protos__trace_config__free_unpacked(pb, NULL);
	return ret;
}

uint32_t
config_stop_timeout_ms(const struct config *c)
{
	return c->pb->data_source_stop_timeout_ms != 0 ?
	    c->pb->data_source_stop_timeout_ms : STOP_TIMEOUT_DEFAULT_MS;
}

uint32_t
config_flush_timeout_ms(const struct config *c)
{
	return c->pb->flush_timeout_ms != 0 ? c->pb->flush_timeout_ms :
	    FLUSH_TIMEOUT_DEFAULT_MS;
}

Perfetto__Protos__TraceConfig__TriggerConfig__TriggerMode
config_trigger_mode(const struct config *c)
{
	const trigger_config_pb *t = c->pb->trigger_config;

	if (t == NULL)
		return PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__UNSPECIFIED;
	return t->use_clone_snapshot_if_available ?
	    PERFETTO__PROTOS__TRACE_CONFIG__TRIGGER_CONFIG__TRIGGER_MODE__CLONE_SNAPSHOT :
	    t->trigger_mode;
}
