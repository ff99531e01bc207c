/*
 * s3_place: where objects lie ("s3://bucket/prefix" behind an endpoint), and
 * the URLs of requests for them, encoded as Signature Version 4 wants it.
 *
 * Pure: opens no connection and knows no credentials.
 */
#ifndef CLIENT_UPLOAD_S3_S3_PLACE_H
#define CLIENT_UPLOAD_S3_S3_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* The longest key that S3 takes, in bytes. */
#define S3_KEY_MAX 1024u
#define S3_BUCKET_MAX 63u

/* Strings are owned, and never NULL in a place that was made. */
struct s3_place {
	char *base;   /* "https://host:port/bucket/" or "https://host/" */
	char *bucket;
	char *prefix; /* "" or "a/b/" */
	char *region;
};

/*
 * url: "s3://bucket" or "s3://bucket/prefix".  endpoint: "https://host[:port]",
 * the bucket being the first part of the path, or with "%bucket" in the host's
 * name; NULL: Amazon's of the region.  region NULL: us-east-1.  -1 with a
 * sentence in err; *p is then empty.
 */
int s3_place_init(struct s3_place *p, const char *url, const char *endpoint,
    const char *region, char *err, size_t err_size) MUST_CHECK;
void s3_place_done(struct s3_place *p);

/* Whether requests leave this machine without TLS. */
bool s3_place_is_bare(const struct s3_place *p);

/*
 * The key of a segment: prefix and its path within the archive, "/" between.
 * -1 with a sentence: too long, not UTF-8, or with an empty part, "." or "..",
 * which proxies fold.
 */
int s3_place_key(const struct s3_place *p, const char *path,
    char key[S3_KEY_MAX + 1], char *err, size_t err_size) MUST_CHECK;

/* The key in "s3://bucket/key", borrowed; NULL: of another bucket. */
const char *s3_place_key_of(const struct s3_place *p, const char *url);
/* "s3://bucket/key", the caller's; NULL: no memory. */
char *s3_place_url_of(const struct s3_place *p, const char *key) MUST_CHECK;

/* Parameters of one request. */
#define S3_PARAMETERS_MAX 8u

/* A parameter of a query; value NULL: as "". */
struct s3_parameter {
	const char *name;
	const char *value;
};

/*
 * The URL of a request, the caller's; NULL: no memory.  key "": the bucket.
 * Parameters are sorted by name, as the signature wants them.
 */
char *s3_place_request(const struct s3_place *p, const char *key,
    const struct s3_parameter *parameters, size_t n) MUST_CHECK;

/* Undoes %XX in place, as in keys of a listing; a lone % stays. */
void s3_unescape(char *text);

#endif /* CLIENT_UPLOAD_S3_S3_PLACE_H */
