#include "client/upload/s3/s3_transfer.h"

#include <stdio.h>
#include <string.h>

#include "client/upload/s3/s3_parts.h"
#include "client/upload/s3/s3_store.h"
#define TRACE_TYPE "application/octet-stream"
#define JSON_TYPE  "application/json"

static void
take_reply(struct s3_sent *sent, const struct s3_reply *reply)
{
	sent->outcome = reply->outcome;
	sent->retry_after_ms = reply->retry_after_ms;
	memcpy(sent->etag, reply->etag, sizeof(sent->etag));
	memcpy(sent->why, reply->why, sizeof(sent->why));
}

/*
 * S3_OK: the store has this object; S3_EXISTS: another one of this key;
 * S3_ABSENT: none.  size UINT64_MAX: any.
 */
static void
look(struct s3_http *h, const char *key, uint64_t size, const char *sha256,
    struct s3_sent *sent)
{
	struct s3_reply reply;

	s3_store_head(h, key, &reply);
	take_reply(sent, &reply);
	if (reply.outcome == S3_OK && !s3_store_is_same(&reply,
		size == UINT64_MAX ? reply.size : size, sha256)) {
		sent->outcome = S3_EXISTS;
		snprintf(sent->why, sizeof(sent->why), "the store has another "
		    "object of this name (%llu bytes, %s%s), which is not "
		    "replaced: move one of the two, or set another prefix",
		    (unsigned long long)reply.size, reply.sha256[0] != '\0' ?
		    "SHA-256 " : "without a checksum of ours", reply.sha256);
	}
	s3_reply_done(&reply);
}

/* A condition did not hold. */
static void
look_again(struct s3_http *h, const char *key, uint64_t size,
    const char *sha256, struct s3_sent *sent)
{
	look(h, key, size, sha256, sent);
	/* Deleted between the two answers: the next attempt puts it. */
	if (sent->outcome == S3_ABSENT)
		sent->outcome = S3_BUSY;
}

static void
send_whole(struct s3_http *h, const struct s3_object *object,
    const struct s3_file *file, struct s3_sent *sent)
{
	const struct s3_body body = { .fd = file->fd, .size = file->size };
	struct s3_reply reply;

	s3_store_put(h, object, &body, file->sha256, &reply);
	take_reply(sent, &reply);
	if (reply.outcome == S3_OK)
		sent->bytes = file->size;
	if (reply.outcome == S3_DAMAGED)
		snprintf(sent->why, sizeof(sent->why), "the file is not what "
		    "the catalogue says (tributary archive verify has more): "
		    "%.300s", reply.why);
	s3_reply_done(&reply);
	if (sent->outcome == S3_EXISTS)
		look_again(h, object->key, file->size, file->sha256, sent);
}

static void
send_parts(struct s3_http *h, const struct s3_object *object,
    const struct s3_file *file, uint64_t part_bytes, struct s3_sent *sent)
{
	struct s3_reply reply;

	/* After hours of sending it would be late to learn of it. */
	look(h, object->key, file->size, file->sha256, sent);
	if (sent->outcome == S3_OK || sent->outcome == S3_EXISTS)
		s3_parts_abort(h, object->key);
	if (sent->outcome != S3_ABSENT)
		return;
	s3_parts_send(h, object, file,
	    s3_transfer_part_size(file->size, part_bytes), &sent->bytes,
	    &reply);
	take_reply(sent, &reply);
	s3_reply_done(&reply);
	/* Also for the tag, which not every store says when it is done. */
	if (sent->outcome == S3_OK || sent->outcome == S3_EXISTS)
		look_again(h, object->key, file->size, file->sha256, sent);
}

uint64_t
s3_transfer_part_size(uint64_t size, uint64_t part_bytes)
{
	const uint64_t mib = 1024 * 1024;
	uint64_t least = (size + S3_PARTS_MAX - 1) / S3_PARTS_MAX;

	least = (least + mib - 1) / mib * mib;
	if (part_bytes < S3_PART_MIN)
		part_bytes = S3_PART_MIN;
	return part_bytes > least ? part_bytes : least;
}

void
s3_transfer_send(struct s3_http *h, const char *key,
    const struct s3_file *file, uint64_t part_bytes, struct s3_sent *sent)
{
	const struct s3_object object = { key, TRACE_TYPE, file->sha256 };

	*sent = (struct s3_sent){ 0 };
	if (file->size <= S3_WHOLE_MAX)
		send_whole(h, &object, file, sent);
	else
		send_parts(h, &object, file, part_bytes, sent);
}

void
s3_transfer_describe(struct s3_http *h, const char *key, const char *text,
    const char *sha256, struct s3_sent *sent)
{
	const struct s3_object object = { key, JSON_TYPE, sha256 };
	const struct s3_body body = { .bytes = text, .size = strlen(text) };
	char body_sha256[S3_HEX_SHA256 + 1];
	struct s3_reply reply;

	*sent = (struct s3_sent){ .outcome = S3_BUSY };
	if (s3_digest_of(text, body.size, body_sha256) != 0)
		return;
	s3_store_put(h, &object, &body, body_sha256, &reply);
	take_reply(sent, &reply);
	s3_reply_done(&reply);
	if (sent->outcome == S3_EXISTS)
		look_again(h, key, UINT64_MAX, sha256, sent);
}
