/*
 * process_stats_internal: state shared by the parts of linux.process_stats:
 * process_stats.c (config and scans), process_tree.c (identity of a process),
 * process_threads.c (threads on demand) and process_counters.c (memory and
 * times of a process).
 */
#ifndef CLIENT_PROBES_PROCESS_STATS_INTERNAL_H
#define CLIENT_PROBES_PROCESS_STATS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/probes/probe.h"
#include "client/probes/process_dir.h"
#include "client/probes/process_packet.h"
#include "client/probes/process_table.h"
#include "client/probes/tid_set.h"

struct process_stats {
	struct probe_env *env; /* borrowed */

	/* the config */
	bool scan_on_start;
	bool on_demand; /* threads that others mention */
	bool thread_names;
	bool main_threads;
	bool smaps_rollup;
	bool age;
	bool runtime;
	bool dmabuf_rss;
	bool resolve_fds;
	uint32_t period_ms;
	uint32_t ttl_polls; /* after as many, unchanged values are repeated */

	struct process_dir dir;
	struct process_table table;
	unsigned round;
	uint32_t polls; /* since values were forgotten */
	struct process_packet packet;
	/* Threads in a process tree of the trace, or asked for in vain. */
	struct tid_set told;
};

/* Describes a process with its threads; not if it has just ended. */
void process_tree_describe(struct process_stats *s, struct process *p);
/* Describes a thread beyond the main one, of a process that is described. */
void process_tree_describe_thread(struct process_stats *s,
    const struct proc_status *st);

/* Writes the counters of a process that changed. */
void process_counters_poll(struct process_stats *s, struct process *p);
/* Writes its open files that were not written yet. */
void process_counters_open_files(struct process_stats *s, struct process *p);

#endif /* CLIENT_PROBES_PROCESS_STATS_INTERNAL_H */
