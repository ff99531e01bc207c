#include "transport/segment/segment_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/segment/segment_folder_internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* A name with ".part" behind it. */
#define PART_NAME_MAX (NAME_MAX + 1)

/* Names that are tried for one segment: "-2" to this. */
#define ALTERNATIVES 99999u

static int
lock_file(const struct segment_folder *f, int how)
{
	int rc;

	do {
		rc = flock(f->lock, how);
	} while (rc != 0 && errno == EINTR &&
	    (f->o.give_up == NULL || !f->o.give_up(f->o.arg)));
	return rc;
}

int
segment_folder_lock_file(int folder)
{
	return openat(folder, SEGMENT_LOCK_FILE,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/*
 * Between the two locks another process may take the exclusive one: it finds
 * no parts then.
 */
static int
lock_folder(struct segment_folder *f)
{
	f->lock = segment_folder_lock_file(f->fd);
	if (f->lock < 0 && errno == ENOENT) {
		f->lock = sink_path_create_at(f->fd, SEGMENT_LOCK_FILE,
		    &f->o.owner);
		if (f->lock < 0 && errno == EEXIST)
			f->lock = segment_folder_lock_file(f->fd);
	}
	if (f->lock < 0)
		return -1;
	if (flock(f->lock, LOCK_EX | LOCK_NB) == 0)
		segment_recover(f);
	return lock_file(f, LOCK_SH);
}

struct segment_folder *
segment_folder_open(int fd, const struct segment_folder_options *o, char *err,
    size_t err_size)
{
	struct segment_folder *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		close(fd);
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	f->o = *o;
	f->fd = fd;
	if (lock_folder(f) == 0)
		return f;
	snprintf(err, err_size, "the folder for segments cannot be locked "
	    "(its file " SEGMENT_LOCK_FILE "): %s", sink_path_error(errno));
	segment_folder_free(f);
	return NULL;
}

void
segment_folder_free(struct segment_folder *f)
{
	if (f == NULL)
		return;
	if (f->lock >= 0)
		close(f->lock);
	close(f->fd);
	free(f);
}

/* Makes each folder of a path that is missing.  -1: errno. */
static int
make_all(const char *path)
{
	char part[PATH_MAX];
	const char *p = path;
	size_t n;

	do {
		p += strspn(p, "/");
		p += strcspn(p, "/");
		n = (size_t)(p - path);
		if (n >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (mkdir(part, 0777) != 0 && errno != EEXIST)
			return -1;
	} while (p[strspn(p, "/")] != '\0');
	return 0;
}

int
segment_folder_of_user(const char *path, char *err, size_t err_size)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT && *path != '\0' && make_all(path) == 0)
		fd = open(path, flags);
	if (fd >= 0)
		return fd;
	if (errno == ENOTDIR)
		return FAILURE(err, err_size, "%.200s is a file: segments go "
		    "into a folder, so name one (it is created)", path);
	return FAILURE(err, err_size, "cannot use %.200s as the folder for "
	    "segments: %s", path, strerror(errno));
}

/* ---- one file ---- */

/* False: too long for a file system. */
static bool
part_name(char out[PART_NAME_MAX], const char *name)
{
	int n = snprintf(out, PART_NAME_MAX, "%s" SEGMENT_PART, name);

	return n > 0 && n < PART_NAME_MAX;
}

static bool
exists(int parent, const char *name)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens the directory of a segment; errno. */
static int
parent_of(struct segment_folder *f, const char *path, const char **name,
    char part[PART_NAME_MAX])
{
	int parent = sink_path_make_parent(f->fd, path, &f->o.owner, name);

	if (parent >= 0 && !part_name(part, *name)) {
		close(parent);
		errno = ENAMETOOLONG;
		return -1;
	}
	return parent;
}

static void
close_quietly(int fd)
{
	int e = errno;

	close(fd);
	errno = e;
}

int
segment_folder_create(struct segment_folder *f, char path[SEGMENT_PATH_MAX])
{
	char wanted[SEGMENT_PATH_MAX], part[PART_NAME_MAX];
	const char *name;
	int parent, fd = -1;
	unsigned i;

	snprintf(wanted, sizeof(wanted), "%s", path);
	for (i = 2; fd < 0 && i <= ALTERNATIVES; i++) {
		if ((parent = parent_of(f, path, &name, part)) < 0)
			return -1;
		errno = EEXIST;
		if (!exists(parent, name))
			fd = sink_path_create_at(parent, part, &f->o.owner);
		close_quietly(parent);
		if (fd < 0 && errno != EEXIST)
			return -1;
		if (fd < 0)
			segment_path_alternative(path, wanted, i);
	}
	return fd;
}

int
segment_folder_reopen(struct segment_folder *f, const char *path)
{
	char part[PART_NAME_MAX];
	const char *name;
	int parent, fd;

	if ((parent = parent_of(f, path, &name, part)) < 0)
		return -1;
	fd = openat(parent, part,
	    O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	close_quietly(parent);
	return fd;
}

/* Some file systems know no RENAME_NOREPLACE, and some no links. */
static int
rename_to_new(int parent, const char *from, const char *to)
{
	if (syscall(SYS_renameat2, parent, from, parent, to,
	    RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (linkat(parent, from, parent, to, 0) == 0)
		return unlinkat(parent, from, 0);
	if (errno == EEXIST || exists(parent, to)) {
		errno = EEXIST;
		return -1;
	}
	return renameat(parent, from, parent, to);
}

int
segment_folder_publish(struct segment_folder *f, char path[SEGMENT_PATH_MAX])
{
	char wanted[SEGMENT_PATH_MAX], part[PART_NAME_MAX];
	const char *name = strrchr(path, '/');
	int parent, rc = -1;
	unsigned i;

	if ((parent = parent_of(f, path, &name, part)) < 0)
		return -1;
	snprintf(wanted, sizeof(wanted), "%s", path);
	for (i = 2; i <= ALTERNATIVES; i++) {
		name = strrchr(path, '/');
		name = name != NULL ? name + 1 : path;
		if ((rc = rename_to_new(parent, part, name)) == 0 ||
		    errno != EEXIST)
			break;
		segment_path_alternative(path, wanted, i);
	}
	close_quietly(parent);
	return rc;
}

void
segment_folder_remove(struct segment_folder *f, const char *path)
{
	char part[PART_NAME_MAX];
	const char *name;
	int parent;

	if ((parent = parent_of(f, path, &name, part)) < 0)
		return;
	unlinkat(parent, part, 0);
	close(parent);
}

void
segment_folder_sync(struct segment_folder *f, const char *path)
{
	char part[PART_NAME_MAX];
	const char *name, *p;
	int fd, above;

	if ((above = parent_of(f, path, &name, part)) < 0)
		return;
	/* From the file's up: each may be new in the one above it. */
	for (p = path; p != NULL; p = strchr(p, '/'), p += p != NULL) {
		fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			(void)fsync(fd);
			close(fd);
		}
		fd = openat(above, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(above);
		if ((above = fd) < 0)
			return;
	}
	close(above);
}

int
segment_folder_sync_all(struct segment_folder *f)
{
	return syncfs(f->fd);
}
