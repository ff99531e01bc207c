/*
 * segment_sender: one segment of an archive into the store: the file, then its
 * description, then the catalogue's mark that it is there.
 *
 * Each of the three does nothing where it was done before, so an attempt can end
 * anywhere and be made again.
 */
#ifndef CLIENT_UPLOAD_SEGMENT_SENDER_H
#define CLIENT_UPLOAD_SEGMENT_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/upload/s3/s3_transfer.h"

struct catalog;
struct s3_http;
struct s3_place;

struct segment_sender {
	struct catalog *catalog; /* borrowed, as all */
	struct s3_http *http;
	const struct s3_place *place;
	const char *folder;
	uint64_t part_bytes;
	bool lists; /* in unlisted.h's table, for a shared catalogue */
};

/* Owned by its user; stays when the catalogue changes. */
struct segment_row {
	int64_t id;
	char *path;
	uint64_t bytes;
	char sha256[S3_HEX_SHA256 + 1];
};

/* The catalogue's words for a segment's place in the store. */
#define SEGMENT_STORED "stored"
#define SEGMENT_FAILED "failed"

/*
 * Sends it.  The outcomes S3_EXISTS, S3_DAMAGED and S3_ABSENT (the file is gone)
 * are the segment's own; all others but S3_OK are the store's.  sent->why says
 * more.
 */
void segment_send(const struct segment_sender *s,
    const struct segment_row *row, struct s3_sent *sent);

#endif /* CLIENT_UPLOAD_SEGMENT_SENDER_H */
