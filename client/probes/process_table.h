/*
 * process_table: the processes that a probe has met, by pid.
 */
#ifndef CLIENT_PROBES_PROCESS_TABLE_H
#define CLIENT_PROBES_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/probes/proc_text.h"
#include "transport/base/compiler.h"
#include "transport/base/hash_map.h"

/* Files of a process that are kept open. */
enum process_file { PROCESS_STATUS, PROCESS_OOM, PROCESS_STAT, PROCESS_FILES };

struct process {
	struct hash_link by_pid;
	int32_t pid;
	unsigned round;   /* in which it was seen last */
	bool described;   /* it is in a process tree of the trace */
	bool no_memory;   /* a kernel thread: nothing to read */
	int fds[PROCESS_FILES]; /* -1: not open */

	/* Counters as written last, so that only changes are written. */
	struct proc_counters counters;
	bool has_oom, has_times, has_dmabuf;
	int32_t oom_score_adj;
	struct proc_times times;
	uint64_t dmabuf_kb;
	/* File descriptors written, ascending; owned. */
	uint64_t *open_files;
	size_t n_open_files;
	size_t open_files_room;
};

/* Zero-initialised is ready to use. */
struct process_table {
	struct hash_map by_pid;
};

/* Kept descriptors are counted against *fds_left. */
void process_table_done(struct process_table *t, int *fds_left);

/* The process with this pid, or NULL. */
struct process *process_table_find(const struct process_table *t,
    int32_t pid);
/*
 * Finds or makes the process with this pid, owned by the table, until a sweep
 * drops it.  NULL: no memory.
 */
struct process *process_table_get(struct process_table *t, int32_t pid)
    MUST_CHECK;
/* Drops processes that were not seen in this round. */
void process_table_sweep(struct process_table *t, unsigned round,
    int *fds_left);
/* Calls fn for each process; fn must not change the table. */
void process_table_each(struct process_table *t,
    void (*fn)(struct process *p, void *arg), void *arg);

/* Forgets all that was written of p, and closes its kept files. */
void process_reset(struct process *p, int *fds_left);
/* Forgets the values that were written of p. */
void process_forget_values(struct process *p);
/*
 * Notes that an open file was written.  false: it is noted already, the limit
 * for a process is reached, or there is no memory to note it.
 */
bool process_note_open_file(struct process *p, uint64_t fd);

#endif /* CLIENT_PROBES_PROCESS_TABLE_H */
