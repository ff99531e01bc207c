#include "client/upload/s3/s3_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/upload/s3/s3_store.h"
#include "client/upload/s3/s3_transfer.h"

/* A part that the store has. */
struct known {
	char etag[S3_ETAG_MAX];
	uint64_t size; /* 0: it has not */
};

struct parts {
	struct s3_http *h;
	const struct s3_object *object;
	const struct s3_file *file;
	uint64_t part_size;
	unsigned n;
	char *id;              /* of the upload; owned */
	struct known *known;   /* owned, n of them */
	char (*etags)[S3_ETAG_MAX]; /* owned, n of them */
	struct s3_digest whole;
	struct s3_reply *reply;
	uint64_t *bytes;
};

static int
fail(struct parts *p, enum s3_outcome outcome, const char *why)
{
	p->reply->outcome = outcome;
	snprintf(p->reply->why, sizeof(p->reply->why), "%s", why);
	return -1;
}

/* ---- uploads that were begun ---- */

static void
abort_one(struct s3_http *h, const char *key, const char *id)
{
	struct s3_reply reply;

	s3_store_abort(h, key, id, &reply);
	s3_reply_done(&reply);
}

/*
 * Goes through the uploads of a key: the first goes to *keep, which may be
 * NULL, all others are aborted.  Returns -1 unless the store answered.
 */
static int
sort_out(struct s3_http *h, const char *key, char **keep,
    struct s3_reply *reply)
{
	struct s3_page page = { 0 }, next;
	bool more = true;
	size_t i;

	while (more) {
		s3_store_list_uploads(h, key, page.more ? &page : NULL, &next,
		    reply);
		s3_page_done(&page);
		if (reply->outcome != S3_OK)
			return -1;
		s3_reply_done(reply);
		page = next;
		for (i = 0; i < page.n; i++) {
			if (strcmp(page.entries[i].key, key) != 0)
				continue;
			if (keep == NULL || *keep != NULL) {
				abort_one(h, key, page.entries[i].id);
				continue;
			}
			*keep = page.entries[i].id;
			page.entries[i].id = NULL;
		}
		/* Longer keys follow this one. */
		more = page.more && (page.n == 0 ||
		    strcmp(page.entries[page.n - 1].key, key) == 0);
	}
	s3_page_done(&page);
	return 0;
}

void
s3_parts_abort(struct s3_http *h, const char *key)
{
	struct s3_reply reply;

	(void)sort_out(h, key, NULL, &reply);
	s3_reply_done(&reply);
}

static void
remember(struct parts *p, const struct s3_page *page)
{
	const struct s3_entry *e;

	for (e = page->entries; e < page->entries + page->n; e++)
		if (e->number <= p->n) {
			p->known[e->number - 1].size = e->size;
			memcpy(p->known[e->number - 1].etag, e->etag,
			    sizeof(e->etag));
		}
}

static int
list_parts(struct parts *p)
{
	struct s3_page page = { 0 }, next;
	unsigned pages = 0;

	do {
		s3_store_list_parts(p->h, p->object->key, p->id, page.next,
		    &next, p->reply);
		s3_page_done(&page);
		if (p->reply->outcome != S3_OK)
			return -1;
		s3_reply_done(p->reply);
		page = next;
		remember(p, &page);
	} while (page.more && ++pages <= S3_PARTS_MAX);
	s3_page_done(&page);
	return 0;
}

static int
find_or_begin(struct parts *p)
{
	if (sort_out(p->h, p->object->key, &p->id, p->reply) != 0)
		return -1;
	if (p->id != NULL)
		return list_parts(p);
	s3_store_begin(p->h, p->object, &p->id, p->reply);
	if (p->reply->outcome != S3_OK)
		return -1;
	s3_reply_done(p->reply);
	return 0;
}

/* ---- parts ---- */

static int
send_part(struct parts *p, unsigned i, uint64_t size, const char *sha256)
{
	const struct s3_body body = {
		.fd = p->file->fd,
		.offset = (int64_t)(i * p->part_size),
		.size = size,
	};

	s3_store_put_part(p->h, p->object->key, p->id, i + 1, &body, sha256,
	    p->reply);
	/* The upload was aborted elsewhere: the next attempt begins anew. */
	if (p->reply->outcome == S3_ABSENT)
		p->reply->outcome = S3_BUSY;
	if (p->reply->outcome != S3_OK)
		return -1;
	*p->bytes += body.size;
	memcpy(p->etags[i], p->reply->etag, sizeof(p->etags[i]));
	s3_reply_done(p->reply);
	return 0;
}

static int
read_part(struct parts *p, unsigned i, uint64_t size,
    char sha256[S3_HEX_SHA256 + 1], char md5[S3_HEX_MD5 + 1])
{
	struct s3_digest own, tag;
	struct s3_digest *const all[] = { &p->whole, &own, &tag };
	int rc = s3_digest_init(&own, S3_SHA256);

	/* Without MD5 the part is sent again. */
	s3_digest_init(&tag, S3_MD5);
	if (rc != 0)
		rc = fail(p, S3_BUSY, "no memory");
	else if (s3_digest_add_file(all, p->known[i].size == size ? 3 : 2,
		p->file->fd, (int64_t)(i * p->part_size), size) != 0)
		rc = fail(p, S3_DAMAGED, strerror(errno));
	s3_digest_hex(&own, sha256, S3_HEX_SHA256 + 1);
	s3_digest_hex(&tag, md5, S3_HEX_MD5 + 1);
	s3_digest_done(&own);
	s3_digest_done(&tag);
	return rc;
}

/* Reads the part; sends it unless the store has it. */
static int
do_part(struct parts *p, unsigned i)
{
	char sha256[S3_HEX_SHA256 + 1], md5[S3_HEX_MD5 + 1];
	uint64_t size = p->file->size - i * p->part_size;

	if (size > p->part_size)
		size = p->part_size;
	if (read_part(p, i, size, sha256, md5) != 0)
		return -1;
	if (p->known[i].size != size || strcasecmp(md5, p->known[i].etag) != 0)
		return send_part(p, i, size, sha256);
	memcpy(p->etags[i], p->known[i].etag, sizeof(p->etags[i]));
	return 0;
}

static int
check_whole(struct parts *p)
{
	char hex[S3_HEX_SHA256 + 1];

	s3_digest_hex(&p->whole, hex, sizeof(hex));
	if (strcasecmp(hex, p->file->sha256) == 0)
		return 0;
	abort_one(p->h, p->object->key, p->id);
	return fail(p, S3_DAMAGED, "the file is not what the catalogue says "
	    "(tributary archive verify has more)");
}

/*
 * Not every store heeds a condition when parts are put together, so the look
 * before it.
 */
static void
complete(struct parts *p)
{
	s3_store_head(p->h, p->object->key, p->reply);
	if (p->reply->outcome == S3_OK)
		p->reply->outcome = S3_EXISTS;
	if (p->reply->outcome == S3_EXISTS)
		abort_one(p->h, p->object->key, p->id);
	if (p->reply->outcome != S3_ABSENT)
		return;
	s3_reply_done(p->reply);
	s3_store_complete(p->h, p->object->key, p->id,
	    (const char (*)[S3_ETAG_MAX])p->etags, p->n, p->reply);
	/* Completed by an attempt whose answer was lost, or aborted. */
	if (p->reply->outcome == S3_ABSENT)
		p->reply->outcome = S3_BUSY;
	else if (p->reply->outcome == S3_EXISTS)
		abort_one(p->h, p->object->key, p->id);
}

static void
send_all(struct parts *p)
{
	unsigned i;

	if (find_or_begin(p) != 0)
		return;
	for (i = 0; i < p->n; i++)
		if (do_part(p, i) != 0)
			return;
	if (check_whole(p) == 0)
		complete(p);
}

void
s3_parts_send(struct s3_http *h, const struct s3_object *object,
    const struct s3_file *file, uint64_t part_size, uint64_t *bytes,
    struct s3_reply *reply)
{
	struct parts p = {
		.h = h,
		.object = object,
		.file = file,
		.part_size = part_size,
		.n = (unsigned)((file->size + part_size - 1) / part_size),
		.reply = reply,
		.bytes = bytes,
	};

	*reply = (struct s3_reply){ 0 };
	p.known = calloc(p.n, sizeof(*p.known));
	p.etags = calloc(p.n, sizeof(*p.etags));
	if (p.known == NULL || p.etags == NULL ||
	    s3_digest_init(&p.whole, S3_SHA256) != 0)
		(void)fail(&p, S3_BUSY, "no memory");
	else
		send_all(&p);
	s3_digest_done(&p.whole);
	free(p.known);
	free(p.etags);
	free(p.id);
}
