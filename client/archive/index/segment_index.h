/*
 * segment_index: describes a trace file for the catalogue, in one pass over it.
 *
 * A function of the file's bytes, its path and its time of change: any file has
 * a description, also one that is cut short, damaged or no trace at all
 * (verdict and problem say so).  Input is hostile.  Knows no catalogue.
 */
#ifndef CLIENT_ARCHIVE_INDEX_SEGMENT_INDEX_H
#define CLIENT_ARCHIVE_INDEX_SEGMENT_INDEX_H

#include <stddef.h>

#include "transport/base/compiler.h"

struct segment_entry;

/*
 * Describes the regular file at path below the folder that is open as fd.
 * out: zero-initialised; for segment_entry_done() in any case.  1: there is no
 * such file (any more).  -1 with a sentence: it cannot be read, it changed
 * meanwhile, or no memory.
 */
int segment_index_file(struct segment_entry *out, int fd, const char *path,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_SEGMENT_INDEX_H */
