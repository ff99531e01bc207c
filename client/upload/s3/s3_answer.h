/*
 * s3_answer: the bodies of a store's answers: errors, the id of an upload, and
 * pages of listings.  Input is hostile.  Pure.
 */
#ifndef CLIENT_UPLOAD_S3_S3_ANSWER_H
#define CLIENT_UPLOAD_S3_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* The code of an error ("SlowDown"), and what the store says about it. */
struct s3_error {
	char code[64];
	char message[256];
};

/* Whether the body is an error; *e is "" in both where it is none. */
bool s3_error_read(struct s3_error *e, const char *body, size_t len);

/* An entity tag, without quotes: 32 hexadecimal digits, and "-PARTS". */
#define S3_ETAG_MAX 128u

/* Removes quotes and cuts; a tag with a character of markup becomes "". */
void s3_etag_copy(char out[S3_ETAG_MAX], const char *text);

/* UploadId of InitiateMultipartUpload, the caller's; NULL: there is none. */
char *s3_upload_id_read(const char *body, size_t len) MUST_CHECK;
/*
 * Whether the body says that an object of parts was made.  Its tag is in there
 * with some stores, and is not looked at.
 */
bool s3_is_completed(const char *body, size_t len);

enum s3_listing {
	S3_OBJECTS, /* ListObjectsV2 */
	S3_UPLOADS, /* ListMultipartUploads */
	S3_PARTS,   /* ListParts */
};

/* An object, an upload that is not completed, or a part of one. */
struct s3_entry {
	char *key;  /* objects and uploads; never NULL there */
	char *id;   /* uploads */
	char etag[S3_ETAG_MAX];
	uint64_t size;
	unsigned number; /* parts: from 1 */
};

/*
 * One page.  `more`: there is another, behind next (and next_id, for uploads),
 * which are then not NULL.
 */
struct s3_page {
	struct s3_entry *entries; /* owned, with their strings */
	size_t n;
	char *next;
	char *next_id;
	bool more;
};

/* Entries of one page, more than which no store sends. */
#define S3_PAGE_MAX 10000u

/* -1: it is no such page; *page is then empty. */
int s3_page_read(struct s3_page *page, enum s3_listing kind, const char *body,
    size_t len) MUST_CHECK;
void s3_page_done(struct s3_page *page);

#endif /* CLIENT_UPLOAD_S3_S3_ANSWER_H */
