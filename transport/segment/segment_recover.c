#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/segment/segment_folder_internal.h"
#include "transport/wire/pb_reader.h"

/* Folders in folders: a pattern of names has no more. */
#define DEPTH_MAX 64u
/* Bytes read at once; a packet may be larger, as only its head is looked at. */
#define WINDOW (64u << 10)
/* A packet's tag and the longest varint. */
#define HEAD_MAX 11u

/*
 * Walks over the packets of a window, which is at `at` in the file.  Returns
 * the end of the last whole one; *more: the file may go on.
 */
static uint64_t
walk(const uint8_t *data, size_t len, uint64_t at, uint64_t size, bool *more)
{
	const uint8_t *p = data, *end = data + len, *body;
	uint64_t n, left;

	*more = false;
	while (p < end && *p == PB_TAG(Trace_packet, PB_BYTES)) {
		if ((body = pb_varint(p + 1, end, &n)) == NULL) {
			*more = (size_t)(end - p) < HEAD_MAX;
			break;
		}
		left = size - at - (uint64_t)(body - data);
		if (n > left)
			return at + (uint64_t)(p - data);
		if (n > (uint64_t)(end - body)) {
			*more = true;
			return at + (uint64_t)(body - data) + n;
		}
		p = body + n;
	}
	if (p == end)
		*more = true;
	return at + (uint64_t)(p - data);
}

/*
 * Bytes at the file's begin that are whole packets.  -1: it cannot be read, of
 * which nothing follows about what is in it.
 */
static int64_t
whole_packets(int fd, uint64_t size)
{
	uint8_t window[WINDOW];
	uint64_t at = 0, next;
	bool more = true;
	ssize_t n;

	while (more && at < size) {
		n = pread(fd, window, size - at < WINDOW ?
		    (size_t)(size - at) : WINDOW, (off_t)at);
		if (n <= 0)
			return -1;
		next = walk(window, (size_t)n, at, size, &more);
		more = more && next > at;
		at = next;
	}
	return (int64_t)at;
}

/* Whether a part may be one of ours: see the header. */
static bool
is_ours(const struct segment_folder *f, const struct stat *st)
{
	long uid = f->o.owner.uid;

	if (!S_ISREG(st->st_mode) || st->st_nlink != 1)
		return false;
	return st->st_uid == geteuid() ||
	    (uid != -1 && st->st_uid == (uid_t)uid);
}

/* 1: it has packets, on the disk; 0: none; -1: it cannot be closed. */
static int
close_part(const struct segment_folder *f, int parent, const char *name)
{
	int fd = openat(parent, name,
	    O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int64_t whole;
	int rc = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && is_ours(f, &st)) {
		whole = whole_packets(fd, (uint64_t)st.st_size);
		if (whole >= 0 && (whole == st.st_size ||
		    ftruncate(fd, whole) == 0) && fdatasync(fd) == 0)
			rc = whole > 0;
	}
	close(fd);
	return rc;
}

/* path: of the part, below the folder. */
static void
recover_part(struct segment_folder *f, int parent, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *part = slash != NULL ? slash + 1 : path;
	char name[SEGMENT_PATH_MAX];
	int has = close_part(f, parent, part);

	if (has < 0)
		return;
	if (has == 0) {
		unlinkat(parent, part, 0);
		return;
	}
	snprintf(name, sizeof(name), "%.*s",
	    (int)(strlen(path) - strlen(SEGMENT_PART)), path);
	if (segment_folder_publish(f, name) != 0)
		return;
	segment_folder_sync(f, name);
	if (f->o.recovered != NULL)
		f->o.recovered(name, f->o.arg);
}

static bool
is_part(const char *name)
{
	static const char end[] = SEGMENT_SUFFIX SEGMENT_PART;
	size_t n = strlen(name), m = sizeof(end) - 1;

	return n > m && strcmp(name + n - m, end) == 0;
}

/*
 * Locks the folder `at` for recovery, where it has a lock file, and so writers,
 * of its own.  *lock is the caller's to close; -1: it has none.  False: others
 * write there.
 */
static bool
lock_other(int at, int *lock)
{
	*lock = segment_folder_lock_file(at);
	if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	close(*lock);
	*lock = -1;
	return false;
}

static void recover_below(struct segment_folder *f, int fd, const char *path,
    unsigned depth);

/* Goes into a folder, unless it is another one for segments, and in use. */
static void
recover_folder(struct segment_folder *f, int parent, const char *name,
    const char *path, unsigned depth)
{
	int lock, fd = openat(parent, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!lock_other(fd, &lock)) {
		close(fd);
		return;
	}
	recover_below(f, fd, path, depth);
	if (lock >= 0)
		close(lock);
}

/* path: of the directory fd, which this closes, below the folder. */
static void
recover_below(struct segment_folder *f, int fd, const char *path,
    unsigned depth)
{
	char below[SEGMENT_PATH_MAX + NAME_MAX + 2];
	struct dirent *e;
	DIR *dir;

	if ((dir = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%s%s%s", path,
		    *path != '\0' ? "/" : "", e->d_name);
		if (strlen(below) >= SEGMENT_PATH_MAX)
			continue;
		if (is_part(e->d_name))
			recover_part(f, dirfd(dir), below);
		else if (depth < DEPTH_MAX && e->d_type != DT_REG)
			recover_folder(f, dirfd(dir), e->d_name, below,
			    depth + 1);
	}
	closedir(dir);
}

/* Opens the folder that `at` is in; -1 at the root, or without permission. */
static int
open_above(int at)
{
	int fd = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, above;

	if (fd < 0)
		return -1;
	if (fstat(at, &st) == 0 && fstat(fd, &above) == 0 &&
	    (st.st_ino != above.st_ino || st.st_dev != above.st_dev))
		return fd;
	close(fd);
	return -1;
}

/*
 * Recovers unless a folder above `at` is one for segments, too, and in use: its
 * writers may have parts in ours.
 */
static void
recover_beneath(struct segment_folder *f, int at, unsigned depth)
{
	int lock, fd, above = depth < DEPTH_MAX ? open_above(at) : -1;

	if (above < 0) {
		fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			recover_below(f, fd, "", 0);
		return;
	}
	if (lock_other(above, &lock)) {
		recover_beneath(f, above, depth + 1);
		if (lock >= 0)
			close(lock);
	}
	close(above);
}

void
segment_recover(struct segment_folder *f)
{
	recover_beneath(f, f->fd, 0);
}
