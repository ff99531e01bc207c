/*
 * s3_parts: a file as an object of many parts (multipart upload), going on
 * where a former attempt ended.  Private to this room.
 */
#ifndef CLIENT_UPLOAD_S3_S3_PARTS_H
#define CLIENT_UPLOAD_S3_S3_PARTS_H

#include <stdint.h>

struct s3_file;
struct s3_http;
struct s3_object;
struct s3_reply;

/*
 * Sends the parts that the store has not got, checks the whole file against its
 * checksum, and completes the object if there is none of its key then.  Parts
 * of part_size bytes, but for the last.  Of several uploads of this key that
 * are not completed, all but one are aborted.  *bytes: how many were sent.
 * *reply is filled in any case.
 */
void s3_parts_send(struct s3_http *h, const struct s3_object *object,
    const struct s3_file *file, uint64_t part_size, uint64_t *bytes,
    struct s3_reply *reply);

/* Aborts uploads of this key, as far as the store answers. */
void s3_parts_abort(struct s3_http *h, const char *key);

#endif /* CLIENT_UPLOAD_S3_S3_PARTS_H */
