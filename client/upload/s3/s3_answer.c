#include "client/upload/s3/s3_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/upload/s3/s3_place.h"
#include "client/upload/s3/xml_walk.h"

/* ---- single values ---- */

static int
error_cb(void *arg, const char *path, const char *text)
{
	struct s3_error *e = arg;

	if (strcmp(path, "Error/Code") == 0)
		snprintf(e->code, sizeof(e->code), "%s", text);
	else if (strcmp(path, "Error/Message") == 0)
		snprintf(e->message, sizeof(e->message), "%s", text);
	return 0;
}

bool
s3_error_read(struct s3_error *e, const char *body, size_t len)
{
	*e = (struct s3_error){ 0 };
	if (xml_walk(body, len, error_cb, e) == 0 && e->code[0] != '\0')
		return true;
	*e = (struct s3_error){ 0 };
	return false;
}

void
s3_etag_copy(char out[S3_ETAG_MAX], const char *text)
{
	size_t len = strlen(text);

	if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
		text++;
		len -= 2;
	}
	/* A tag is written into XML again. */
	if (strcspn(text, "<>&\"") < len)
		len = 0;
	snprintf(out, S3_ETAG_MAX, "%.*s", (int)len, text);
}

static int
upload_id_cb(void *arg, const char *path, const char *text)
{
	char **id = arg;

	if (strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0)
		return 0;
	free(*id);
	return (*id = strdup(text)) != NULL ? 0 : -1;
}

char *
s3_upload_id_read(const char *body, size_t len)
{
	char *id = NULL;

	if (xml_walk(body, len, upload_id_cb, &id) == 0 && id != NULL &&
	    *id != '\0')
		return id;
	free(id);
	return NULL;
}

static int
completed_cb(void *arg, const char *path, const char *text)
{
	bool *is_completed = arg;

	if (strcmp(path, "CompleteMultipartUploadResult") == 0)
		*is_completed = true;
	return 0;
}

bool
s3_is_completed(const char *body, size_t len)
{
	bool is_completed = false;

	return xml_walk(body, len, completed_cb, &is_completed) == 0 &&
	    is_completed;
}

/* ---- pages ---- */

/* Names of elements; NULL: this listing has none. */
static const struct listing {
	const char *root;
	const char *entry;
	const char *next;
	const char *next_id;
} listings[] = {
	[S3_OBJECTS] = { "ListBucketResult", "Contents",
	    "NextContinuationToken", NULL },
	[S3_UPLOADS] = { "ListMultipartUploadsResult", "Upload",
	    "NextKeyMarker", "NextUploadIdMarker" },
	[S3_PARTS] = { "ListPartsResult", "Part", "NextPartNumberMarker",
	    NULL },
};

struct reading {
	const struct listing *names;
	enum s3_listing kind;
	struct s3_page *page;
	struct s3_entry entry; /* the one under way */
	bool is_encoded;
	bool is_listing;
};

/* The rest of a path behind a prefix and a slash; NULL: it is elsewhere. */
static const char *
below(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) == 0 && path[len] == '/' ?
	    path + len + 1 : NULL;
}

static int
keep(char **slot, const char *text)
{
	free(*slot);
	return (*slot = strdup(text)) != NULL ? 0 : -1;
}

/* -1: not a decimal number that fits. */
static int
take_number(uint64_t *to, const char *text)
{
	uint64_t v = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || v > UINT64_MAX / 10 - 1)
			return -1;
		v = v * 10 + (uint64_t)(*text - '0');
	}
	*to = v;
	return 0;
}

static int
take_field(struct reading *r, const char *name, const char *text)
{
	uint64_t number;

	if (strcmp(name, "Key") == 0)
		return keep(&r->entry.key, text);
	if (strcmp(name, "UploadId") == 0)
		return keep(&r->entry.id, text);
	if (strcmp(name, "Size") == 0)
		return take_number(&r->entry.size, text);
	if (strcmp(name, "ETag") == 0)
		s3_etag_copy(r->entry.etag, text);
	if (strcmp(name, "PartNumber") != 0)
		return 0;
	if (take_number(&number, text) != 0 || number > 10000)
		return -1;
	r->entry.number = (unsigned)number;
	return 0;
}

static bool
is_whole(const struct reading *r)
{
	switch (r->kind) {
	case S3_OBJECTS:
		return r->entry.key != NULL;
	case S3_UPLOADS:
		return r->entry.key != NULL && r->entry.id != NULL;
	case S3_PARTS:
		return r->entry.number > 0;
	}
	return false;
}

static int
take_entry(struct reading *r)
{
	struct s3_page *page = r->page;
	struct s3_entry *larger;

	if (!is_whole(r) || page->n == S3_PAGE_MAX)
		return -1;
	larger = reallocarray(page->entries, page->n + 1, sizeof(*larger));
	if (larger == NULL)
		return -1;
	page->entries = larger;
	page->entries[page->n++] = r->entry;
	r->entry = (struct s3_entry){ 0 };
	return 0;
}

static int
page_cb(void *arg, const char *path, const char *text)
{
	struct reading *r = arg;
	const struct listing *names = r->names;
	const char *name, *field;

	if (strcmp(path, names->root) == 0)
		r->is_listing = true;
	if ((name = below(path, names->root)) == NULL)
		return 0;
	if ((field = below(name, names->entry)) != NULL)
		return take_field(r, field, text);
	if (strcmp(name, names->entry) == 0)
		return take_entry(r);
	if (strcmp(name, "EncodingType") == 0)
		r->is_encoded = strcmp(text, "url") == 0;
	else if (strcmp(name, "IsTruncated") == 0)
		r->page->more = strcmp(text, "true") == 0;
	else if (strcmp(name, names->next) == 0)
		return keep(&r->page->next, text);
	else if (names->next_id != NULL && strcmp(name, names->next_id) == 0)
		return keep(&r->page->next_id, text);
	return 0;
}

static void
decode(struct s3_page *page, enum s3_listing kind)
{
	size_t i;

	for (i = 0; i < page->n; i++)
		if (page->entries[i].key != NULL)
			s3_unescape(page->entries[i].key);
	if (kind == S3_UPLOADS && page->next != NULL)
		s3_unescape(page->next);
}

int
s3_page_read(struct s3_page *page, enum s3_listing kind, const char *body,
    size_t len)
{
	struct reading r = {
		.names = &listings[kind],
		.kind = kind,
		.page = page,
	};
	int rc;

	*page = (struct s3_page){ 0 };
	rc = xml_walk(body, len, page_cb, &r);
	free(r.entry.key);
	free(r.entry.id);
	if (rc != 0 || !r.is_listing || (page->more && (page->next == NULL ||
		(kind == S3_UPLOADS && page->next_id == NULL)))) {
		s3_page_done(page);
		return -1;
	}
	if (r.is_encoded)
		decode(page, kind);
	return 0;
}

void
s3_page_done(struct s3_page *page)
{
	size_t i;

	for (i = 0; i < page->n; i++) {
		free(page->entries[i].key);
		free(page->entries[i].id);
	}
	free(page->entries);
	free(page->next);
	free(page->next_id);
	*page = (struct s3_page){ 0 };
}
