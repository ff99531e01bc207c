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

/* The next entry of a folder that is a positive number; 0 at the end. */
int32_t process_dir_next(DIR *folder);
/*
 * Opens a folder of a process ("task", "fd"), for the caller to close; NULL
 * when that is impossible: no access, or the process has ended.
 */
DIR *process_dir_open(struct process_dir *d, int32_t pid, const char *name)
    MUST_CHECK;

/* Reads a file of a process into d->text.  0, or -1 with errno. */
int process_dir_read(struct process_dir *d, int32_t pid, const char *name)
    MUST_CHECK;
/*
 * Reads a file into d->text and keeps it open while env->fds_left allows.  A
 * kept file stays that of the process it was opened for: when the process has
 * ended the read fails, also if its pid was given to another one.
 */
int process_dir_read_kept(struct process_dir *d, struct process *p,
    enum process_file which) MUST_CHECK;
/* Closes a kept file. */
void process_dir_drop(struct process_dir *d, struct process *p,
    enum process_file which);

#endif /* CLIENT_PROBES_PROCESS_DIR_H */
