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

/* Opens the path one component after the other. */
static int
open_walking(int dirfd, const char *path)
{
	char name[NAME_MAX + 1];
	int fd, next;
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
		next = openat(fd, name,
		    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			int e = errno;

			close(fd);
			errno = e;
			return -1;
		}
		close(fd);
		fd = next;
	}
	return fd;
}

int
sink_path_open_parent(int dirfd, const char *path, bool use_openat2,
    const char **name)
{
	char dir[PATH_MAX];
	const char *slash;
	size_t n;
	int fd;

	if (!path_is_plain(path)) {
		errno = EXDEV;
		return -1;
	}
	if ((slash = strrchr(path, '/')) == NULL) {
		strcpy(dir, ".");
		*name = path;
	} else {
		n = (size_t)(slash - path);
		if (n >= sizeof(dir)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(dir, path, n);
		dir[n] = '\0';
		*name = slash + 1;
	}
	if (use_openat2) {
		fd = open_beneath(dirfd, dir);
		/* EPERM: a container's filter that does not know the call */
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return fd;
	}
	return open_walking(dirfd, dir);
}

static const char *
path_error_text(int e)
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

/*
 * Sets mode and owner.  The file was created with 0600, so that no other user
 * can open it before it has its owner.
 */
static bool
give_to_owner(int fd, unsigned mode, long uid, long gid)
{
	if (mode != 0 && mode != 0600 && fchmod(fd, (mode_t)mode) != 0)
		return false;
	if (uid == -1 || geteuid() != 0)
		return true;
	return fchown(fd, (uid_t)uid, (gid_t)gid) == 0;
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
sink_path_create(const struct sink_dir *dir, const char *path, long uid,
    long gid, char *err, size_t err_size)
{
	const char *name;
	int dirfd, parent = -1, fd = -1, e;

	if ((dirfd = open_dir(dir)) < 0)
		return FAILURE(err, err_size, "output_path: cannot use the "
		    "trace directory %.80s: %s", dir->path, strerror(errno));
	parent = sink_path_open_parent(dirfd, path, true, &name);
	if (parent < 0)
		goto fail;
	do {
		/* O_EXCL follows no link, dangling or not */
		fd = openat(parent, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		goto fail;
	if (!give_to_owner(fd, dir->mode, uid, gid)) {
		e = errno;
		unlinkat(parent, name, 0);
		errno = e;
		goto fail;
	}
	close(parent);
	close(dirfd);
	return fd;

fail:
	snprintf(err, err_size, "output_path: %s", path_error_text(errno));
	if (fd >= 0)
		close(fd);
	if (parent >= 0)
		close(parent);
	close(dirfd);
	return -1;
}
