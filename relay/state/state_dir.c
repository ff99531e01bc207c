#include "relay/state/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/failure.h"

#define LOCK_NAME "lock"

/*
 * Opens a folder, and follows a link only if it is root's or our user's: a link
 * that others may replace would let them choose where traces go and which files
 * are deleted. systemd makes a link for each folder of a DynamicUser=. -1: see
 * errno, ELOOP for a link.
 */
static int
open_unless_strange(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int e = errno;
	struct stat st;

	if (fd >= 0 || lstat(dir, &st) != 0 || !S_ISLNK(st.st_mode)) {
		errno = e;
		return fd;
	}
	if (st.st_uid == 0 || st.st_uid == geteuid())
		return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	errno = ELOOP;
	return -1;
}

static bool
is_ours(int fd, const char *what, const char *path, char *err, size_t err_size)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		snprintf(err, err_size, "cannot use the %s folder %s: %s",
		    what, path, strerror(errno));
		return false;
	}
	if (st.st_uid != geteuid()) {
		snprintf(err, err_size, "the %s folder %s belongs to user "
		    "%lu, and this relay runs as user %lu: remove it, or name "
		    "another", what, path,
		    (unsigned long)st.st_uid, (unsigned long)geteuid());
		return false;
	}
	if (st.st_mode & 022) {
		snprintf(err, err_size, "others may write into the %s "
		    "folder %s: chmod go-w %s", what, path, path);
		return false;
	}
	return true;
}

int
state_dir_open_ours(const char *what, const char *path, char *err,
    size_t err_size)
{
	int fd = open_unless_strange(path);

	if (fd < 0)
		return FAILURE(err, err_size, "cannot use the %s folder %s: %s",
		    what, path, errno == ELOOP ? "it is a symbolic link that "
		    "another user made, so it may lead elsewhere tomorrow; "
		    "name the folder that it leads to" : errno == ENOTDIR ?
		    "it is no folder" : strerror(errno));
	if (!is_ours(fd, what, path, err, err_size)) {
		close(fd);
		return -1;
	}
	return fd;
}

int
state_dir_open(const char *path, char *err, size_t err_size)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return FAILURE(err, err_size, "cannot make the state folder "
		    "%s: %s; name another with --state-dir", path,
		    strerror(errno));
	return state_dir_open_ours("state", path, err, err_size);
}

/* The process id that the holder wrote; 0: none. */
static long
holder(int fd)
{
	char text[24];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

int
state_dir_lock(int dirfd, const char *path, char *err, size_t err_size)
{
	int fd;

	fd = openat(dirfd, LOCK_NAME,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return FAILURE(err, err_size, "cannot make files in the state "
		    "folder %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		snprintf(err, err_size, "a relay runs already with the state "
		    "folder %s (process %ld): tributary-relay --status shows "
		    "it; a second one needs a --state-dir and a "
		    "--producer-socket of its own", path, holder(fd));
		close(fd);
		return -1;
	}
	/* The number is for people: nothing depends on it. */
	if (ftruncate(fd, 0) != 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		errno = 0;
	return fd;
}

int
state_dir_path(char out[STATE_DIR_PATH_MAX], const char *path,
    const char *name, char *err, size_t err_size)
{
	int n = snprintf(out, STATE_DIR_PATH_MAX, "%s/%s", path, name);

	if (n > 0 && n < STATE_DIR_PATH_MAX)
		return 0;
	return FAILURE(err, err_size, "the path of the state folder %s is too "
	    "long for a socket in it", path);
}

/*
 * Whether the other end is a relay of root or our own user: in /tmp any user
 * may make a missing folder and listen there.  For root every relay will do.
 */
static bool
is_believed(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return false;
	errno = EACCES;
	return who.uid == 0 || who.uid == geteuid() || geteuid() == 0;
}

int
state_dir_connect(const char *path, const char *name, int *error)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char at[STATE_DIR_PATH_MAX], err[256];
	int fd;

	if (state_dir_path(at, path, name, err, sizeof(err)) != 0) {
		*error = ENAMETOOLONG;
		return -1;
	}
	memcpy(un.sun_path, at, sizeof(un.sun_path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
	    is_believed(fd))
		return fd;
	*error = errno;
	if (fd >= 0)
		close(fd);
	return -1;
}
