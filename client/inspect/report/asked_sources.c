#include "client/inspect/report/asked_sources.h"

#include <stdbool.h>
#include <string.h>

#include "client/trace/trace_summary.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_stats.pb-c.h"

typedef Perfetto__Protos__TraceConfig trace_config;
typedef Perfetto__Protos__TraceStats trace_stats;
typedef Perfetto__Protos__DataSourceConfig source_config;

#define TYPES_OF_ONE 4
/* Entries of a config; no honest one has as many. */
#define LOOKED_AT 16384u

/* Packets, by field number of TracePacket, that prove that a source wrote. */
static const struct {
	const char *name; /* also of "name.something" */
	uint32_t types[TYPES_OF_ONE];
} known[] = {
	{ "linux.process_stats", { 2, 9 } },
	{ "linux.sys_stats", { 7 } },
	{ "linux.ftrace", { 1 } },
	{ "linux.frozen_ftrace", { 1 } },
	{ "linux.system_info", { 67, 130 } },
	{ "linux.inode_file_map", { 4 } },
	{ "linux.perf", { 66 } },
	{ "linux.journald", { 132 } },
	{ "linux.systemd_journald", { 132 } },
	{ "track_event", { 11, 60 } },
	{ "perfetto.metatrace", { 49 } },
	{ "org.chromium.trace_event", { 5, 11, 60 } },
	{ "org.chromium.trace_metadata", { 5, 51 } },
	{ "org.chromium.sampler_profiler", { 54 } },
	{ "org.chromium.memory_instrumentation", { 73 } },
	{ "android.heapprofd", { 37 } },
	{ "android.java_hprof", { 56 } },
	{ "android.log", { 39 } },
	{ "android.power", { 38, 40 } },
	{ "android.packages_list", { 47 } },
	{ "android.statsd", { 84 } },
	{ "gpu.counters", { 52 } },
	{ "gpu.renderstages", { 53 } },
	{ "vulkan.memory_tracker", { 62 } },
};

static bool
occurs(uint32_t type, const struct trace_packet_type *types, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (types[i].type == type)
			return types[i].packets != 0;
	}
	return false;
}

static enum asked_wrote
by_type(const char *name, const struct trace_packet_type *types, size_t n)
{
	size_t i, k, len;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		len = strlen(known[i].name);
		if (strncmp(name, known[i].name, len) != 0 ||
		    (name[len] != '\0' && name[len] != '.'))
			continue;
		for (k = 0; k < TYPES_OF_ONE && known[i].types[k] != 0; k++) {
			if (occurs(known[i].types[k], types, n))
				return ASKED_WROTE;
		}
		return ASKED_NOTHING;
	}
	return ASKED_UNKNOWN;
}

/* Finds a buffer by name, or by index; the first where neither is there. */
static uint32_t
buffer_of(const trace_config *config, const source_config *source)
{
	size_t i;

	for (i = 0; source->target_buffer_name != NULL &&
	    i < config->n_buffers; i++) {
		if (config->buffers[i]->name != NULL &&
		    strcmp(config->buffers[i]->name,
		    source->target_buffer_name) == 0)
			return (uint32_t)i;
	}
	return source->target_buffer;
}

static void
add(struct asked_sources *out, const char *name, uint32_t buffer)
{
	size_t i;

	for (i = 0; i < out->n; i++) {
		if (out->all[i].buffer == buffer &&
		    strcmp(out->all[i].name, name) == 0)
			return;
	}
	if (out->n == ASKED_SOURCES_MAX) {
		out->left_out++;
		return;
	}
	out->all[out->n++] = (struct asked_source){ .name = name,
		.buffer = buffer, .wrote = ASKED_UNKNOWN };
}

static size_t
writing_to(const struct asked_sources *s, uint32_t buffer)
{
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->all[i].buffer == buffer;
	return n;
}

static enum asked_wrote
by_buffer(const struct asked_sources *s, uint32_t buffer,
    const trace_stats *stats)
{
	if (stats == NULL || buffer >= stats->n_buffer_stats)
		return ASKED_UNKNOWN;
	if (stats->buffer_stats[buffer]->bytes_written == 0)
		return ASKED_NOTHING;
	return writing_to(s, buffer) == 1 ? ASKED_WROTE : ASKED_UNKNOWN;
}

void
asked_sources_make(struct asked_sources *out, const trace_config *config,
    const trace_stats *stats, const struct trace_packet_type *types,
    size_t n_types)
{
	const source_config *source;
	struct asked_source *a;
	size_t i;

	out->n = 0;
	out->left_out = 0;
	for (i = 0; config != NULL && i < config->n_data_sources; i++) {
		if (i == LOOKED_AT) {
			out->left_out += config->n_data_sources - i;
			break;
		}
		source = config->data_sources[i]->config;
		if (source != NULL && source->name != NULL &&
		    source->name[0] != '\0')
			add(out, source->name, buffer_of(config, source));
	}
	for (i = 0; i < out->n; i++) {
		a = &out->all[i];
		a->wrote = by_buffer(out, a->buffer, stats);
		if (a->wrote == ASKED_UNKNOWN)
			a->wrote = by_type(a->name, types, n_types);
	}
}
