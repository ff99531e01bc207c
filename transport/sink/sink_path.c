#include "transport/sink/sink_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/base/failure.h"

/*
 * Whether the path is relative, has no `..` and ends in a name that can be
 * created.  openat2() itself refuses paths that lead outside; refusing `..`
 * altogether gives both ways of resolving the same answer, and keeps the one
 * without openat2() safe.
 */
static bool
path_is_plain(const char *path)
{
	const char *p = path;
	size_t n;

	if (*p == '/' || *p == '\0')
		return false;
	for (;;) {
		n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.')
			return false;
		if (p[n] == '\0')
			return n > 0 && !(n == 1 && p[0] == '.');
		p += n + 1;
	}
}

static int
open_beneath(int dirfd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
		    RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	do {
		fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		/* EAGAIN: something was renamed meanwhile */
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd;
}

/*
 * Sets mode and owner.  A file was created with 0600 and a folder with 0700, so
 * that no other user can open it before it has its owner.
 */
static bool
give_to_owner(int fd, unsigned mode, const struct sink_owner *o)
{
	if (mode != 0600 && mode != 0700 && fchmod(fd, (mode_t)mode) != 0)
		return false;
	if (o->uid == -1 || geteuid() != 0)
		return true;
	return fchown(fd, (uid_t)o->uid, (gid_t)o->gid) == 0;
}

/* Folders are for all who may read the files, and for those who may write. */
static unsigned
folder_mode(const struct sink_owner *o)
{
	unsigned files = o->mode != 0 ? o->mode : 0600;

	return files | (files & 0444) >> 2 | 0300;
}

/* Takes a folder that another process made meanwhile, too.  -1: errno. */
static int
make_folder(int parent, const char *name, const struct sink_owner *o)
{
	int fd, e;

	if (mkdirat(parent, name, 0700) != 0)
		return errno == EEXIST ? 0 : -1;
	fd = openat(parent, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!give_to_owner(fd, folder_mode(o), o)) {
		e = errno;
		close(fd);
		unlinkat(parent, name, AT_REMOVEDIR);
		errno = e;
		return -1;
	}
	close(fd);
	return 0;
}

/* Opens a folder in another; make (may be NULL): it may be missing. */
static int
step_into(int parent, const char *name, const struct sink_owner *make)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	if (fd >= 0 || errno != ENOENT || make == NULL ||
	    make_folder(parent, name, make) != 0)
		return fd;
	return openat(parent, name, flags);
}

/* Opens the path one component after the other; make: as step_into(). */
static int
open_walking(int dirfd, const char *path, const struct sink_owner *make)
{
	char name[NAME_MAX + 1];
	int fd, next, e;
	size_t n;

	fd = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && *path != '\0') {
		n = strcspn(path, "/");
		if (n > NAME_MAX) {
			close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + (path[n] == '/');
		if (n == 0)
			continue;
		next = step_into(fd, name, make);
		e = errno;
		close(fd);
		errno = e;
		fd = next;
	}
	return fd;
}

/* Opens a folder that exists. */
static int
open_folder(int dirfd, const char *path, bool use_openat2)
{
	int fd;

	if (use_openat2) {
		fd = open_beneath(dirfd, path);
		/* EPERM: a container's filter that does not know the call */
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return fd;
	}
	return open_walking(dirfd, path, NULL);
}

/* Copies the directory part of a path and finds its name.  -1: errno. */
static int
split_path(const char *path, char dir[PATH_MAX], const char **name)
{
	const char *slash;
	size_t n;

	if (!path_is_plain(path)) {
		errno = EXDEV;
		return -1;
	}
	if ((slash = strrchr(path, '/')) == NULL) {
		strcpy(dir, ".");
		*name = path;
		return 0;
	}
	n = (size_t)(slash - path);
	if (n >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(dir, path, n);
	dir[n] = '\0';
	*name = slash + 1;
	return 0;
}

int
sink_path_open_parent(int dirfd, const char *path, bool use_openat2,
    const char **name)
{
	char dir[PATH_MAX];

	if (split_path(path, dir, name) != 0)
		return -1;
	return open_folder(dirfd, dir, use_openat2);
}

int
sink_path_make_parent(int dirfd, const char *path,
    const struct sink_owner *owner, const char **name)
{
	char dir[PATH_MAX];
	int fd;

	if (split_path(path, dir, name) != 0)
		return -1;
	fd = open_folder(dirfd, dir, true);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	return open_walking(dirfd, dir, owner);
}

const char *
sink_path_error(int e)
{
	switch (e) {
	case EEXIST:
		return "the file exists already";
	case EXDEV:
		return "it must be a path inside the trace directory, "
		    "without '..'";
	case ELOOP:
		return "a part of it is a symbolic link";
	case ENOENT:
		return "there is no such directory";
	case ENOTDIR:
		return "a part of it is a file or a link, not a directory";
	case EACCES:
	case EPERM:
		return "the service has no permission to create it";
	case ENAMETOOLONG:
		return "it is too long";
	case EROFS:
		return "the file system is read-only";
	case ENOSPC:
		return "no space left on the disk";
	case EDQUOT:
		return "the disk quota is used up";
	case EMFILE:
	case ENFILE:
		return "too many files are open";
	default:
		return strerror(e);
	}
}

/* Returns a descriptor of the directory, the caller's to close.  -1: errno. */
static int
open_dir(const struct sink_dir *dir)
{
	int fd = -1;

	errno = EACCES;
	if (dir->path != NULL)
		fd = open(dir->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The daemon's user may have no way through the parent directories. */
	if (fd < 0 && errno == EACCES)
		fd = fcntl(dir->fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

int
sink_path_create_at(int dirfd, const char *name,
    const struct sink_owner *owner)
{
	int fd, e;

	do {
		/* O_EXCL follows no link, dangling or not */
		fd = openat(dirfd, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0 || give_to_owner(fd, owner->mode != 0 ? owner->mode : 0600,
	    owner))
		return fd;
	e = errno;
	unlinkat(dirfd, name, 0);
	close(fd);
	errno = e;
	return -1;
}

static int
cannot_use_dir(const struct sink_dir *dir, char *err, size_t err_size)
{
	return FAILURE(err, err_size, "output_path: cannot use the "
	    "trace directory %.80s: %s", dir->path, strerror(errno));
}

int
sink_path_create(const struct sink_dir *dir, const char *path, long uid,
    long gid, char *err, size_t err_size)
{
	const struct sink_owner owner = { dir->mode, uid, gid };
	const char *name;
	int dirfd, parent, fd = -1;

	if ((dirfd = open_dir(dir)) < 0)
		return cannot_use_dir(dir, err, err_size);
	parent = sink_path_open_parent(dirfd, path, true, &name);
	if (parent >= 0)
		fd = sink_path_create_at(parent, name, &owner);
	if (fd < 0)
		snprintf(err, err_size, "output_path: %s",
		    sink_path_error(errno));
	if (parent >= 0)
		close(parent);
	close(dirfd);
	return fd;
}

int
sink_path_open_folder(const struct sink_dir *dir, const char *path,
    const struct sink_owner *owner, char *err, size_t err_size)
{
	const char *p = path == NULL ? "" : path;
	int dirfd, folder = -1, fd = -1;
	char plain[PATH_MAX];
	size_t n = strlen(p);

	if ((dirfd = open_dir(dir)) < 0)
		return cannot_use_dir(dir, err, err_size);
	while (n > 1 && p[n - 1] == '/')
		n--;
	snprintf(plain, sizeof(plain), "%.*s", (int)n, p);
	errno = n < sizeof(plain) ? EXDEV : ENAMETOOLONG;
	if (n == 0)
		folder = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	else if (n < sizeof(plain) && path_is_plain(plain))
		folder = open_walking(dirfd, plain, owner);
	if (folder >= 0)
		fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		snprintf(err, err_size, "output_path, a folder for segments: "
		    "%s", sink_path_error(errno));
	if (folder >= 0)
		close(folder);
	close(dirfd);
	return fd;
}
