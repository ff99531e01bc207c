#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/archive/archive_path.h"
#include "client/archive/catalog.h"
#include "client/archive/index/archive_files.h"
#include "client/archive/index/archive_sync.h"
#include "client/archiver/keeper_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/segment/segment_folder.h"
#include "transport/sink/sink_path.h"

/* Rows that are compared with files at a time. */
#define ROWS_MAX 512u

/* A path has no room for many more. */
#define DEPTH_MAX 64

/* Grace of an empty folder: a file may be about to be made in it. */
#define EMPTY_FOLDER_MS 3600000u

/* ---- one file ---- */

static void
tell(struct keeper *k, const char *path, enum archive_change change,
    const char *why)
{
	bool taken = change == ARCHIVE_TAKEN;

	if (change == ARCHIVE_FAILED) {
		keeper_fail(k, "%s", why);
		return;
	}
	if (taken)
		log_debug("catalogued %s", path);
	else
		log_info("%s is gone", path);
	k->changed = true;
	pthread_mutex_lock(&k->lock);
	k->view.catalogued += taken;
	k->view.forgotten += !taken;
	pthread_mutex_unlock(&k->lock);
}

static bool
ignore_row(void *arg, const struct catalog_row *row)
{
	return false;
}

void
keeper_look_file(struct keeper *k, const char *path)
{
	enum archive_change change;
	char err[ARCHIVER_ERROR_SIZE];
	int known;

	known = catalog_find(k->catalog, path, ignore_row, NULL, err,
	    sizeof(err));
	if (known < 0 || archive_sync_file(k->catalog, k->fd, path, false,
	    &change, err, sizeof(err)) != 0)
		keeper_fail(k, "%s", err);
	else if (change != ARCHIVE_UNCHANGED &&
	    (change != ARCHIVE_GONE || known > 0))
		tell(k, path, change, err);
}

/* ---- folders ---- */

/* DT_UNKNOWN: neither file nor folder, or it cannot be asked. */
static unsigned char
type_of(DIR *d, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG :
	    DT_UNKNOWN;
}

static void walk(struct keeper *k, int fd, const char *path, int depth);

static void
visit(struct keeper *k, DIR *d, const struct dirent *e, const char *path,
    int depth)
{
	unsigned char type = type_of(d, e);
	char *below;
	int fd;

	if (e->d_name[0] == '.' || asprintf(&below, "%s%s%s", path,
	    path[0] != '\0' ? "/" : "", e->d_name) < 0)
		return;
	if (type == DT_REG && archive_path_is_segment(below)) {
		keeper_look_file(k, below);
		/* A first look at many files takes long. */
		keeper_retain(k);
	} else if (type == DT_DIR && depth < DEPTH_MAX) {
		fd = openat(dirfd(d), e->d_name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			walk(k, fd, below, depth + 1);
		else if (errno != ENOENT)
			keeper_fail(k, "cannot look into %s: %s", below,
			    strerror(errno));
	}
	free(below);
}

/* Folders of days that are over. */
static void
remove_if_idle(struct keeper *k, int fd, const char *path)
{
	struct stat st;
	const char *name;
	int parent;

	if (path[0] == '\0' || fstat(fd, &st) != 0 ||
	    (uint64_t)st.st_mtim.tv_sec * 1000 + EMPTY_FOLDER_MS >
	    keeper_wall_ms())
		return;
	if ((parent = sink_path_open_parent(k->fd, path, true, &name)) < 0)
		return;
	/* Fails where anything is in it. */
	(void)unlinkat(parent, name, AT_REMOVEDIR);
	close(parent);
}

/* Takes fd, a descriptor of the folder. */
static void
walk(struct keeper *k, int fd, const char *path, int depth)
{
	bool is_empty = true;
	struct dirent *e;
	DIR *d;

	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while (!work_queue_is_stopped(k->queue) && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0)
			continue;
		is_empty = false;
		visit(k, d, e, path, depth);
	}
	if (is_empty)
		remove_if_idle(k, dirfd(d), path);
	closedir(d);
}

/* ---- rows without a file ---- */

struct row_list {
	char *paths[ROWS_MAX]; /* owned */
	size_t n;
};

static bool
take_path(void *arg, const struct catalog_row *row)
{
	struct row_list *l = arg;

	if ((l->paths[l->n] = strdup(row->path)) == NULL)
		return false;
	return ++l->n < ROWS_MAX;
}

/* False: there is nothing behind *from, or it cannot be read. */
static bool
look_at_some_rows(struct keeper *k, char **from, const char *end)
{
	const struct catalog_value between[] = {
		CATALOG_STR(*from), CATALOG_STR(end),
	};
	char err[ARCHIVER_ERROR_SIZE];
	struct row_list l = { .n = 0 };
	size_t i;

	if (catalog_each(k->catalog, "WHERE s.path > ? AND s.path < ? AND"
	    " s.local ORDER BY s.path", between, 2, take_path, &l, err,
	    sizeof(err)) != 0)
		keeper_fail(k, "%s", err);
	for (i = 0; i < l.n; i++) {
		keeper_look_file(k, l.paths[i]);
		free(*from);
		*from = l.paths[i];
	}
	return l.n == ROWS_MAX && !work_queue_is_stopped(k->queue);
}

/* Paths below a folder lie between "folder/" and "folder0": '0' follows '/'. */
static void
look_at_rows(struct keeper *k, const char *folder)
{
	char *from, *end;

	if (asprintf(&from, "%s%s", folder, folder[0] != '\0' ? "/" : "") < 0)
		return;
	if (asprintf(&end, "%s%s", folder, folder[0] != '\0' ? "0" :
	    "\xff") >= 0) {
		while (look_at_some_rows(k, &from, end))
			;
		free(end);
	}
	free(from);
}

void
keeper_look_folder(struct keeper *k, const char *path)
{
	const char *name;
	int fd = -1, parent;

	if (path[0] == '\0') {
		fd = openat(k->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else if ((parent = sink_path_open_parent(k->fd, path, true,
	    &name)) >= 0) {
		fd = openat(parent, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(parent);
	}
	if (fd >= 0)
		walk(k, fd, path, 0);
	look_at_rows(k, path);
}

/* ---- parts ---- */

static void
tell_recovered(const char *path, void *arg)
{
	struct keeper *k = arg;

	log_warn("%s was left by a crash: closed at its last whole packet",
	    path);
	pthread_mutex_lock(&k->lock);
	k->view.recovered++;
	pthread_mutex_unlock(&k->lock);
}

static bool
is_stopped(void *arg)
{
	struct keeper *k = arg;

	return work_queue_is_stopped(k->queue);
}

void
keeper_recover(struct keeper *k)
{
	const struct segment_folder_options o = {
		.owner = { .uid = -1, .gid = -1 },
		.give_up = is_stopped,
		.recovered = tell_recovered,
		.arg = k,
	};
	struct segment_folder *f;
	char err[ARCHIVER_ERROR_SIZE];
	int fd;

	fd = openat(k->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if ((f = segment_folder_open(fd, &o, err, sizeof(err))) == NULL)
		keeper_fail(k, "%s", err);
	segment_folder_free(f);
}
