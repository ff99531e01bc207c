/*
 * catalog_copy: rows of an archive's own catalogue into a shared one, under the
 * name of their collector.
 */
#ifndef CLIENT_ARCHIVE_CATALOG_COPY_H
#define CLIENT_ARCHIVE_CATALOG_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;

#define CATALOG_COLLECTOR_MAX 256

/*
 * The collector's name: the last folder above its segments in the store, "c1" of
 * s3://traces/fleet/c1, or else the bucket.  url: of that folder, or, with the
 * segment's path below it, of a segment.  -1 with a sentence: none, or one that
 * cannot begin a path.
 */
int catalog_collector(char out[CATALOG_COLLECTOR_MAX], const char *url,
    const char *path, char *err, size_t err_size) MUST_CHECK;

enum catalog_copied {
	CATALOG_COPY_FAILED = -1, /* err has a sentence; nothing has changed */
	CATALOG_COPY_ADDED,
	CATALOG_COPY_KNOWN,   /* it was there, of the same place in the store */
	CATALOG_COPY_REFUSED, /* the segment's own fault; err has a sentence */
};

/*
 * Copies the segment `id`, which a store has, and all that belongs to it, in one
 * transaction, or in the caller's of `to`; `from` is in none.  Twice is once.
 */
enum catalog_copied catalog_copy(struct catalog *to, struct catalog *from,
    int64_t id, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_CATALOG_COPY_H */
