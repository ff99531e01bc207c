#include "client/upload/store_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/upload/s3/s3_place.h"
#include "client/upload/s3/s3_store.h"
#include "protos/json_out.h"
#include "transport/base/backoff.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

/* Whether the store is asked once more, after a pause. */
static bool
wait_for_store(const struct store_read *r, unsigned tries,
    const struct s3_reply *reply)
{
	uint64_t ms = backoff_ms(tries, r->min_retry_ms, r->max_retry_ms, 0);
	struct timespec pause;

	if (reply->outcome != S3_BUSY || tries >= STORE_READ_TRIES || *r->stop)
		return false;
	if (ms < reply->retry_after_ms)
		ms = reply->retry_after_ms;
	pause.tv_sec = (time_t)(ms / 1000);
	pause.tv_nsec = (long)(ms % 1000) * 1000000;
	(void)nanosleep(&pause, NULL);
	return !*r->stop;
}

/* ---- an object ---- */

struct arriving {
	int fd;
	int error; /* errno of a write; 0: none */
	struct s3_digest sha256;
};

static int
arriving_cb(void *arg, const char *bytes, size_t len)
{
	struct arriving *a = arg;
	ssize_t n;

	s3_digest_add(&a->sha256, bytes, len);
	for (; len > 0; bytes += n, len -= (size_t)n) {
		n = write(a->fd, bytes, len);
		if (n < 0) {
			a->error = errno;
			return -1;
		}
	}
	return 0;
}

static void
get_once(const struct store_read *r, const char *key, struct arriving *a,
    struct s3_reply *reply)
{
	s3_digest_done(&a->sha256);
	s3_digest_init(&a->sha256, S3_SHA256);
	if (ftruncate(a->fd, 0) != 0 || lseek(a->fd, 0, SEEK_SET) != 0)
		a->error = errno;
	s3_store_get(r->http, key, arriving_cb, a, reply);
}

/* Checks the bytes that came; -1 with a sentence. */
static int
check_arrived(const struct arriving *a, const struct s3_reply *reply,
    const char *url, const char *sha256, char *err, size_t err_size)
{
	char hex[S3_HEX_SHA256 + 1];

	if (a->error != 0)
		return FAILURE(err, err_size, "cannot write it: %s",
		    strerror(a->error));
	if (reply->outcome == S3_ABSENT)
		return FAILURE(err, err_size, "%s is not in the store", url);
	if (reply->outcome != S3_OK)
		return FAILURE(err, err_size, "%s: %s", url, reply->why);
	s3_digest_hex(&a->sha256, hex, sizeof(hex));
	if (reply->sha256[0] != '\0' && strcasecmp(hex, reply->sha256) != 0)
		return FAILURE(err, err_size, "%s is damaged: its SHA-256 is "
		    "%s, and was %s when it was sent", url, hex,
		    reply->sha256);
	if (sha256 != NULL && strcasecmp(hex, sha256) != 0)
		return FAILURE(err, err_size, "%s is another file: its SHA-256 "
		    "is %s, and should be %s", url, hex, sha256);
	return 0;
}

static int
get_into(const struct store_read *r, const char *url, const char *sha256,
    int fd, char *err, size_t err_size)
{
	const char *key = s3_place_key_of(r->place, url);
	struct arriving a = { .fd = fd };
	struct s3_reply reply;
	unsigned tries = 0;
	int rc;

	if (key == NULL)
		return FAILURE(err, err_size, "\"%s\" is no object of the "
		    "bucket: write s3://%s/key", url, r->place->bucket);
	get_once(r, key, &a, &reply);
	while (a.error == 0 && wait_for_store(r, ++tries, &reply)) {
		s3_reply_done(&reply);
		get_once(r, key, &a, &reply);
	}
	rc = check_arrived(&a, &reply, url, sha256, err, err_size);
	s3_reply_done(&reply);
	s3_digest_done(&a.sha256);
	return rc;
}

static mode_t
new_file_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

static int
get_named(const struct store_read *r, const char *url, const char *sha256,
    const char *file, char *err, size_t err_size)
{
	char *temporary;
	int fd = -1, rc = -1;

	if (asprintf(&temporary, "%s.XXXXXX", file) < 0)
		return FAILURE(err, err_size, "no memory");
	if ((fd = mkostemp(temporary, O_CLOEXEC)) < 0) {
		snprintf(err, err_size, "cannot write %s: %s", file,
		    strerror(errno));
		goto out;
	}
	rc = get_into(r, url, sha256, fd, err, err_size);
	if (rc == 0 && (fchmod(fd, new_file_mode()) != 0 || close(fd) != 0 ||
		rename(temporary, file) != 0))
		rc = FAILURE(err, err_size, "cannot write %s: %s", file,
		    strerror(errno));
	else if (rc != 0)
		close(fd);
	if (rc != 0)
		(void)unlink(temporary);
out:
	free(temporary);
	return rc;
}

int
store_read_object(const struct store_read *r, const char *url,
    const char *sha256, const char *file, char *err, size_t err_size)
{
	struct stat st;

	if (strcmp(file, "-") != 0)
		return get_named(r, url, sha256, file, err, err_size);
	if (fstat(STDOUT_FILENO, &st) != 0 || !S_ISREG(st.st_mode))
		return FAILURE(err, err_size, "standard output is no file: "
		    "what has the wrong checksum could not be taken back");
	return get_into(r, url, sha256, STDOUT_FILENO, err, err_size);
}

/* ---- descriptions ---- */

#define SUFFIX ".json"

/* One line, as a description of ours is; spaces where it has others. */
static bool
make_line(char *text, size_t len)
{
	size_t i;

	if (len == 0 || len > STORE_READ_DESCRIPTION_MAX || text[0] != '{' ||
	    strlen(text) != len)
		return false;
	for (i = 0; i < len; i++)
		if (text[i] == '\n' || text[i] == '\r')
			text[i] = ' ';
	return true;
}

static void
print_description(const struct store_read *r, const struct s3_entry *segment,
    const char *text, FILE *out)
{
	char *url = s3_place_url_of(r->place, segment->key);
	struct json_out j = { .out = out };

	if (url == NULL)
		return;
	json_object(&j, NULL);
	json_string(&j, "url", url);
	json_string(&j, "etag", segment->etag);
	json_uint(&j, "size", segment->size);
	fprintf(out, ",\"description\":%s", text);
	json_object_end(&j);
	fputc('\n', out);
	free(url);
}

static int
read_description(const struct store_read *r, const struct s3_entry *segment,
    const char *key, FILE *out, char *err, size_t err_size)
{
	struct s3_reply reply;
	unsigned tries = 0;
	int rc = 0;

	s3_store_get(r->http, key, NULL, NULL, &reply);
	while (wait_for_store(r, ++tries, &reply)) {
		s3_reply_done(&reply);
		s3_store_get(r->http, key, NULL, NULL, &reply);
	}
	if (reply.outcome == S3_OK && make_line(reply.body, reply.body_len))
		print_description(r, segment, reply.body, out);
	else if (reply.outcome == S3_OK)
		log_warn("%s is no description: left out", key);
	else if (reply.outcome != S3_ABSENT)
		rc = FAILURE(err, err_size, "%s: %s", key, reply.why);
	s3_reply_done(&reply);
	return rc;
}

static int
list_page(const struct store_read *r, const char *after, struct s3_page *page,
    char *err, size_t err_size)
{
	struct s3_reply reply;
	unsigned tries = 0;
	int rc = 0;

	s3_store_list(r->http, r->place->prefix, after, page, &reply);
	while (wait_for_store(r, ++tries, &reply)) {
		s3_reply_done(&reply);
		s3_store_list(r->http, r->place->prefix, after, page, &reply);
	}
	if (reply.outcome != S3_OK)
		rc = FAILURE(err, err_size, "cannot list s3://%s/%s: %s",
		    r->place->bucket, r->place->prefix, reply.why);
	s3_reply_done(&reply);
	return rc;
}

/*
 * The segment that an entry, "x.pftrace.json", describes: mostly the one before
 * it, as a listing is in the order of keys; else the store is asked for it.
 * False: there is none.
 */
static bool
find_described(const struct store_read *r, const struct s3_entry *entry,
    const struct s3_entry *before, struct s3_entry *segment)
{
	size_t len = strlen(entry->key) - strlen(SUFFIX);
	struct s3_reply reply;
	bool found;

	entry->key[len] = '\0';
	if (before != NULL && strcmp(before->key, entry->key) == 0) {
		*segment = *before;
		entry->key[len] = SUFFIX[0];
		return true;
	}
	s3_store_head(r->http, entry->key, &reply);
	*segment = (struct s3_entry){ .size = reply.size };
	memcpy(segment->etag, reply.etag, sizeof(segment->etag));
	found = reply.outcome == S3_OK &&
	    (segment->key = strdup(entry->key)) != NULL;
	s3_reply_done(&reply);
	entry->key[len] = SUFFIX[0];
	return found;
}

static bool
is_description(const char *key)
{
	size_t len = strlen(key);

	return len > strlen(SUFFIX) &&
	    strcmp(key + len - strlen(SUFFIX), SUFFIX) == 0;
}

static int
read_page(const struct store_read *r, const struct s3_page *page, FILE *out,
    char *err, size_t err_size)
{
	const struct s3_entry *e, *before;
	struct s3_entry segment;
	int rc = 0;

	for (e = page->entries; e < page->entries + page->n && rc == 0; e++) {
		before = e > page->entries ? e - 1 : NULL;
		if (!is_description(e->key) ||
		    !find_described(r, e, before, &segment))
			continue;
		rc = read_description(r, &segment, e->key, out, err, err_size);
		if (before == NULL || segment.key != before->key)
			free(segment.key);
	}
	return rc;
}

int
store_read_descriptions(const struct store_read *r, FILE *out, char *err,
    size_t err_size)
{
	struct s3_page page = { 0 }, next;
	int rc;

	do {
		rc = list_page(r, page.next, &next, err, err_size);
		s3_page_done(&page);
		if (rc != 0)
			return -1;
		page = next;
		rc = read_page(r, &page, out, err, err_size);
	} while (rc == 0 && page.more);
	s3_page_done(&page);
	if (rc == 0 && fflush(out) != 0)
		rc = FAILURE(err, err_size, "cannot print: %s",
		    strerror(errno));
	return rc;
}
