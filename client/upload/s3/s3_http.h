/*
 * s3_http: one request to the store and its answer, by libcurl, which signs it
 * (Signature Version 4).
 *
 * A handle keeps its connection and is one thread's.  Calls block until the
 * answer is there, the connection stalls, or `stop` becomes true.  Knows no
 * operation of S3.
 */
#ifndef CLIENT_UPLOAD_S3_S3_HTTP_H
#define CLIENT_UPLOAD_S3_S3_HTTP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/upload/s3/s3_answer.h"
#include "client/upload/s3/s3_digest.h"
#include "client/upload/s3/s3_outcome.h"
#include "transport/base/compiler.h"

struct credentials;
struct s3_http;
struct s3_parameter;
struct s3_place;

/* All borrowed, and as they are at each request. */
struct s3_http_setup {
	const struct s3_place *place;
	const struct credentials *credentials;
	const char *ca_file;      /* NULL: the system's authorities */
	uint64_t max_bytes_per_s; /* 0: as fast as it goes */
	uint64_t stall_ms;        /* a connection without a byte is given up */
	/* From a signal handler; NULL: none. */
	const volatile sig_atomic_t *stop;
	/*
	 * Called about once a second meanwhile, with the bytes of the body that
	 * went or came so far, and all of them, 0: not known; or NULL.
	 */
	void (*tick)(void *arg, uint64_t moved, uint64_t all);
	void *tick_arg;
};

enum s3_method { S3_GET, S3_HEAD, S3_PUT, S3_POST, S3_DELETE };

/* The bytes that a request brings: of a file, or of memory where not NULL. */
struct s3_body {
	const char *bytes;
	int fd;
	int64_t offset;
	uint64_t size;
};

/* A longer Retry-After is cut to this, in seconds. */
#define S3_RETRY_AFTER_MOST (6 * 60 * 60)

#define S3_HEADERS_MAX 8u

struct s3_request {
	enum s3_method method;
	const char *key; /* "": the bucket */
	const struct s3_parameter *parameters;
	size_t n_parameters;
	const char *headers[S3_HEADERS_MAX]; /* "name: value"; NULL ends them */
	const struct s3_body *body; /* NULL: empty */
	const char *sha256;         /* of the body; NULL where that is NULL */
	/*
	 * Takes the bytes of an object; -1 ends the request as S3_STOPPED.
	 * NULL: they are kept in the answer.
	 */
	int (*sink)(void *arg, const char *bytes, size_t len);
	void *sink_arg;
};

/* The largest body that is kept in an answer. */
#define S3_KEPT_MAX (8u * 1024 * 1024)
/* Name of the object's metadata that holds a segment's checksum. */
#define S3_SHA256_HEADER "x-amz-meta-tributary-sha256"

struct s3_reply {
	enum s3_outcome outcome;
	long status;               /* 0: no answer */
	uint64_t retry_after_ms;   /* 0: not said */
	char etag[S3_ETAG_MAX];    /* "": none */
	bool is_keyed;             /* encrypted so that the tag is no MD5 */
	char sha256[S3_HEX_SHA256 + 1]; /* of S3_SHA256_HEADER; "": none */
	uint64_t size;             /* Content-Length; 0: not said */
	char sent_md5[S3_HEX_MD5 + 1]; /* of the body as it was sent; or "" */
	char *body;                /* owned, with a NUL behind it; or NULL */
	size_t body_len;
	/* Why it was not S3_OK, for people: "503 SlowDown: reduce your rate". */
	char why[512];
};

/* NULL: no memory. */
struct s3_http *s3_http_new(const struct s3_http_setup *setup) MUST_CHECK;
void s3_http_free(struct s3_http *h);

/*
 * Fills *reply whatever happens; reply->outcome says how it went.  To be ended
 * with s3_reply_done().
 */
void s3_http_ask(struct s3_http *h, const struct s3_request *request,
    struct s3_reply *reply);
void s3_reply_done(struct s3_reply *reply);

#endif /* CLIENT_UPLOAD_S3_S3_HTTP_H */
