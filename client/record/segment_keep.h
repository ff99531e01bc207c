/*
 * segment_keep: removal of the oldest segments of a recording beyond an age or a
 * sum of bytes (--keep-for, --keep).
 *
 * Segments are those that segment_keep_add() names, and those in the folder
 * that say that they are of a recording of this name: so that a recording that
 * is begun again keeps no more.  A pinned segment stays, and counts.  Age is
 * counted from the segment's end, by a clock that cannot be set.  Belongs to one
 * thread; calls block.
 */
#ifndef CLIENT_RECORD_SEGMENT_KEEP_H
#define CLIENT_RECORD_SEGMENT_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct record_live;
struct segment_keep;

/* Everything is borrowed. */
struct segment_keep_setup {
	struct record_live *live; /* is told of failures */
	int folder_fd;
	const char *folder; /* its name, for sentences */
	const char *recording;
	uint64_t bytes; /* 0: no limit */
	uint64_t ms;    /* 0: no limit */
};

/* NULL: no memory. */
struct segment_keep *segment_keep_new(const struct segment_keep_setup *setup)
    MUST_CHECK;
/* NULL is fine. */
void segment_keep_free(struct segment_keep *k);

/* Takes in the segments of earlier runs.  -1 with a sentence in err. */
int segment_keep_adopt(struct segment_keep *k, char *err, size_t err_size)
    MUST_CHECK;
/* A segment is whole; path: below the folder. */
void segment_keep_add(struct segment_keep *k, const char *path,
    uint64_t bytes);
/*
 * Removes what is too old or too much; to be called now and then.  in_use: a
 * path that stays for now, or NULL.
 */
void segment_keep_look(struct segment_keep *k, const char *in_use);

#endif /* CLIENT_RECORD_SEGMENT_KEEP_H */
