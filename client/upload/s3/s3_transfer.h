/*
 * s3_transfer: brings a file into the store as an object, once, whole and under
 * one key, however often it is tried and wherever an attempt ended.
 *
 * What a former attempt left is found in the store, not remembered: an object
 * of this key, whose size and checksum say whether it is this file; and parts,
 * whose tags are the MD5 of their bytes, which are not sent again.
 */
#ifndef CLIENT_UPLOAD_S3_S3_TRANSFER_H
#define CLIENT_UPLOAD_S3_S3_TRANSFER_H

#include <stdint.h>

#include "client/upload/s3/s3_answer.h"
#include "client/upload/s3/s3_http.h"

/* A larger file goes in parts. */
#define S3_WHOLE_MAX (64u * 1024 * 1024)
/* Bounds of S3 for parts, but for the last. */
#define S3_PART_MIN  (5u * 1024 * 1024)
#define S3_PARTS_MAX 10000u

struct s3_file {
	int fd;
	uint64_t size;
	const char *sha256; /* as the catalogue has it, in hex */
};

struct s3_sent {
	enum s3_outcome outcome;
	uint64_t retry_after_ms;
	char etag[S3_ETAG_MAX]; /* S3_OK */
	uint64_t bytes;         /* that went over the wire, of parts or whole */
	char why[512];          /* unless S3_OK */
};

/*
 * S3_OK: the store has it, from now or from before.  S3_EXISTS: another object
 * has this key.  S3_DAMAGED: the file is not what sha256 says.  All others: try
 * later.
 */
void s3_transfer_send(struct s3_http *h, const char *key,
    const struct s3_file *file, uint64_t part_bytes, struct s3_sent *sent);
/*
 * Sends the description of a file: small, of memory; sha256 is the
 * file's, and says whether one that is there already is of the same file.
 */
void s3_transfer_describe(struct s3_http *h, const char *key,
    const char *text, const char *sha256, struct s3_sent *sent);

/* Bytes of each part but the last. */
uint64_t s3_transfer_part_size(uint64_t size, uint64_t part_bytes);

#endif /* CLIENT_UPLOAD_S3_S3_TRANSFER_H */
