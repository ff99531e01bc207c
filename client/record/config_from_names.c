#include "client/record/config_from_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_writer.h"

#define RING_BUFFER 1

/*
 * Data that stays in a producer's shared memory is handed on at least this
 * often, so that a long ring does not lack it when it is stopped.
 */
#define FLUSH_PERIOD_MS 30000
#define POLL_MS 1000

static const char ftrace[] = "linux.ftrace";
static const char process_stats[] = "linux.process_stats";

static bool
is_event(const char *name)
{
	return strchr(name, '/') != NULL;
}

static bool
names_have(const struct config_from_names *c, const char *name, size_t before)
{
	size_t i;

	for (i = 0; i < before; i++) {
		if (strcmp(c->names[i], name) == 0)
			return true;
	}
	return false;
}

static void
put_sys_stats(struct pb_writer *w)
{
	size_t m = pb_nest_begin(w, DataSourceConfig_sys_stats_config);

	pb_put_uint(w, SysStatsConfig_meminfo_period_ms, POLL_MS);
	pb_put_uint(w, SysStatsConfig_vmstat_period_ms, POLL_MS);
	pb_put_uint(w, SysStatsConfig_stat_period_ms, POLL_MS);
	pb_nest_end(w, m);
}

static void
put_process_stats(struct pb_writer *w)
{
	size_t m = pb_nest_begin(w, DataSourceConfig_process_stats_config);

	pb_put_uint(w, ProcessStatsConfig_scan_all_processes_on_start, 1);
	pb_put_uint(w, ProcessStatsConfig_record_thread_names, 1);
	pb_put_uint(w, ProcessStatsConfig_proc_stats_poll_ms, POLL_MS);
	pb_nest_end(w, m);
}

static void
put_track_event(struct pb_writer *w)
{
	size_t m = pb_nest_begin(w, DataSourceConfig_track_event_config);

	pb_put_string(w, TrackEventConfig_enabled_categories, "*");
	pb_nest_end(w, m);
}

static void
put_ftrace(struct pb_writer *w, const struct config_from_names *c)
{
	size_t i, m = pb_nest_begin(w, DataSourceConfig_ftrace_config);

	for (i = 0; i < c->n_names; i++) {
		if (is_event(c->names[i]) && !names_have(c, c->names[i], i))
			pb_put_string(w, FtraceConfig_ftrace_events,
			    c->names[i]);
	}
	pb_put_uint(w, FtraceConfig_symbolize_ksyms, 1);
	pb_nest_end(w, m);
}

static void
put_data_source(struct pb_writer *w, const struct config_from_names *c,
    const char *name)
{
	size_t source = pb_nest_begin(w, TraceConfig_data_sources);
	size_t config = pb_nest_begin(w, TraceConfig_DataSource_config);

	pb_put_string(w, DataSourceConfig_name, name);
	if (strcmp(name, "linux.sys_stats") == 0)
		put_sys_stats(w);
	else if (strcmp(name, process_stats) == 0)
		put_process_stats(w);
	else if (strcmp(name, "track_event") == 0)
		put_track_event(w);
	else if (strcmp(name, ftrace) == 0)
		put_ftrace(w, c);
	pb_nest_end(w, config);
	pb_nest_end(w, source);
}

static void
put_data_sources(struct pb_writer *w, const struct config_from_names *c)
{
	bool events = false;
	size_t i;

	for (i = 0; i < c->n_names; i++) {
		if (is_event(c->names[i]))
			events = true;
		else if (!names_have(c, c->names[i], i))
			put_data_source(w, c, c->names[i]);
	}
	if (!events)
		return;
	if (!names_have(c, ftrace, c->n_names))
		put_data_source(w, c, ftrace);
	/* The kernel's events name no process without this source. */
	if (!names_have(c, process_stats, c->n_names))
		put_data_source(w, c, process_stats);
}

static void
put_buffer(struct pb_writer *w, uint64_t bytes)
{
	size_t m = pb_nest_begin(w, TraceConfig_buffers);

	pb_put_uint(w, BufferConfig_size_kb, (bytes + 1023) / 1024);
	pb_put_uint(w, BufferConfig_fill_policy, RING_BUFFER);
	pb_nest_end(w, m);
}

/* "group/event", both parts there. */
static bool
event_ok(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash != name && slash[1] != '\0' &&
	    strchr(slash + 1, '/') == NULL;
}

static int
check(const struct config_from_names *c, char *err, size_t err_size)
{
	size_t i;

	if (c->n_names == 0)
		return FAILURE(err, err_size, "nothing to record: name a data "
		    "source");
	for (i = 0; i < c->n_names; i++) {
		if (c->names[i][0] == '\0')
			return FAILURE(err, err_size,
			    "the name of a data source is empty");
		if (is_event(c->names[i]) && !event_ok(c->names[i]))
			return FAILURE(err, err_size, "\"%.80s\" is no event: "
			    "a name with a slash is one of the kernel's, "
			    "written like sched/sched_switch", c->names[i]);
	}
	if (c->buffer_bytes == 0)
		return FAILURE(err, err_size, "the buffer needs a size above "
		    "0");
	if (c->buffer_bytes > (uint64_t)UINT32_MAX * 1024)
		return FAILURE(err, err_size,
		    "a buffer can have 4 TiB at most");
	return 0;
}

int
config_from_names(const struct config_from_names *c, struct pb_writer *w,
    char *err, size_t err_size)
{
	if (check(c, err, err_size) < 0)
		return -1;
	put_buffer(w, c->buffer_bytes);
	put_data_sources(w, c);
	if (c->duration_ms != 0)
		pb_put_uint(w, TraceConfig_duration_ms, c->duration_ms);
	if (c->max_file_bytes != 0) {
		pb_put_uint(w, TraceConfig_write_into_file, 1);
		pb_put_uint(w, TraceConfig_max_file_size_bytes,
		    c->max_file_bytes);
	}
	pb_put_uint(w, TraceConfig_flush_period_ms, FLUSH_PERIOD_MS);
	if (w->failed)
		return FAILURE(err, err_size, "out of memory");
	return 0;
}
