#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/command/actions.h"
#include "client/archive/command/choice.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/index/segment_index.h"
#include "client/archive/segment_entry.h"
#include "client/text/progress.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/sink/sink_path.h"

#define COPY_BYTES (256u << 10)
/* In the folder, while an export writes there. */
#define LOCK_FILE  ".export"

/* Outcome for one segment. */
enum { COPIED, THERE, FAILED, NO_ROOM };

struct export {
	const struct archive_open *from;
	const char *out;
	int folder;         /* descriptor of out */
	int lock;           /* descriptor */
	struct catalog *to; /* out's own */
	uint64_t copied, there, bytes;
	struct progress progress; /* in bytes */
	uint64_t done;            /* bytes of the segments before this one */
};

/* A copy that has no name yet that counts: hidden, so no segment. */
struct copy {
	int parent; /* O_PATH */
	const char *name;
	char hidden[NAME_MAX + 1];
	char path[PATH_MAX]; /* of the hidden name, below the folder */
};

/* ---- bytes ---- */

/* -1: errno; *reading: of which side. */
static int
copy_bytes(struct export *e, int from, int to, bool *reading)
{
	static uint8_t buf[COPY_BYTES];
	uint64_t copied = 0;
	ssize_t n, done, at;

	for (;;) {
		*reading = true;
		if ((n = read(from, buf, sizeof(buf))) <= 0)
			return (int)n;
		*reading = false;
		for (at = 0; at < n; at += done)
			if ((done = write(to, buf + at, (size_t)(n - at))) < 0)
				return -1;
		copied += (uint64_t)n;
		progress_show(&e->progress, e->done + copied);
	}
}

/* The time too: retention goes by it. */
static int
copy_file(struct export *e, int from, int to, bool *reading)
{
	struct timespec times[2];
	struct stat st;

	*reading = true;
	if (fstat(from, &st) < 0)
		return -1;
	if (copy_bytes(e, from, to, reading) < 0)
		return -1;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return futimens(to, times) < 0 || fdatasync(to) < 0 ? -1 : 0;
}

static bool
is_full(int e)
{
	return e == ENOSPC || e == EDQUOT;
}

/* ---- one segment ---- */

static int
begin_copy(struct copy *c, const struct export *e, const char *path,
    const struct stat *st, char *err, size_t err_size)
{
	const struct sink_owner owner = {
		.mode = st->st_mode & 0777, .uid = -1, .gid = -1,
	};
	int n, at, fd;

	c->parent = sink_path_make_parent(e->folder, path, &owner, &c->name);
	if (c->parent < 0) {
		n = errno;
		(void)FAILURE(err, err_size, "%s/%s: %s", e->out, path,
		    strerror(n));
		errno = n;
		return -1;
	}
	at = (int)(c->name - path);
	n = snprintf(c->hidden, sizeof(c->hidden), ".%s.copy", c->name);
	if (n < 0 || (size_t)n >= sizeof(c->hidden) ||
	    snprintf(c->path, sizeof(c->path), "%.*s%s", at, path,
		c->hidden) >= (int)sizeof(c->path)) {
		errno = ENAMETOOLONG;
		(void)FAILURE(err, err_size, "%s/%s: %s", e->out, path,
		    strerror(ENAMETOOLONG));
		return -1;
	}
	/* A copy that was interrupted is begun anew. */
	if ((unlinkat(c->parent, c->hidden, 0) < 0 && errno != ENOENT) ||
	    (fd = sink_path_create_at(c->parent, c->hidden, &owner)) < 0) {
		n = errno;
		(void)FAILURE(err, err_size, "%s/%s: %s", e->out, c->path,
		    strerror(n));
		errno = n;
		return -1;
	}
	return fd;
}

/* -1: errno; EEXIST where there is a file of this name. */
static int
give_name(const struct copy *c)
{
	if (renameat2(c->parent, c->hidden, c->parent, c->name,
	    RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* A file system without that, such as NFS, has links. */
	if (linkat(c->parent, c->hidden, c->parent, c->name, 0) < 0)
		return -1;
	return unlinkat(c->parent, c->hidden, 0);
}

/*
 * The copy is described from its own bytes, and has its name only when these
 * are the ones that the catalogue knows.
 */
static int
check_and_name(const struct export *e, const struct chosen *s,
    const struct copy *c, char *err, size_t err_size)
{
	struct segment_entry entry = { .bytes = 0 };
	int rc;

	rc = segment_index_file(&entry, e->folder, c->path, err, err_size);
	if (rc > 0)
		rc = FAILURE(err, err_size, "%s/%s was removed meanwhile",
		    e->out, c->path);
	if (rc == 0 && memcmp(entry.sha256, s->sha256, SEGMENT_SHA256) != 0)
		rc = FAILURE(err, err_size, "%s is not as the catalogue has "
		    "it, and is not copied; see tributary archive verify",
		    s->path);
	if (rc == 0 && give_name(c) < 0)
		rc = FAILURE(err, err_size, "%s/%s: %s", e->out, s->path,
		    strerror(errno));
	if (rc == 0 && s->pinned)
		rc = archive_files_pin(e->folder, s->path, true, err,
		    err_size);
	if (rc == 0) {
		free(entry.path);
		entry.path = strdup(s->path);
		rc = entry.path == NULL ?
		    FAILURE(err, err_size, "out of memory") :
		    catalog_put(e->to, &entry, s->pinned, err, err_size);
	}
	segment_entry_done(&entry);
	return rc;
}

static int
copy_segment(struct export *e, const struct chosen *s, int from,
    const struct stat *st, char *err, size_t err_size)
{
	struct copy c = { .parent = -1 };
	int fd, e_no, status = FAILED;
	bool reading = false;

	if ((fd = begin_copy(&c, e, s->path, st, err, err_size)) < 0) {
		status = is_full(errno) ? NO_ROOM : FAILED;
	} else if (copy_file(e, from, fd, &reading) < 0) {
		e_no = errno;
		status = !reading && is_full(e_no) ? NO_ROOM : FAILED;
		(void)FAILURE(err, err_size, "%s%s%s: %s", reading ? "" :
		    e->out, reading ? "" : "/", s->path, strerror(e_no));
	} else if (check_and_name(e, s, &c, err, err_size) == 0) {
		status = COPIED;
	}
	if (fd >= 0) {
		close(fd);
		if (status != COPIED)
			(void)unlinkat(c.parent, c.hidden, 0);
	}
	if (c.parent >= 0)
		close(c.parent);
	return status;
}

/* 1: it is there, whole; 0: there is none; -1: another file is there. */
static int
is_there(const struct export *e, const struct chosen *s, char *err,
    size_t err_size)
{
	struct segment_entry entry = { .bytes = 0 };
	int rc;

	if (faccessat(e->folder, s->path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		return 0;
	rc = segment_index_file(&entry, e->folder, s->path, err, err_size);
	if (rc == 0 && memcmp(entry.sha256, s->sha256, SEGMENT_SHA256) != 0)
		rc = FAILURE(err, err_size, "%s/%s is another file, and "
		    "stays: export to another folder", e->out, s->path);
	if (rc == 0 && s->pinned)
		rc = archive_files_pin(e->folder, s->path, true, err,
		    err_size);
	if (rc == 0)
		rc = catalog_put(e->to, &entry, archive_files_is_pinned(
		    e->folder, s->path), err, err_size);
	segment_entry_done(&entry);
	return rc == 0 ? 1 : rc > 0 ? 0 : -1;
}

static int
export_one(struct export *e, const struct chosen *s, char *err,
    size_t err_size)
{
	struct stat st;
	int from, rc;

	if (!s->local) {
		(void)FAILURE(err, err_size, "%s is only in the store", s->path);
		return FAILED;
	}
	if ((rc = is_there(e, s, err, err_size)) != 0)
		return rc > 0 ? THERE : FAILED;
	from = openat(e->from->folder, s->path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)FAILURE(err, err_size, "%s: %s", s->path, from < 0 ?
		    strerror(errno) : "no regular file");
		rc = FAILED;
	} else {
		rc = copy_segment(e, s, from, &st, err, err_size);
	}
	if (from >= 0)
		close(from);
	return rc;
}

/* ---- all of them ---- */

/* -1: the other folder is full. */
static int
export_each(struct export *e, const struct choice *c, int *status)
{
	char err[ARCHIVE_ERROR_SIZE];
	size_t i;

	for (i = 0; i < c->n; e->done += c->all[i++].bytes) {
		progress_show(&e->progress, e->done);
		switch (export_one(e, &c->all[i], err, sizeof(err))) {
		case COPIED:
			e->copied++;
			e->bytes += c->all[i].bytes;
			continue;
		case THERE:
			e->there++;
			continue;
		case NO_ROOM:
			progress_clear(&e->progress);
			(void)archive_refuse(err);
			return -1;
		default:
			progress_clear(&e->progress);
			*status = archive_refuse(err);
		}
	}
	return 0;
}

static int
export_all(struct export *e, const struct choice *c)
{
	int status = ARCHIVE_DONE, rc;
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < c->n; i++)
		bytes += c->all[i].bytes;
	progress_begin_bytes(&e->progress, "copied", bytes);
	rc = export_each(e, c, &status);
	progress_clear(&e->progress);
	if (rc < 0)
		return archive_refuse("make room, and export again: what is "
		    "there is not copied twice");
	/* The names, too, are on the disk then. */
	if (syncfs(e->folder) < 0)
		status = archive_refuse(strerror(errno));
	return status;
}

/*
 * Keeps other exports out.  The file is removed under its lock, so one without
 * a name is another's that has ended.
 */
static int
lock_target(struct export *e, char *err, size_t err_size)
{
	struct stat st;

	e->lock = openat(e->folder, LOCK_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (e->lock < 0)
		return FAILURE(err, err_size, "%s/" LOCK_FILE ": %s", e->out,
		    strerror(errno));
	if (flock(e->lock, LOCK_EX | LOCK_NB) == 0 &&
	    fstat(e->lock, &st) == 0 && st.st_nlink > 0)
		return 0;
	close(e->lock);
	e->lock = -1;
	return FAILURE(err, err_size, "another export writes into %s", e->out);
}

static int
open_target(struct export *e, char *err, size_t err_size)
{
	struct stat a, b;

	if (mkdir(e->out, 0777) < 0 && errno != EEXIST)
		return FAILURE(err, err_size, "%s: %s", e->out,
		    strerror(errno));
	e->folder = open(e->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->folder < 0 || fstat(e->folder, &a) < 0 ||
	    fstat(e->from->folder, &b) < 0)
		return FAILURE(err, err_size, "%s: %s", e->out,
		    strerror(errno));
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return FAILURE(err, err_size, "%s is the archive itself: "
		    "export to another folder", e->out);
	if (lock_target(e, err, err_size) < 0)
		return -1;
	e->to = catalog_open(e->out, CATALOG_WRITE, err, err_size);
	return e->to == NULL ? -1 : 0;
}

int
archive_export(const struct archive_open *a)
{
	struct export e = { .from = a, .out = a->options->out, .folder = -1,
		.lock = -1 };
	char err[ARCHIVE_ERROR_SIZE], text[HUMAN_TEXT_MAX];
	int status = ARCHIVE_NOT_DONE;
	struct choice c;

	if (choice_make(&c, a) < 0)
		return ARCHIVE_NOT_DONE;
	if (open_target(&e, err, sizeof(err)) < 0) {
		(void)archive_refuse(err);
	} else {
		status = export_all(&e, &c);
		printf("%" PRIu64 " segment%s copied to %s (%s)", e.copied,
		    human_s(e.copied), e.out, human_bytes(text, e.bytes));
		if (e.there > 0)
			printf(", %" PRIu64 " there already", e.there);
		putchar('\n');
	}
	catalog_close(e.to);
	if (e.lock >= 0) {
		(void)unlinkat(e.folder, LOCK_FILE, 0);
		close(e.lock);
	}
	if (e.folder >= 0)
		close(e.folder);
	choice_done(&c);
	return status;
}
