#include "transport/connect/socket_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/loop/path_watch.h"

#define LOOK_MS 1000u

int
socket_file_clear_stale(const struct addr *a, char *err, size_t err_size)
{
	const char *path = ((const struct sockaddr_un *)&a->sa)->sun_path;
	struct stat st;
	int fd, rc, error;

	if (lstat(path, &st) != 0)
		return 0; /* bind() tells the error of the directory */
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, err_size,
		    "%s exists and is no socket: remove it or choose another "
		    "path", path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		snprintf(err, err_size, "socket: %s", strerror(errno));
		return -1;
	}
	rc = connect(fd, (const struct sockaddr *)&a->sa, a->sa_len);
	error = errno;
	close(fd);
	if (rc != 0 && error == ENOENT)
		return 0;
	if (rc != 0 && error == EACCES) {
		snprintf(err, err_size,
		    "%s belongs to another user: no permission to see whether "
		    "it is in use", path);
		return -1;
	}
	if (rc == 0 || error != ECONNREFUSED) {
		snprintf(err, err_size,
		    "another program listens at %s: stop it or choose another "
		    "path", path);
		return -1;
	}
	if (unlink(path) != 0 && errno != ENOENT) {
		snprintf(err, err_size, "cannot remove the stale socket %s: %s",
		    path, strerror(errno));
		return -1;
	}
	return 0;
}

int
socket_file_init(struct socket_file *f, struct loop *l,
    void (*changed)(void *arg), void *arg)
{
	f->loop = l;
	return (f->look = loop_timer_new(l, changed, arg)) == NULL ? -1 : 0;
}

void
socket_file_done(struct socket_file *f)
{
	path_watch_free(f->watch);
	loop_timer_free(f->look);
}

void
socket_file_look_later(struct socket_file *f)
{
	loop_timer_set(f->look, LOOK_MS, 0);
}

static void
watch_cb(void *arg)
{
	socket_file_look_later(arg);
}

/* Identifies the file that is there now, and watches it. */
static void
watch(struct socket_file *f)
{
	struct stat st;

	if (lstat(f->path, &st) != 0)
		return;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	path_watch_free(f->watch);
	f->watch = path_watch_new(f->loop, f->path, watch_cb, f);
}

void
socket_file_own(struct socket_file *f, const char *path)
{
	struct stat st;

	strcpy(f->path, path);
	/* 0600: so much a socket of ours has in any case. */
	f->made_mode = lstat(path, &st) == 0 ? st.st_mode & 0777 : 0600;
	watch(f);
}

enum socket_file_owner
socket_file_owner(const struct socket_file *f)
{
	struct stat st;

	if (lstat(f->path, &st) != 0)
		return SOCKET_FILE_GONE;
	return st.st_dev == f->dev && st.st_ino == f->ino ? SOCKET_FILE_OURS :
	    SOCKET_FILE_OF_ANOTHER;
}

void
socket_file_remove(struct socket_file *f)
{
	if (f->path[0] != '\0' && socket_file_owner(f) == SOCKET_FILE_OURS)
		unlink(f->path);
}

void
socket_file_made_anew(struct socket_file *f)
{
	char err[256];

	watch(f);
	if (!f->has_mode && chmod(f->path, f->made_mode) != 0)
		log_error("cannot set the permissions of %s: %s", f->path,
		    strerror(errno));
	if (f->has_mode && socket_file_set_permissions(f, f->mode, f->gid, err,
		sizeof(err)) != 0)
		log_error("%s", err);
}

int
socket_file_set_permissions(struct socket_file *f, unsigned mode, long gid,
    char *err, size_t err_size)
{
	struct stat st;

	if (f->path[0] == '\0') {
		snprintf(err, err_size,
		    "permissions apply to UNIX socket files only");
		return -1;
	}
	f->has_mode = true;
	f->mode = mode;
	f->gid = gid;
	/*
	 * A file that was taken over may belong to another user, and be right.
	 */
	if (lstat(f->path, &st) == 0 && (st.st_mode & 07777) == mode &&
	    (gid == -1 || st.st_gid == (gid_t)gid))
		return 0;
	/* The group first: chown() may clear mode bits. */
	if (gid != -1 && lchown(f->path, (uid_t)-1, (gid_t)gid) != 0) {
		snprintf(err, err_size, "cannot give %s to group %ld: %s",
		    f->path, gid, strerror(errno));
		return -1;
	}
	if (chmod(f->path, (mode_t)mode) != 0) {
		snprintf(err, err_size, "cannot set mode %o on %s: %s", mode,
		    f->path, strerror(errno));
		return -1;
	}
	return 0;
}
