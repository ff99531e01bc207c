#include "client/upload/s3/s3_store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/upload/s3/s3_place.h"

#define ONCE "if-none-match: *"

/* A header of a reply's lifetime on the stack of its caller. */
#define HEADER_SIZE 160u

#define PARAMETERS(r, list)                                                   \
	((r)->parameters = (list),                                            \
	    (r)->n_parameters = sizeof(list) / sizeof((list)[0]))

/* An answer that should be ours, and is not: a proxy's page, say. */
static void
is_no_answer(struct s3_reply *reply, const char *what)
{
	reply->outcome = S3_BUSY;
	snprintf(reply->why, sizeof(reply->why), "the store answered %ld, but "
	    "not with %s", reply->status, what);
}

/* 32 hexadecimal digits: the MD5 of an object that was put in one piece. */
static bool
is_md5(const char *etag)
{
	size_t i;

	for (i = 0; isxdigit((unsigned char)etag[i]); i++)
		;
	return i == S3_HEX_MD5 && etag[i] == '\0';
}

/* Tags of stores that compute others than MD5 say nothing. */
static void
check_tag(struct s3_reply *reply, const char *expected)
{
	if (reply->outcome != S3_OK || reply->is_keyed || *expected == '\0' ||
	    !is_md5(reply->etag) || strcasecmp(reply->etag, expected) == 0)
		return;
	reply->outcome = S3_DAMAGED;
	snprintf(reply->why, sizeof(reply->why), "the store has other bytes "
	    "than were sent: its tag is %s, their MD5 %s", reply->etag,
	    expected);
}

/* ---- whole objects ---- */

static void
describe(const struct s3_object *object, char type[HEADER_SIZE],
    char checksum[HEADER_SIZE])
{
	snprintf(type, HEADER_SIZE, "content-type: %s", object->content_type);
	snprintf(checksum, HEADER_SIZE, S3_SHA256_HEADER ": %s",
	    object->sha256);
}

void
s3_store_put(struct s3_http *h, const struct s3_object *object,
    const struct s3_body *body, const char *body_sha256,
    struct s3_reply *reply)
{
	char type[HEADER_SIZE], checksum[HEADER_SIZE];
	const struct s3_request request = {
		.method = S3_PUT,
		.key = object->key,
		.headers = { ONCE, type, checksum },
		.body = body,
		.sha256 = body_sha256,
	};

	describe(object, type, checksum);
	s3_http_ask(h, &request, reply);
	check_tag(reply, reply->sent_md5);
}

void
s3_store_head(struct s3_http *h, const char *key, struct s3_reply *reply)
{
	s3_http_ask(h, &(struct s3_request){ .method = S3_HEAD, .key = key },
	    reply);
}

void
s3_store_get(struct s3_http *h, const char *key,
    int (*sink)(void *arg, const char *bytes, size_t len), void *arg,
    struct s3_reply *reply)
{
	const struct s3_request request = {
		.method = S3_GET,
		.key = key,
		.sink = sink,
		.sink_arg = arg,
	};

	s3_http_ask(h, &request, reply);
}

bool
s3_store_is_same(const struct s3_reply *reply, uint64_t size,
    const char *sha256)
{
	return reply->outcome == S3_OK && reply->size == size &&
	    strcasecmp(reply->sha256, sha256) == 0;
}

/* ---- listings ---- */

static void
ask_page(struct s3_http *h, const struct s3_request *request,
    enum s3_listing kind, struct s3_page *page, struct s3_reply *reply)
{
	s3_http_ask(h, request, reply);
	if (reply->outcome == S3_OK && s3_page_read(page, kind, reply->body,
		reply->body_len) != 0)
		is_no_answer(reply, "a listing");
}

void
s3_store_list(struct s3_http *h, const char *prefix, const char *after,
    struct s3_page *page, struct s3_reply *reply)
{
	/* The last one is left out on the first page. */
	const struct s3_parameter parameters[] = {
		{ "list-type", "2" },
		{ "encoding-type", "url" },
		{ "prefix", prefix },
		{ "continuation-token", after },
	};
	struct s3_request request = { .method = S3_GET, .key = "" };

	PARAMETERS(&request, parameters);
	if (after == NULL)
		request.n_parameters--;
	ask_page(h, &request, S3_OBJECTS, page, reply);
}

void
s3_store_list_uploads(struct s3_http *h, const char *prefix,
    const struct s3_page *before, struct s3_page *page,
    struct s3_reply *reply)
{
	const struct s3_parameter parameters[] = {
		{ "uploads", NULL },
		{ "encoding-type", "url" },
		{ "prefix", prefix },
		{ "key-marker", before != NULL ? before->next : NULL },
		{ "upload-id-marker", before != NULL ? before->next_id : NULL },
	};
	struct s3_request request = { .method = S3_GET, .key = "" };

	PARAMETERS(&request, parameters);
	if (before == NULL)
		request.n_parameters -= 2;
	ask_page(h, &request, S3_UPLOADS, page, reply);
}

void
s3_store_list_parts(struct s3_http *h, const char *key, const char *id,
    const char *after, struct s3_page *page, struct s3_reply *reply)
{
	const struct s3_parameter parameters[] = {
		{ "uploadId", id },
		{ "part-number-marker", after },
	};
	struct s3_request request = { .method = S3_GET, .key = key };

	PARAMETERS(&request, parameters);
	if (after == NULL)
		request.n_parameters--;
	ask_page(h, &request, S3_PARTS, page, reply);
}

/* ---- in parts ---- */

void
s3_store_begin(struct s3_http *h, const struct s3_object *object,
    char **id, struct s3_reply *reply)
{
	char type[HEADER_SIZE], checksum[HEADER_SIZE];
	const struct s3_parameter parameters[] = { { "uploads", NULL } };
	struct s3_request request = {
		.method = S3_POST,
		.key = object->key,
		.headers = { type, checksum },
	};

	describe(object, type, checksum);
	PARAMETERS(&request, parameters);
	s3_http_ask(h, &request, reply);
	if (reply->outcome == S3_OK && (*id = s3_upload_id_read(reply->body,
		reply->body_len)) == NULL)
		is_no_answer(reply, "the id of an upload");
}

void
s3_store_put_part(struct s3_http *h, const char *key, const char *id,
    unsigned number, const struct s3_body *body, const char *body_sha256,
    struct s3_reply *reply)
{
	char digits[16];
	const struct s3_parameter parameters[] = {
		{ "partNumber", digits },
		{ "uploadId", id },
	};
	struct s3_request request = {
		.method = S3_PUT,
		.key = key,
		.body = body,
		.sha256 = body_sha256,
	};

	snprintf(digits, sizeof(digits), "%u", number);
	PARAMETERS(&request, parameters);
	s3_http_ask(h, &request, reply);
	check_tag(reply, reply->sent_md5);
	if (reply->outcome == S3_OK && reply->etag[0] == '\0')
		is_no_answer(reply, "the tag of a part");
}

/* The order of the parts, the caller's; NULL: no memory. */
static char *
make_order(const char (*etags)[S3_ETAG_MAX], unsigned n)
{
	char *text = NULL;
	size_t size;
	unsigned i;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fputs("<CompleteMultipartUpload>", out);
	for (i = 0; i < n; i++)
		fprintf(out, "<Part><PartNumber>%u</PartNumber>"
		    "<ETag>\"%s\"</ETag></Part>", i + 1, etags[i]);
	fputs("</CompleteMultipartUpload>", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void
complete(struct s3_http *h, const char *key, const char *id,
    const char *order, struct s3_reply *reply)
{
	const struct s3_parameter parameters[] = { { "uploadId", id } };
	const struct s3_body body = { .bytes = order, .size = strlen(order) };
	char sha256[S3_HEX_SHA256 + 1];
	struct s3_request request = {
		.method = S3_POST,
		.key = key,
		.headers = { ONCE, "content-type: application/xml" },
		.body = &body,
		.sha256 = sha256,
	};

	PARAMETERS(&request, parameters);
	if (s3_digest_of(order, body.size, sha256) != 0) {
		is_no_answer(reply, "anything, as there is no memory");
		return;
	}
	s3_http_ask(h, &request, reply);
	if (reply->outcome == S3_OK && !s3_is_completed(reply->body,
		reply->body_len))
		is_no_answer(reply, "an object made of parts");
}

void
s3_store_complete(struct s3_http *h, const char *key, const char *id,
    const char (*etags)[S3_ETAG_MAX], unsigned n, struct s3_reply *reply)
{
	char *order = make_order(etags, n);

	*reply = (struct s3_reply){ 0 };
	if (order == NULL) {
		is_no_answer(reply, "anything, as there is no memory");
		return;
	}
	complete(h, key, id, order, reply);
	free(order);
}

void
s3_store_abort(struct s3_http *h, const char *key, const char *id,
    struct s3_reply *reply)
{
	const struct s3_parameter parameters[] = { { "uploadId", id } };
	struct s3_request request = { .method = S3_DELETE, .key = key };

	PARAMETERS(&request, parameters);
	s3_http_ask(h, &request, reply);
}
