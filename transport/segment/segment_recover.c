#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/segment/segment_folder_internal.h"
#include "transport/wire/pb_reader.h"

/* Folders in folders: a pattern of names has no more. */
#define DEPTH_MAX 64u
/* Bytes read at once; a packet may be larger, as only its head is looked at. */
#define WINDOW (1u << 20)
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

/* Bytes at the file's begin that are whole packets. */
static uint64_t
whole_packets(int fd, uint64_t size)
{
	uint8_t *window = malloc(WINDOW);
	uint64_t at = 0, next;
	bool more = window != NULL;
	ssize_t n;

	while (more && at < size) {
		n = pread(fd, window, WINDOW, (off_t)at);
		if (n <= 0)
			break;
		next = walk(window, (size_t)n, at, size, &more);
		more = more && next > at;
		at = next;
	}
	free(window);
	return at;
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
	uint64_t whole;
	int rc = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && is_ours(f, &st)) {
		whole = whole_packets(fd, (uint64_t)st.st_size);
		if ((whole == (uint64_t)st.st_size ||
		    ftruncate(fd, (off_t)whole) == 0) && fdatasync(fd) == 0)
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

/* path: of the directory fd, which this closes, below the folder. */
static void
recover_below(struct segment_folder *f, int fd, const char *path,
    unsigned depth)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char below[SEGMENT_PATH_MAX + NAME_MAX + 2];
	struct dirent *e;
	DIR *dir;
	int sub;

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
		else if (depth < DEPTH_MAX && e->d_type != DT_REG &&
		    (sub = openat(dirfd(dir), e->d_name, flags)) >= 0)
			recover_below(f, sub, below, depth + 1);
	}
	closedir(dir);
}

void
segment_recover(struct segment_folder *f)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		recover_below(f, fd, "", 0);
}
