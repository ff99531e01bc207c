/*
 * segment_details: what the catalogue has of one segment besides its row: names
 * of machines, triggers and losses.
 */
#ifndef CLIENT_ARCHIVE_FIND_SEGMENT_DETAILS_H
#define CLIENT_ARCHIVE_FIND_SEGMENT_DETAILS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct catalog;

/* Names, each once, in the order of the catalogue. */
struct detail_names {
	char **name; /* owned */
	size_t n;
};

struct segment_details {
	struct detail_names machines; /* those with a name and packets */
	struct detail_names triggers;
	struct detail_names losses;   /* sentences */
};

/* -1 with a sentence. */
int segment_details_read(struct segment_details *out, struct catalog *c,
    int64_t id, char *err, size_t err_size) MUST_CHECK;
void segment_details_done(struct segment_details *d);

#endif /* CLIENT_ARCHIVE_FIND_SEGMENT_DETAILS_H */
