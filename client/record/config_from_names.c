#include "client/record/config_from_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "transport/wire/pb_writer.h"

/* Field numbers (reference wire-format.md). */
enum trace_config {
	TC_BUFFERS = 1,
	TC_DATA_SOURCES = 2,
	TC_DURATION_MS = 3,
	TC_WRITE_INTO_FILE = 8,
	TC_MAX_FILE_SIZE_BYTES = 10,
	TC_FLUSH_PERIOD_MS = 13,
};
enum buffer_config { BC_SIZE_KB = 1, BC_FILL_POLICY = 4 };
enum data_source { DS_CONFIG = 1 };
enum data_source_config {
	DSC_NAME = 1,
	DSC_FTRACE_CONFIG = 100,
	DSC_PROCESS_STATS_CONFIG = 103,
	DSC_SYS_STATS_CONFIG = 104,
	DSC_TRACK_EVENT_CONFIG = 113,
};
enum ftrace_config { FC_FTRACE_EVENTS = 1, FC_SYMBOLIZE_KSYMS = 13 };
enum process_stats_config {
	PC_SCAN_ALL_PROCESSES_ON_START = 2,
	PC_RECORD_THREAD_NAMES = 3,
	PC_PROC_STATS_POLL_MS = 4,
};
enum sys_stats_config {
	SC_MEMINFO_PERIOD_MS = 1,
	SC_VMSTAT_PERIOD_MS = 3,
	SC_STAT_PERIOD_MS = 5,
};
enum track_event_config { TE_ENABLED_CATEGORIES = 2 };

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
	size_t m = pb_nest_begin(w, DSC_SYS_STATS_CONFIG);

	pb_put_uint(w, SC_MEMINFO_PERIOD_MS, POLL_MS);
	pb_put_uint(w, SC_VMSTAT_PERIOD_MS, POLL_MS);
	pb_put_uint(w, SC_STAT_PERIOD_MS, POLL_MS);
	pb_nest_end(w, m);
}

static void
put_process_stats(struct pb_writer *w)
{
	size_t m = pb_nest_begin(w, DSC_PROCESS_STATS_CONFIG);

	pb_put_uint(w, PC_SCAN_ALL_PROCESSES_ON_START, 1);
	pb_put_uint(w, PC_RECORD_THREAD_NAMES, 1);
	pb_put_uint(w, PC_PROC_STATS_POLL_MS, POLL_MS);
	pb_nest_end(w, m);
}

static void
put_track_event(struct pb_writer *w)
{
	size_t m = pb_nest_begin(w, DSC_TRACK_EVENT_CONFIG);

	pb_put_string(w, TE_ENABLED_CATEGORIES, "*");
	pb_nest_end(w, m);
}

static void
put_ftrace(struct pb_writer *w, const struct config_from_names *c)
{
	size_t i, m = pb_nest_begin(w, DSC_FTRACE_CONFIG);

	for (i = 0; i < c->n_names; i++) {
		if (is_event(c->names[i]) && !names_have(c, c->names[i], i))
			pb_put_string(w, FC_FTRACE_EVENTS, c->names[i]);
	}
	pb_put_uint(w, FC_SYMBOLIZE_KSYMS, 1);
	pb_nest_end(w, m);
}

static void
put_data_source(struct pb_writer *w, const struct config_from_names *c,
    const char *name)
{
	size_t source = pb_nest_begin(w, TC_DATA_SOURCES);
	size_t config = pb_nest_begin(w, DS_CONFIG);

	pb_put_string(w, DSC_NAME, name);
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
	/* Without it the kernel's events name no process. */
	if (!names_have(c, process_stats, c->n_names))
		put_data_source(w, c, process_stats);
}

static void
put_buffer(struct pb_writer *w, uint64_t bytes)
{
	size_t m = pb_nest_begin(w, TC_BUFFERS);

	pb_put_uint(w, BC_SIZE_KB, (bytes + 1023) / 1024);
	pb_put_uint(w, BC_FILL_POLICY, RING_BUFFER);
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

	if (c->n_names == 0) {
		snprintf(err, err_size, "nothing to record: name a data source");
		return -1;
	}
	for (i = 0; i < c->n_names; i++) {
		if (c->names[i][0] == '\0') {
			snprintf(err, err_size,
			    "the name of a data source is empty");
			return -1;
		}
		if (is_event(c->names[i]) && !event_ok(c->names[i])) {
			snprintf(err, err_size, "\"%.80s\" is no event: a name "
			    "with a slash is one of the kernel's, written like "
			    "sched/sched_switch", c->names[i]);
			return -1;
		}
	}
	if (c->buffer_bytes == 0) {
		snprintf(err, err_size, "the buffer needs a size above 0");
		return -1;
	}
	if (c->buffer_bytes > (uint64_t)UINT32_MAX * 1024) {
		snprintf(err, err_size,
		    "a buffer can have 4 TiB at most");
		return -1;
	}
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
		pb_put_uint(w, TC_DURATION_MS, c->duration_ms);
	if (c->max_file_bytes != 0) {
		pb_put_uint(w, TC_WRITE_INTO_FILE, 1);
		pb_put_uint(w, TC_MAX_FILE_SIZE_BYTES, c->max_file_bytes);
	}
	pb_put_uint(w, TC_FLUSH_PERIOD_MS, FLUSH_PERIOD_MS);
	if (w->failed) {
		snprintf(err, err_size, "out of memory");
		return -1;
	}
	return 0;
}
