/*
 * archive_sync: brings the catalogue up to the files of its folder.
 *
 * A file whose size and time of change are the catalogue's is taken for
 * unchanged.  One transaction for each segment, so that a process that is
 * killed leaves a catalogue that is right as far as it got; several processes
 * may do this at once.
 */
#ifndef CLIENT_ARCHIVE_INDEX_ARCHIVE_SYNC_H
#define CLIENT_ARCHIVE_INDEX_ARCHIVE_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;

enum archive_change {
	ARCHIVE_UNCHANGED,
	ARCHIVE_TAKEN,  /* new, or changed */
	ARCHIVE_GONE,   /* no such file: its row went as well, if there was one */
	ARCHIVE_MOVED,  /* only in the store now: its row is not local any more */
	ARCHIVE_FAILED, /* cannot be read; its row, if any, stays */
};

/*
 * Brings the row of one path up to its file; folder: a descriptor.  full: reads
 * an unchanged file as well.  *change is set with 0.  -1 with a sentence: the
 * catalogue failed.  err holds a sentence with ARCHIVE_FAILED as well.
 */
int archive_sync_file(struct catalog *c, int folder, const char *path,
    bool full, enum archive_change *change, char *err, size_t err_size)
    MUST_CHECK;

struct archive_sync_counts {
	uint64_t unchanged, taken, gone, moved;
	uint64_t failed; /* folders that cannot be read are among them */
	uint64_t bytes; /* of the files taken */
};

struct archive_sync_ops {
	bool full;
	/* Tells of each change; why: with ARCHIVE_FAILED.  Or NULL. */
	void (*changed)(void *arg, const char *path, enum archive_change change,
	    const char *why);
	/* Says before each file how many there are before it.  Or NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	/* Asked between two files; true ends the work.  Or NULL. */
	bool (*stop)(void *arg);
	void *arg; /* borrowed */
};

/* Does so for all files of the folder, and for rows without a file. */
int archive_sync_all(struct catalog *c, int folder,
    const struct archive_sync_ops *ops, struct archive_sync_counts *out,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_ARCHIVE_SYNC_H */
