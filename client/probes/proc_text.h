/*
 * proc_text: parses the kernel's texts about a process, in /proc/PID.
 *
 * Pure.  Processes choose their own names and arguments: any byte may be
 * anywhere in them.
 */
#ifndef CLIENT_PROBES_PROC_TEXT_H
#define CLIENT_PROBES_PROC_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;

/* The kernel's limit on nested pid namespaces. */
#define PROC_NSPID_MAX 32
/* The kernel keeps 15 bytes of a name, but shows more of kernel workers'. */
#define PROC_NAME_MAX 64

/* Identity of a process, out of /proc/PID/status. */
struct proc_status {
	int32_t pid; /* of a thread: its tid */
	int32_t tgid;
	int32_t ppid;
	int32_t uid; /* real */
	int kthread; /* 0 or 1; -1: the kernel does not say */
	char name[PROC_NAME_MAX]; /* unescaped, valid UTF-8, terminated */
	/* Ids in the namespaces below the first. */
	int32_t nspid[PROC_NSPID_MAX];
	size_t n_nspid;
};

/* -1 when there is no pid or process id in it. */
int proc_text_status(const char *text, size_t len, struct proc_status *out)
    MUST_CHECK;

/* Memory counters, from status and smaps_rollup. */
enum proc_counter {
	PROC_VM_SIZE,
	PROC_VM_RSS,
	PROC_RSS_ANON,
	PROC_RSS_FILE,
	PROC_RSS_SHMEM,
	PROC_VM_SWAP,
	PROC_VM_LOCKED,
	PROC_VM_HWM,
	PROC_SMR_RSS,
	PROC_SMR_PSS,
	PROC_SMR_PSS_ANON,
	PROC_SMR_PSS_FILE,
	PROC_SMR_PSS_SHMEM,
	PROC_SMR_SWAP_PSS,
	PROC_COUNTERS,
};

struct proc_counters {
	uint32_t present; /* bit per enum proc_counter */
	uint64_t kb[PROC_COUNTERS];
};

/* The counters of a status text; a kernel thread has none. */
void proc_text_memory(const char *text, size_t len, struct proc_counters *out);
/* Adds the counters of a smaps_rollup text. */
void proc_text_smaps(const char *text, size_t len, struct proc_counters *out);

/* /proc/PID/stat, in clock ticks. */
struct proc_times {
	uint64_t user;
	uint64_t kernel;
	uint64_t start; /* since boot */
};
int proc_text_stat(const char *text, size_t len, struct proc_times *out)
    MUST_CHECK;

/*
 * /proc/PID/cmdline: appends each argument that is not empty as a string
 * field.  Replaces bytes of text that are not UTF-8.  Returns the number of
 * arguments appended.
 */
size_t proc_text_cmdline(char *text, size_t len, struct pb_writer *w,
    uint32_t field);

/* A name as in /proc/PID/comm, to out as in struct proc_status. */
void proc_text_comm(const char *text, size_t len, char out[PROC_NAME_MAX]);

/* Replaces every byte that is no part of valid UTF-8 by '?'. */
void proc_text_clean(char *text, size_t len);

#endif /* CLIENT_PROBES_PROC_TEXT_H */
