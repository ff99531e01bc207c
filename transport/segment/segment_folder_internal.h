/*
 * segment_folder_internal: for segment_folder.c and segment_recover.c alone.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_FOLDER_INTERNAL_H
#define TRANSPORT_SEGMENT_SEGMENT_FOLDER_INTERNAL_H

#include "transport/segment/segment_folder.h"

struct segment_folder {
	struct segment_folder_options o;
	int fd;
	int lock;
};

/* Opens the lock file of a folder.  -1: errno; there is none, or not for us. */
int segment_folder_lock_file(int folder) MUST_CHECK;

/*
 * Closes all parts below the folder at their last whole packet.  Those that
 * cannot be closed stay as they are, and so do those of other folders for
 * segments, above this one or in it, that are in use.  The caller has the
 * exclusive lock.
 */
void segment_recover(struct segment_folder *f);

#endif /* TRANSPORT_SEGMENT_SEGMENT_FOLDER_INTERNAL_H */
