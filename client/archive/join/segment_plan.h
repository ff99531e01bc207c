/*
 * segment_plan: trace files in the order in which they are joined: by
 * recording, number and machine.
 */
#ifndef CLIENT_ARCHIVE_JOIN_SEGMENT_PLAN_H
#define CLIENT_ARCHIVE_JOIN_SEGMENT_PLAN_H

#include <stddef.h>

#include "client/archive/join/segment_reader.h"
#include "transport/base/compiler.h"

struct segment_file {
	const char *path; /* borrowed */
	struct segment_head head;
};

/* All files of one recording. */
struct segment_recording {
	const struct segment_file *files;
	size_t n;
};

struct segment_plan {
	struct segment_file *files; /* owned, sorted */
	size_t n;
	struct segment_recording *recordings; /* owned; the oldest first */
	size_t n_recordings;
	size_t doubled; /* files left out: the same segment is there already */
};

/*
 * Reads the heads of all files; paths are borrowed for the life of the plan.
 * -1 with a sentence: a file is no trace, cannot be read, or no memory.
 */
int segment_plan_make(struct segment_plan *out, const char *const *paths,
    size_t n, char *err, size_t err_size) MUST_CHECK;
/* A zero-initialised plan is fine. */
void segment_plan_done(struct segment_plan *p);

#endif /* CLIENT_ARCHIVE_JOIN_SEGMENT_PLAN_H */
