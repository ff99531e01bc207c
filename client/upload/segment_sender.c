#include "client/upload/segment_sender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/segment_json.h"
#include "client/upload/s3/s3_place.h"
#include "client/upload/unlisted.h"
#include "client/upload/upload_clock.h"

#define DESCRIPTION_SUFFIX ".json"

static void
fail(struct s3_sent *sent, enum s3_outcome outcome, const char *why)
{
	sent->outcome = outcome;
	snprintf(sent->why, sizeof(sent->why), "%s", why);
}

/* The file as the catalogue knows it; -1: *sent says why not. */
static int
open_segment(const struct segment_sender *s, const struct segment_row *row,
    struct s3_sent *sent)
{
	char path[PATH_MAX];
	struct stat st;
	int n, fd;

	n = snprintf(path, sizeof(path), "%s/%s", s->folder, row->path);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		fail(sent, S3_DAMAGED, "its path is too long");
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		fail(sent, errno == ENOENT ? S3_ABSENT : S3_DAMAGED,
		    strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == row->bytes)
		return fd;
	close(fd);
	fail(sent, S3_DAMAGED, "it has changed since it was catalogued");
	return -1;
}

static void
describe(const struct segment_sender *s, const struct segment_row *row,
    const char *key, struct s3_sent *sent)
{
	char description[S3_KEY_MAX + sizeof(DESCRIPTION_SUFFIX)];
	char *text;

	snprintf(description, sizeof(description), "%s" DESCRIPTION_SUFFIX,
	    key);
	text = segment_json_write(s->catalog, row->id, sent->why,
	    sizeof(sent->why));
	if (text == NULL) {
		sent->outcome = S3_ABSENT;
		return;
	}
	s3_transfer_describe(s->http, description, text, row->sha256, sent);
	free(text);
}

/* Has the catalogue remember that the store has it, and who is to learn it. */
static int
remember(const struct segment_sender *s, int64_t id,
    const struct catalog_stored *stored, char *err, size_t err_size)
{
	if (!s->lists)
		return catalog_set_stored(s->catalog, id, stored, err,
		    err_size);
	if (catalog_begin(s->catalog, err, err_size) != 0)
		return -1;
	if (catalog_set_stored(s->catalog, id, stored, err, err_size) == 0 &&
	    unlisted_add(s->catalog, id, err, err_size) == 0)
		return catalog_commit(s->catalog, err, err_size);
	catalog_rollback(s->catalog);
	return -1;
}

static void
mark(const struct segment_sender *s, const struct segment_row *row,
    const char *key, const char *etag, struct s3_sent *sent)
{
	char *url = s3_place_url_of(s->place, key);
	struct catalog_stored stored = {
		.state = SEGMENT_STORED,
		.url = url,
		.etag = etag,
		.at_ns = (int64_t)upload_clock_wall_ns(),
	};

	if (url == NULL)
		fail(sent, S3_BUSY, "no memory");
	else if (remember(s, row->id, &stored, sent->why,
		sizeof(sent->why)) != 0)
		sent->outcome = S3_BUSY;
	free(url);
}

void
segment_send(const struct segment_sender *s, const struct segment_row *row,
    struct s3_sent *sent)
{
	char key[S3_KEY_MAX + 1];
	struct s3_file file = { .size = row->bytes, .sha256 = row->sha256 };
	struct s3_sent described;

	*sent = (struct s3_sent){ 0 };
	if (s3_place_key(s->place, row->path, key, sent->why,
		sizeof(sent->why)) != 0 ||
	    strlen(key) + strlen(DESCRIPTION_SUFFIX) > S3_KEY_MAX) {
		sent->outcome = S3_DAMAGED;
		return;
	}
	if ((file.fd = open_segment(s, row, sent)) < 0)
		return;
	s3_transfer_send(s->http, key, &file, s->part_bytes, sent);
	close(file.fd);
	if (sent->outcome != S3_OK)
		return;
	describe(s, row, key, &described);
	if (described.outcome == S3_OK)
		mark(s, row, key, sent->etag, &described);
	sent->outcome = described.outcome;
	sent->retry_after_ms = described.retry_after_ms;
	memcpy(sent->why, described.why, sizeof(sent->why));
}
