#include "client/archive/index/archive_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "transport/base/failure.h"

/* Folders in folders: more is a mistake, or meant to be one. */
#define DEPTH_MAX 32u

int64_t
archive_files_mtime(const struct stat *st)
{
	const int64_t second = INT64_C(1000000000);

	/* Owners set the time of a file to any year. */
	if (st->st_mtim.tv_sec >= INT64_MAX / second ||
	    st->st_mtim.tv_sec <= INT64_MIN / second)
		return 0;
	return st->st_mtim.tv_sec * second + st->st_mtim.tv_nsec;
}

/* The walk through a tree: where it is, and what it has found. */
struct walk {
	struct archive_files *out;
	char path[PATH_MAX]; /* below the root, of the folder or file */
	char *err;
	size_t err_size;
};

/* NULL: no memory. */
static struct archive_file *
add_path(struct archive_files *f, const char *path)
{
	struct archive_file *grown;
	size_t cap;

	if (f->n == f->cap) {
		cap = f->cap == 0 ? 256 : f->cap * 2;
		grown = realloc(f->all, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		f->all = grown;
		f->cap = cap;
	}
	f->all[f->n] = (struct archive_file){ .path = strdup(path) };
	return f->all[f->n].path != NULL ? &f->all[f->n++] : NULL;
}

static int
add(struct walk *w, const struct stat *st)
{
	struct archive_file *one = add_path(w->out, w->path);

	if (one == NULL)
		return FAILURE(w->err, w->err_size, "out of memory");
	one->bytes = (uint64_t)st->st_size;
	one->mtime_ns = archive_files_mtime(st);
	return 0;
}

/* A folder that cannot be read hides its files, and no others. */
static int
note_unread(struct walk *w, size_t len, int why)
{
	struct archive_files *f = w->out;

	/* A disk's own folder, which only root may read. */
	if (len == 0 && strcmp(w->path, "lost+found") == 0)
		return 0;
	if (f->n_unread++ > 0)
		return 0;
	f->unread_error = why;
	f->unread = strdup(w->path);
	return f->unread != NULL ? 0 : FAILURE(w->err, w->err_size,
	    "out of memory");
}

static int walk_folder(struct walk *w, int fd, size_t len, unsigned depth);

static int
take_name(struct walk *w, int fd, const char *name, size_t len, unsigned depth)
{
	struct stat st;
	int n, below;

	n = snprintf(w->path + len, sizeof(w->path) - len, "%s%s",
	    len == 0 ? "" : "/", name);
	if (n < 0 || (size_t)n >= sizeof(w->path) - len)
		return 0;
	/* Gone meanwhile: retention runs beside us. */
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return archive_path_is_segment(w->path) ? add(w, &st) : 0;
	if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
		return 0;
	below = openat(fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0 && errno == ENOENT)
		return 0;
	if (below < 0)
		return note_unread(w, len, errno);
	return walk_folder(w, below, len + (size_t)n, depth + 1);
}

/* Takes fd. */
static int
walk_folder(struct walk *w, int fd, size_t len, unsigned depth)
{
	const struct dirent *d;
	DIR *dir;
	int rc = 0;

	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return FAILURE(w->err, w->err_size, "out of memory");
	}
	while (rc == 0 && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] != '.')
			rc = take_name(w, fd, d->d_name, len, depth);
	}
	closedir(dir);
	return rc;
}

static int
by_path(const void *a, const void *b)
{
	const struct archive_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int
archive_files_list(struct archive_files *out, int fd, char *err,
    size_t err_size)
{
	struct walk w = { .out = out, .err = err, .err_size = err_size };
	int top;

	*out = (struct archive_files){ .n = 0 };
	/* A descriptor of its own, as the walk moves its position. */
	if ((top = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return FAILURE(err, err_size, "cannot read the folder: %s",
		    strerror(errno));
	if (walk_folder(&w, top, 0, 0) < 0) {
		archive_files_done(out);
		return -1;
	}
	if (out->n > 0)
		qsort(out->all, out->n, sizeof(*out->all), by_path);
	return 0;
}

/* A walk through the catalogue's rows into a list. */
struct rows {
	struct archive_files *out;
	bool no_memory;
};

static bool
keep_row(void *arg, const struct catalog_row *row)
{
	struct rows *r = arg;
	struct archive_file *one = add_path(r->out, row->path);

	r->no_memory = one == NULL;
	if (one == NULL)
		return false;
	one->bytes = row->bytes;
	one->mtime_ns = row->mtime_ns;
	return true;
}

int
archive_files_catalogued(struct archive_files *out, struct catalog *c,
    char *err, size_t err_size)
{
	struct rows r = { .out = out };
	int rc;

	*out = (struct archive_files){ .n = 0 };
	rc = catalog_each(c, "WHERE s.local ORDER BY s.path", NULL, 0,
	    keep_row, &r, err, err_size);
	if (rc == 0 && r.no_memory)
		rc = FAILURE(err, err_size, "out of memory");
	if (rc < 0)
		archive_files_done(out);
	return rc;
}

void
archive_files_done(struct archive_files *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		free(f->all[i].path);
	free(f->all);
	free(f->unread);
	*f = (struct archive_files){ .n = 0 };
}

static bool
mark_path(char out[PATH_MAX], const char *path)
{
	int n = snprintf(out, PATH_MAX, "%s%s", path, ARCHIVE_PIN_SUFFIX);

	return n > 0 && n < PATH_MAX;
}

bool
archive_files_is_pinned(int fd, const char *path)
{
	char mark[PATH_MAX];

	return mark_path(mark, path) &&
	    faccessat(fd, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Syncs the folder that has this path, so that the name is on the disk. */
static int
sync_folder_of(int fd, const char *path)
{
	char folder[PATH_MAX];
	char *slash;
	int at, rc;

	snprintf(folder, sizeof(folder), "%s", path);
	if ((slash = strrchr(folder, '/')) != NULL)
		*slash = '\0';
	at = openat(fd, slash == NULL ? "." : folder,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -1;
	rc = fsync(at);
	close(at);
	return rc;
}

int
archive_files_pin(int fd, const char *path, bool pinned, char *err,
    size_t err_size)
{
	char mark[PATH_MAX];
	int made, rc = 0;

	if (!mark_path(mark, path))
		return FAILURE(err, err_size, "%s: the name is too long", path);
	if (pinned) {
		made = openat(fd, mark, O_WRONLY | O_CREAT | O_NOFOLLOW |
		    O_CLOEXEC, 0644);
		rc = made < 0 ? -1 : close(made);
	} else if (unlinkat(fd, mark, 0) < 0 && errno != ENOENT) {
		rc = -1;
	}
	if (rc < 0 || sync_folder_of(fd, path) < 0)
		return FAILURE(err, err_size, "%s: %s", mark, strerror(errno));
	return 0;
}
