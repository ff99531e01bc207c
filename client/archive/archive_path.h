/* archive_path: which paths below an archive's folder are segments'.  Pure. */
#ifndef CLIENT_ARCHIVE_ARCHIVE_PATH_H
#define CLIENT_ARCHIVE_ARCHIVE_PATH_H

#include <stdbool.h>

/*
 * Whether a path is a segment's, by its name alone: it stays below the folder
 * and has a trace file's suffix, and no part of it is hidden.  Hostile paths are
 * refused by this, ".." among them.
 */
bool archive_path_is_segment(const char *path);

#endif /* CLIENT_ARCHIVE_ARCHIVE_PATH_H */
