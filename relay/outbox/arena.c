#include "relay/outbox/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"

#define ARENA_FILE    "outbox"
#define ARENA_MAGIC   0x3158424fu /* "OBX1" */
#define ARENA_VERSION 4u
/* Disk space for the file is claimed and given back in pieces of this size. */
#define EXTENT_PAGES  64u
#define EXTENT_BYTES  ((size_t)EXTENT_PAGES * ARENA_PAGE)
/* Free memory below this is kept, for the next burst. */
#define KEPT_PAGES    64u

static size_t
whole_pages(size_t n)
{
	return (n + ARENA_PAGE - 1) & ~(size_t)(ARENA_PAGE - 1);
}

/* Parts of the map, in their order. */
enum part { PART_HEAD, PART_CHANNELS, PART_TRACKS, PART_LOSSES, PART_UNDO,
	PART_DESC, PART_DATA, PARTS };

static void
layout(uint32_t pages, size_t at[PARTS])
{
	at[PART_HEAD] = 0;
	at[PART_CHANNELS] = whole_pages(sizeof(struct arena_head));
	at[PART_TRACKS] = at[PART_CHANNELS] +
	    whole_pages(ARENA_CHANNELS * sizeof(struct arena_channel));
	at[PART_LOSSES] = at[PART_TRACKS] +
	    whole_pages(ARENA_TRACKS * sizeof(struct arena_track));
	at[PART_UNDO] = at[PART_LOSSES] +
	    whole_pages(ARENA_LOSSES * sizeof(struct arena_loss));
	at[PART_DESC] = at[PART_UNDO] +
	    whole_pages(sizeof(struct arena_undo));
	at[PART_DATA] = at[PART_DESC] +
	    whole_pages(pages * sizeof(struct arena_desc));
}

static int
map(struct arena *a, uint32_t pages)
{
	size_t at[PARTS];
	void *p;

	layout(pages, at);
	a->map_bytes = at[PART_DATA] + (size_t)pages * ARENA_PAGE;
	p = mmap(NULL, a->map_bytes, PROT_READ | PROT_WRITE,
	    a->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE :
	    MAP_SHARED, a->fd, 0);
	if (p == MAP_FAILED)
		return -1;
	/* The lock lasts as long as a mapping: no child may have one. */
	(void)madvise(p, a->map_bytes, MADV_DONTFORK);
	a->map = p;
	a->pages = pages;
	a->free_pages = pages;
	a->head = (void *)a->map;
	a->channels = (void *)(a->map + at[PART_CHANNELS]);
	a->tracks = (void *)(a->map + at[PART_TRACKS]);
	a->losses = (void *)(a->map + at[PART_LOSSES]);
	a->undo = (void *)(a->map + at[PART_UNDO]);
	a->desc = (void *)(a->map + at[PART_DESC]);
	a->data = a->map + at[PART_DATA];
	a->taken = calloc((pages + 63) / 64, sizeof(a->taken[0]));
	a->backed = calloc((pages / EXTENT_PAGES + 63) / 64 + 1,
	    sizeof(a->backed[0]));
	return a->taken == NULL || a->backed == NULL ? -1 : 0;
}

/*
 * Claims disk space for bytes from `from` on: a page that is written to and
 * finds none would end the process (SIGBUS).
 */
static int
back(int fd, size_t from, size_t len)
{
	static const uint8_t zeros[ARENA_PAGE];
	struct stat st;
	size_t at;

	if (posix_fallocate(fd, (off_t)from, (off_t)len) == 0)
		return 0;
	/*
	 * A file system without fallocate(): behind the file's end, written
	 * zeros claim the space.
	 */
	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size > from)
		return -1;
	for (at = from; at < from + len; at += sizeof(zeros))
		if (pwrite(fd, zeros, sizeof(zeros), (off_t)at) !=
		    (ssize_t)sizeof(zeros))
			return -1;
	return 0;
}

/*
 * Returns the file's number of pages; 0: not ours, of another boot, or damaged.
 */
static uint32_t
sound(int fd, const char *boot_id)
{
	struct arena_head h;
	size_t at[PARTS];
	struct stat st;

	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    h.magic != ARENA_MAGIC || h.version != ARENA_VERSION ||
	    h.pages == 0 || h.pages > ARENA_PAGES_MAX ||
	    memcmp(h.boot_id, boot_id, sizeof(h.boot_id)) != 0 ||
	    h.links[h.link_now & 1].epoch == 0)
		return 0;
	layout((uint32_t)h.pages, at);
	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size !=
	    at[PART_DATA] + h.pages * ARENA_PAGE)
		return 0;
	return (uint32_t)h.pages;
}

/*
 * Makes the file anew, all zero: the caller writes the magic last, which
 * commits.
 */
static int
make(struct arena *a, uint32_t pages, char *err, size_t err_size)
{
	size_t at[PARTS];

	layout(pages, at);
	if (a->fd >= 0 && (ftruncate(a->fd, 0) != 0 ||
	    back(a->fd, 0, at[PART_DATA]) != 0 ||
	    ftruncate(a->fd, (off_t)(at[PART_DATA] +
	    (size_t)pages * ARENA_PAGE)) != 0))
		return FAILURE(err, err_size, "no room for %s in the state "
		    "folder: %s", ARENA_FILE, strerror(errno));
	if (map(a, pages) != 0)
		return FAILURE(err, err_size, "no memory for the outbox: %s",
		    strerror(errno));
	return 0;
}

static int
open_file(int dirfd, char *err, size_t err_size)
{
	int fd;

	fd = openat(dirfd, ARENA_FILE, O_RDWR | O_CREAT | O_CLOEXEC |
	    O_NOFOLLOW, 0600);
	if (fd < 0)
		return FAILURE(err, err_size, "cannot open %s in the state "
		    "folder: %s", ARENA_FILE, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		snprintf(err, err_size, errno == EWOULDBLOCK ?
		    "another relay uses this state folder (%s is locked)" :
		    "cannot lock %s in the state folder", ARENA_FILE);
		close(fd);
		return -1;
	}
	return fd;
}

int
arena_open(struct arena *a, int dirfd, size_t bytes, bool *found, char *err,
    size_t err_size)
{
	char boot_id[sizeof(a->head->boot_id)] = "";
	uint32_t pages = 0;

	memset(a, 0, sizeof(*a));
	a->fd = -1;
	this_machine_boot_id(boot_id, sizeof(boot_id));
	if (dirfd >= 0) {
		if ((a->fd = open_file(dirfd, err, err_size)) < 0)
			return -1;
		pages = sound(a->fd, boot_id);
	}
	if (pages != 0 && map(a, pages) == 0) {
		*found = true;
		return 0;
	}
	if (a->map != NULL)
		munmap(a->map, a->map_bytes);
	if (bytes / ARENA_PAGE > ARENA_PAGES_MAX)
		bytes = (size_t)ARENA_PAGES_MAX * ARENA_PAGE;
	pages = (uint32_t)(bytes / ARENA_PAGE / EXTENT_PAGES * EXTENT_PAGES);
	if (pages == 0)
		pages = EXTENT_PAGES;
	if (make(a, pages, err, err_size) != 0) {
		arena_close(a);
		return -1;
	}
	*found = false;
	a->head->version = ARENA_VERSION;
	memcpy(a->head->boot_id, boot_id, sizeof(boot_id));
	a->head->pages = pages;
	a->head->magic = ARENA_MAGIC;
	return 0;
}

void
arena_close(struct arena *a)
{
	if (a->map != NULL)
		munmap(a->map, a->map_bytes);
	/* The map first: the lock ends with the descriptor. */
	if (a->fd >= 0)
		close(a->fd);
	free(a->taken);
	free(a->backed);
	memset(a, 0, sizeof(*a));
	a->fd = -1;
}

static bool
is_taken(const struct arena *a, uint32_t page)
{
	return a->taken[page / 64] >> (page % 64) & 1;
}

static bool
is_backed(const struct arena *a, uint32_t extent)
{
	return a->backed[extent / 64] >> (extent % 64) & 1;
}

/* Claims disk space for an extent, once. */
static bool
back_extent(struct arena *a, uint32_t x)
{
	if (is_backed(a, x))
		return true;
	if (back(a->fd, (size_t)(a->data - a->map) + x * EXTENT_BYTES,
	    EXTENT_BYTES) != 0)
		return false;
	a->backed[x / 64] |= UINT64_C(1) << (x % 64);
	return true;
}

/*
 * Sets aside every extent without disk space, as the file system is full, so
 * that limits count usable pages only.  No page of such an extent is taken, and
 * an extent is a word of the map.
 */
static void
set_aside(struct arena *a)
{
	uint32_t x;

	if (a->set_aside == 0)
		log_warn("The state folder's file system is full: less is kept "
		    "in memory than was set");
	for (x = 0; x < a->pages / EXTENT_PAGES; x++) {
		if (is_backed(a, x) || a->taken[x] != 0)
			continue;
		a->taken[x] = UINT64_MAX;
		a->set_aside += EXTENT_PAGES;
		a->free_pages -= EXTENT_PAGES;
	}
}

/* Gives all extents back to use as soon as there is disk space for one. */
static void
take_back(struct arena *a)
{
	bool room = false;
	uint32_t x;

	for (x = 0; a->set_aside > 0; x++) {
		if (is_backed(a, x) || a->taken[x] == 0)
			continue;
		if (!room && !back_extent(a, x))
			return;
		room = true;
		a->taken[x] = 0;
		a->set_aside -= EXTENT_PAGES;
		a->free_pages += EXTENT_PAGES;
	}
}

/* Claims disk space for pages. */
static bool
back_pages(struct arena *a, uint32_t page, uint32_t n)
{
	uint32_t x;

	if (a->fd < 0)
		return true;
	for (x = page / EXTENT_PAGES; x <= (page + n - 1) / EXTENT_PAGES; x++)
		if (!back_extent(a, x)) {
			set_aside(a);
			return false;
		}
	return true;
}

bool
arena_take_at(struct arena *a, uint32_t page, uint32_t n)
{
	uint32_t i;

	if (n == 0 || page >= a->pages || n > a->pages - page)
		return false;
	for (i = page; i < page + n; i++)
		if (is_taken(a, i))
			return false;
	if (!back_pages(a, page, n))
		return false;
	for (i = page; i < page + n; i++)
		a->taken[i / 64] |= UINT64_C(1) << (i % 64);
	a->free_pages -= n;
	if (page + n > a->touched)
		a->touched = page + n;
	return true;
}

/* First fit by address, so that little memory is touched. */
static uint32_t
find_run(const struct arena *a, uint32_t from, uint32_t n)
{
	uint32_t page = from, run = 0;

	while (page < a->pages && run < n) {
		if (page % 64 == 0 && a->taken[page / 64] == UINT64_MAX) {
			run = 0;
			page += 64;
			continue;
		}
		run = is_taken(a, page) ? 0 : run + 1;
		page++;
	}
	return run == n ? page - n : ARENA_NONE;
}

uint32_t
arena_take(struct arena *a, uint32_t n)
{
	uint32_t page;

	if (n == 0 || n > a->free_pages)
		return ARENA_NONE;
	page = find_run(a, a->set_apart, n);
	if (page == ARENA_NONE || !arena_take_at(a, page, n))
		return ARENA_NONE; /* no run, or no disk space */
	return page;
}

bool
arena_has_run(struct arena *a, uint32_t n)
{
	uint32_t i;

	if (n > a->free_pages || n > a->pages)
		return false;
	if (a->run_hint < a->set_apart || a->run_hint + n > a->pages)
		a->run_hint = a->set_apart;
	for (i = 0; i < n && !is_taken(a, a->run_hint + i); i++)
		;
	if (i < n)
		a->run_hint = find_run(a, a->set_apart, n);
	if (a->run_hint != ARENA_NONE)
		return true;
	a->run_hint = 0;
	return false;
}

void
arena_give(struct arena *a, uint32_t page, uint32_t n)
{
	uint32_t i;

	for (i = page; i < page + n; i++)
		a->taken[i / 64] &= ~(UINT64_C(1) << (i % 64));
	a->free_pages += n;
}

void
arena_trim(struct arena *a)
{
	uint32_t x, extents = (a->touched + EXTENT_PAGES - 1) / EXTENT_PAGES;

	for (x = KEPT_PAGES / EXTENT_PAGES; x < extents; x++) {
		if (a->taken[x] != 0)
			continue;
		if (madvise(a->data + x * EXTENT_BYTES, EXTENT_BYTES,
		    a->fd < 0 ? MADV_DONTNEED : MADV_REMOVE) != 0)
			return;
		a->backed[x / 64] &= ~(UINT64_C(1) << (x % 64));
	}
	take_back(a);
	while (extents > 1 && a->taken[extents - 1] == 0)
		extents--;
	if (a->touched > extents * EXTENT_PAGES)
		a->touched = extents * EXTENT_PAGES;
}

void
arena_set_link(struct arena *a, const struct arena_link *l)
{
	uint32_t other = !(atomic_load(&a->head->link_now) & 1);

	a->head->links[other] = *l;
	atomic_store_explicit(&a->head->link_now, other, memory_order_release);
}
