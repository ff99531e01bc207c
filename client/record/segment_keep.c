#include "client/record/segment_keep.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/index/archive_files.h"
#include "client/archive/join/segment_reader.h"
#include "client/record/live_line.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/loop/loop.h"

struct kept {
	TAILQ_ENTRY(kept) of_keep;
	char *path; /* below the folder */
	uint64_t bytes;
	int64_t since_ms; /* by loop_now_ms(); < 0: before the boot */
	bool failed;      /* cannot be removed, which is told once */
};

struct segment_keep {
	struct segment_keep_setup with;
	TAILQ_HEAD(, kept) kept; /* the oldest first */
	uint64_t bytes;
	bool told_pinned;
};

struct segment_keep *
segment_keep_new(const struct segment_keep_setup *setup)
{
	struct segment_keep *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->with = *setup;
	TAILQ_INIT(&k->kept);
	return k;
}

static void
forget(struct segment_keep *k, struct kept *one)
{
	TAILQ_REMOVE(&k->kept, one, of_keep);
	k->bytes -= one->bytes;
	free(one->path);
	free(one);
}

void
segment_keep_free(struct segment_keep *k)
{
	struct kept *one;

	if (k == NULL)
		return;
	while ((one = TAILQ_FIRST(&k->kept)) != NULL)
		forget(k, one);
	free(k);
}

/* -1: no memory. */
static int
add(struct segment_keep *k, const char *path, uint64_t bytes, int64_t since_ms)
{
	struct kept *one = calloc(1, sizeof(*one));

	if (one == NULL || (one->path = strdup(path)) == NULL) {
		free(one);
		return -1;
	}
	one->bytes = bytes;
	one->since_ms = since_ms;
	TAILQ_INSERT_TAIL(&k->kept, one, of_keep);
	k->bytes += bytes;
	return 0;
}

void
segment_keep_add(struct segment_keep *k, const char *path, uint64_t bytes)
{
	if (k->with.bytes == 0 && k->with.ms == 0)
		return;
	if (add(k, path, bytes, (int64_t)loop_now_ms()) != 0)
		record_live_say(k->with.live, "out of memory: %s/%s will not "
		    "be removed", k->with.folder, path);
}

/* ---- segments of earlier runs ---- */

/* A file that cannot be read, or that is no segment, is none of ours. */
static bool
is_ours(const struct segment_keep *k, const char *path)
{
	struct segment_head head;
	char *whole, err[256];
	bool ours;

	if (asprintf(&whole, "%s/%s", k->with.folder, path) < 0)
		return false;
	ours = segment_head_read(&head, whole, err, sizeof(err)) == 0;
	free(whole);
	if (!ours)
		return false;
	ours = head.is_segment && head.recording != NULL &&
	    strcmp(head.recording, k->with.recording) == 0;
	segment_head_done(&head);
	return ours;
}

static int
by_age(const void *a, const void *b)
{
	const struct archive_file *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* A file of the future, by a clock that was set back, is of now. */
static int64_t
age_ms(const struct archive_file *f)
{
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
	    f->mtime_ns / 1000000;
	return age > 0 ? age : 0;
}

int
segment_keep_adopt(struct segment_keep *k, char *err, size_t err_size)
{
	struct archive_files files;
	int64_t now = (int64_t)loop_now_ms();
	int rc = 0;
	size_t i;

	if (k->with.bytes == 0 && k->with.ms == 0)
		return 0;
	if (archive_files_list(&files, k->with.folder_fd, err, err_size) != 0)
		return -1;
	if (files.n > 0)
		qsort(files.all, files.n, sizeof(*files.all), by_age);
	for (i = 0; i < files.n && rc == 0; i++) {
		const struct archive_file *f = &files.all[i];

		if (is_ours(k, f->path) &&
		    add(k, f->path, f->bytes, now - age_ms(f)) != 0)
			rc = FAILURE(err, err_size, "out of memory");
	}
	archive_files_done(&files);
	return rc;
}

/* ---- removing ---- */

static bool
is_too_much(const struct segment_keep *k, const struct kept *one)
{
	if (k->with.bytes != 0 && k->bytes > k->with.bytes)
		return true;
	return k->with.ms != 0 &&
	    (int64_t)loop_now_ms() - one->since_ms > (int64_t)k->with.ms;
}

/* A file that another program has removed is gone as well. */
static void
remove_one(struct segment_keep *k, struct kept *one)
{
	if (unlinkat(k->with.folder_fd, one->path, 0) == 0 || errno == ENOENT) {
		forget(k, one);
		return;
	}
	if (!one->failed)
		record_live_say(k->with.live, "%s/%s cannot be removed: %s",
		    k->with.folder, one->path, strerror(errno));
	one->failed = true;
}

static void
tell_pinned(struct segment_keep *k, uint64_t pinned)
{
	char has[HUMAN_TEXT_MAX], limit[HUMAN_TEXT_MAX];
	bool over = k->with.bytes != 0 && pinned > k->with.bytes;

	if (over && !k->told_pinned)
		record_live_say(k->with.live, "pinned segments alone have %s, "
		    "and --keep says %s: all others are removed",
		    human_bytes(has, pinned), human_bytes(limit,
		    k->with.bytes));
	k->told_pinned = over;
}

void
segment_keep_look(struct segment_keep *k, const char *in_use)
{
	struct kept *one, *next;
	uint64_t pinned = 0;

	for (one = TAILQ_FIRST(&k->kept); one != NULL; one = next) {
		next = TAILQ_NEXT(one, of_keep);
		if (!is_too_much(k, one))
			return;
		if (in_use != NULL && strcmp(one->path, in_use) == 0)
			continue;
		if (archive_files_is_pinned(k->with.folder_fd, one->path))
			pinned += one->bytes;
		else
			remove_one(k, one);
	}
	tell_pinned(k, pinned);
}
