/*
 * s3_store: the operations on objects that an archive needs.
 *
 * An object is put once and never replaced: every put has the condition that
 * there is none.  Each call is one request and its answer, which
 * s3_reply_done() ends, unless it says otherwise.
 */
#ifndef CLIENT_UPLOAD_S3_S3_STORE_H
#define CLIENT_UPLOAD_S3_S3_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/upload/s3/s3_answer.h"
#include "client/upload/s3/s3_http.h"
#include "transport/base/compiler.h"

/*
 * An object to be: sha256 is the checksum that it carries (S3_SHA256_HEADER),
 * which is not the body's in a description beside a segment.
 */
struct s3_object {
	const char *key;
	const char *content_type;
	const char *sha256;
};

/*
 * Puts it in one piece.  S3_EXISTS: there is one of this key.  S3_DAMAGED: the
 * body is not what body_sha256 says, or the store answered with a tag of other
 * bytes.
 */
void s3_store_put(struct s3_http *h, const struct s3_object *object,
    const struct s3_body *body, const char *body_sha256,
    struct s3_reply *reply);
void s3_store_head(struct s3_http *h, const char *key, struct s3_reply *reply);
/* The object's bytes go to sink, or into the reply. */
void s3_store_get(struct s3_http *h, const char *key,
    int (*sink)(void *arg, const char *bytes, size_t len), void *arg,
    struct s3_reply *reply);
/* after: a page's next, or NULL.  On S3_OK *page is the caller's. */
void s3_store_list(struct s3_http *h, const char *prefix, const char *after,
    struct s3_page *page, struct s3_reply *reply);

/*
 * Whether the object of a reply to s3_store_head() has this size and checksum.
 */
bool s3_store_is_same(const struct s3_reply *reply, uint64_t size,
    const char *sha256);

/* ---- in parts ---- */

/* On S3_OK *id is the caller's. */
void s3_store_begin(struct s3_http *h, const struct s3_object *object,
    char **id, struct s3_reply *reply);
/* On S3_OK the reply has the part's tag. */
void s3_store_put_part(struct s3_http *h, const char *key, const char *id,
    unsigned number, const struct s3_body *body, const char *body_sha256,
    struct s3_reply *reply);
/* Uploads of this prefix that are not completed; a page as s3_store_list(). */
void s3_store_list_uploads(struct s3_http *h, const char *prefix,
    const struct s3_page *before, struct s3_page *page,
    struct s3_reply *reply);
void s3_store_list_parts(struct s3_http *h, const char *key, const char *id,
    const char *after, struct s3_page *page, struct s3_reply *reply);
/*
 * Makes the object of n parts, if there is none of this key; etags[i] is that of
 * part i + 1.
 */
void s3_store_complete(struct s3_http *h, const char *key, const char *id,
    const char (*etags)[S3_ETAG_MAX], unsigned n, struct s3_reply *reply);
void s3_store_abort(struct s3_http *h, const char *key, const char *id,
    struct s3_reply *reply);

#endif /* CLIENT_UPLOAD_S3_S3_STORE_H */
