/*
 * s3_digest: SHA-256 and MD5 of bytes as hexadecimal digits, as stores compare
 * them.
 */
#ifndef CLIENT_UPLOAD_S3_S3_DIGEST_H
#define CLIENT_UPLOAD_S3_S3_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define S3_HEX_SHA256 64u
#define S3_HEX_MD5    32u

/* SHA-256 of nothing. */
extern const char s3_digest_of_nothing[S3_HEX_SHA256 + 1];

/* Owned by its user, on whichever stack; zero is no digest. */
struct s3_digest {
	void *context;
};

enum s3_digest_kind { S3_SHA256, S3_MD5 };

/*
 * -1: no memory, or this machine's policy forbids it (MD5); the digest can then
 * be used all the same, and is "".
 */
int s3_digest_init(struct s3_digest *d, enum s3_digest_kind kind);
/* Does nothing where init failed. */
void s3_digest_add(struct s3_digest *d, const void *bytes, size_t len);
/* Writes the digest so far; "" where init failed.  More may be added. */
void s3_digest_hex(const struct s3_digest *d, char *hex, size_t hex_size);
void s3_digest_done(struct s3_digest *d);

/* SHA-256 of memory, in hex.  -1: no memory. */
int s3_digest_of(const void *bytes, size_t len, char hex[S3_HEX_SHA256 + 1])
    MUST_CHECK;

/*
 * Adds a part of a file to n digests.  -1 with errno: it cannot be read, or
 * (EIO) ends before.
 */
int s3_digest_add_file(struct s3_digest *const *digests, size_t n, int fd,
    int64_t offset, uint64_t size) MUST_CHECK;

/* Bytes as lower-case hex, with a NUL. */
void s3_hex(char *hex, const uint8_t *bytes, size_t len);

#endif /* CLIENT_UPLOAD_S3_S3_DIGEST_H */
