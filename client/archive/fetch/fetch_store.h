/*
 * fetch_store: the segments of a fetch that are only in the store: as files
 * without a name, for the time that they are joined.
 */
#ifndef CLIENT_ARCHIVE_FETCH_FETCH_STORE_H
#define CLIENT_ARCHIVE_FETCH_FETCH_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "client/archive/segment_entry.h"
#include "client/text/progress.h"
#include "transport/base/compiler.h"

struct catalog_row;

struct fetch_stored {
	char *url; /* owned */
	uint8_t sha256[SEGMENT_SHA256];
	uint64_t bytes;
	int fd;    /* -1: not brought yet */
};

/* Zero-initialised is empty. */
struct fetch_store {
	struct fetch_stored *all; /* owned */
	size_t n;
	uint64_t bytes;
	struct progress progress; /* of bringing them; the caller's */
	uint64_t brought;         /* bytes of those that are here */
};

/* Adds a segment.  -1 with a sentence: no store has it, or no memory. */
int fetch_store_want(struct fetch_store *s, const struct catalog_row *row,
    char *err, size_t err_size) MUST_CHECK;
/*
 * Brings the segment s->all[i]; settings as in store_program_get().  Returns
 * its path, the caller's, good until fetch_store_done(); NULL with a sentence.
 */
char *fetch_store_bring(struct fetch_store *s, size_t i, const char *settings,
    char *err, size_t err_size) MUST_CHECK;
void fetch_store_done(struct fetch_store *s);

#endif /* CLIENT_ARCHIVE_FETCH_FETCH_STORE_H */
