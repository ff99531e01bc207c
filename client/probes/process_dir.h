/*
 * process_dir: the files of processes below /proc.
 */
#ifndef CLIENT_PROBES_PROCESS_DIR_H
#define CLIENT_PROBES_PROCESS_DIR_H

#include <dirent.h>
#include <stdint.h>

#include "client/probes/probe.h"
#include "client/probes/process_table.h"
#include "client/probes/text_file.h"
#include "transport/base/compiler.h"

struct process_dir {
	struct probe_env *env; /* borrowed */
	DIR *proc;             /* owned */
	struct text text;      /* of the last file read */
};

/* -1 with errno set when /proc cannot be opened. */
int process_dir_init(struct process_dir *d, struct probe_env *env) MUST_CHECK;
void process_dir_done(struct process_dir *d);

/* The next entry of a folder that is a number; 0 at the end. */
int32_t process_dir_next(DIR *folder);
/* A folder of a process ("task", "fd"); NULL when it cannot be seen. */
DIR *process_dir_open(struct process_dir *d, int32_t pid, const char *name)
    MUST_CHECK;

/* Reads a file into d->text. 0, or -1. */
int process_dir_read(struct process_dir *d, int32_t pid, const char *name)
    MUST_CHECK;
/*
 * Reads a file and keeps it open if there are descriptors for that.  A kept
 * file belongs to the process it was opened for: when that is gone the read
 * fails, also if the pid is another's by now.
 */
int process_dir_read_kept(struct process_dir *d, struct process *p,
    enum process_file which) MUST_CHECK;
/* Closes a kept file. */
void process_dir_drop(struct process_dir *d, struct process *p,
    enum process_file which);

#endif /* CLIENT_PROBES_PROCESS_DIR_H */
