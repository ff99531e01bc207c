#include "client/ftrace/tracefs/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files are read in pieces of this size, and are no longer than the most. */
#define READ_BYTES 8192u
#define FILE_MAX   (16u * 1024u * 1024u)

struct tracefs {
	int dir;
	int lock; /* -1: not locked */
	char root[TRACEFS_PATH_MAX];
};

static const char *const usual_places[] = {
	"/sys/kernel/tracing",
	"/sys/kernel/debug/tracing",
};
#define USUAL_PLACES (sizeof(usual_places) / sizeof(usual_places[0]))

/* 0, or errno. */
static int
try_root(const char *root, int *dir)
{
	int fd;

	if ((*dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return errno;
	/* The folder is there, empty, before tracefs is mounted on it. */
	if ((fd = openat(*dir, "trace_clock", O_RDWR | O_CLOEXEC)) >= 0) {
		close(fd);
		return 0;
	}
	fd = errno;
	close(*dir);
	*dir = -1;
	return fd;
}

static void
say_why_not(int error, const char *root, char why[TRACEFS_WHY_MAX])
{
	if (error == ENOENT)
		snprintf(why, TRACEFS_WHY_MAX, "tracefs is not mounted on "
		    "%.200s: mount -t tracefs tracefs %.200s", root, root);
	else if (error == EACCES || error == EPERM)
		snprintf(why, TRACEFS_WHY_MAX, "no right to use %.200s (%s): "
		    "it wants root, or a mount with gid= and mode= for our "
		    "group, and a kernel that is not locked down", root,
		    strerror(error));
	else
		snprintf(why, TRACEFS_WHY_MAX, "%.200s cannot be opened: %s",
		    root, strerror(error));
}

struct tracefs *
tracefs_open(const char *root, char why[TRACEFS_WHY_MAX])
{
	const char *const *places = root != NULL ? &root : usual_places;
	size_t i, n = root != NULL ? 1 : USUAL_PLACES;
	int error, dir = -1, first = 0;
	struct tracefs *t;

	for (i = 0; i < n; i++) {
		if ((error = try_root(places[i], &dir)) == 0)
			break;
		/* The first place is where it belongs: its reason counts. */
		if (i == 0)
			first = error;
	}
	if (i == n) {
		say_why_not(first, places[0], why);
		errno = first;
		return NULL;
	}
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		close(dir);
		snprintf(why, TRACEFS_WHY_MAX, "no memory");
		return NULL;
	}
	t->dir = dir;
	t->lock = -1;
	snprintf(t->root, sizeof(t->root), "%s", places[i]);
	return t;
}

void
tracefs_close(struct tracefs *t)
{
	if (t == NULL)
		return;
	tracefs_unlock(t);
	close(t->dir);
	free(t);
}

const char *
tracefs_root(const struct tracefs *t)
{
	return t->root;
}

bool
tracefs_lock(struct tracefs *t, char why[TRACEFS_WHY_MAX])
{
	int fd;

	if (t->lock >= 0)
		return true;
	fd = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		t->lock = fd;
		return true;
	}
	if (fd >= 0 && errno == EWOULDBLOCK)
		snprintf(why, TRACEFS_WHY_MAX, "another tributary-probes "
		    "records ftrace on this machine, and two would take each "
		    "other's events: stop it, or record with it");
	else
		snprintf(why, TRACEFS_WHY_MAX, "%.200s cannot be locked: %s",
		    t->root, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}

void
tracefs_unlock(struct tracefs *t)
{
	if (t->lock >= 0)
		close(t->lock);
	t->lock = -1;
}

static char *
read_all(int fd, size_t *len)
{
	size_t n = 0, room = 0;
	char *text = NULL, *larger;
	ssize_t got;

	do {
		if (room - n < 2) {
			room = room == 0 ? READ_BYTES : 2 * room;
			if (room > FILE_MAX) {
				errno = EFBIG;
				goto fail;
			}
			if ((larger = realloc(text, room)) == NULL)
				goto fail;
			text = larger;
		}
		got = read(fd, text + n, room - n - 1);
		if (got > 0)
			n += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		goto fail;
	text[n] = '\0';
	if (len != NULL)
		*len = n;
	return text;

fail:
	free(text);
	return NULL;
}

char *
tracefs_read(const struct tracefs *t, const char *path, size_t *len)
{
	char *text;
	int fd, error;

	if ((fd = tracefs_open_file(t, path, O_RDONLY)) < 0)
		return NULL;
	text = read_all(fd, len);
	error = errno;
	close(fd);
	errno = error;
	return text;
}

/* The kernel obeys, or refuses, each write() as a whole. */
int
tracefs_write(const struct tracefs *t, const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd, error = 0;
	ssize_t n;

	if ((fd = tracefs_open_file(t, path, O_WRONLY | O_TRUNC)) < 0)
		return -1;
	/* Truncation has emptied a list; some lists refuse an empty write. */
	if (len > 0) {
		do
			n = write(fd, text, len);
		while (n < 0 && errno == EINTR);
		if (n != (ssize_t)len)
			error = n < 0 ? errno : EIO;
	}
	if (close(fd) < 0 && error == 0)
		error = errno;
	errno = error;
	return error == 0 ? 0 : -1;
}

int
tracefs_open_file(const struct tracefs *t, const char *path, int flags)
{
	return openat(t->dir, path, flags | O_CLOEXEC);
}

bool
tracefs_exists(const struct tracefs *t, const char *path)
{
	return faccessat(t->dir, path, F_OK, 0) == 0;
}

int
tracefs_make_instance(const struct tracefs *t, const char *path)
{
	return mkdirat(t->dir, path, 0700);
}

int
tracefs_remove_instance(const struct tracefs *t, const char *path)
{
	return unlinkat(t->dir, path, AT_REMOVEDIR);
}
