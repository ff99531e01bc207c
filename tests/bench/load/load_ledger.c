#include "tests/bench/load/load_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file grows by so many entries. */
#define GROW 16384u

struct load_ledger {
	int fd; /* -1: in memory only */
	uint8_t *map;
	size_t size;
};

static struct load_ledger_header *
header(const struct load_ledger *l)
{
	return (struct load_ledger_header *)l->map;
}

static size_t
size_for(uint64_t entries)
{
	return sizeof(struct load_ledger_header) +
	    (size_t)entries * sizeof(struct load_entry);
}

static int
grow(struct load_ledger *l, uint64_t entries)
{
	size_t size = size_for(entries);
	void *map;

	if (l->fd >= 0 && posix_fallocate(l->fd, 0, (off_t)size) != 0)
		return -1;
	if (l->map == NULL)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, l->fd >= 0 ?
		    MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, l->fd, 0);
	else
		map = mremap(l->map, l->size, size, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return -1;
	l->map = map;
	l->size = size;
	return 0;
}

/* Under another name until it has its head: who finds it may read it. */
static int
create(struct load_ledger *l, const char *path, uint32_t first_key)
{
	char unready[PATH_MAX];

	if (path != NULL) {
		if ((size_t)snprintf(unready, sizeof(unready), "%s.new",
		    path) >= sizeof(unready)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		l->fd = open(unready, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		    0644);
		if (l->fd < 0)
			return -1;
	}
	if (grow(l, GROW) != 0)
		return -1;
	memcpy(header(l)->magic, LOAD_LEDGER_MAGIC, 8);
	header(l)->version = LOAD_LEDGER_VERSION;
	header(l)->first_key = first_key;
	return path != NULL ? rename(unready, path) : 0;
}

struct load_ledger *
load_ledger_new(const char *path, uint32_t first_key, char *err,
    size_t err_size)
{
	struct load_ledger *l;

	if ((l = calloc(1, sizeof(*l))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	l->fd = -1;
	if (create(l, path, first_key) != 0) {
		snprintf(err, err_size, "%s: %s", path != NULL ? path :
		    "the ledger", strerror(errno));
		load_ledger_free(l);
		return NULL;
	}
	return l;
}

static int
map_existing(struct load_ledger *l, const char *path, char *err,
    size_t err_size)
{
	struct stat st;

	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0 || fstat(l->fd, &st) != 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		return -1;
	}
	l->size = (size_t)st.st_size;
	if (l->size >= sizeof(struct load_ledger_header)) {
		l->map = mmap(NULL, l->size, PROT_READ, MAP_SHARED, l->fd, 0);
		if (l->map == MAP_FAILED)
			l->map = NULL;
	}
	if (l->map == NULL ||
	    memcmp(header(l)->magic, LOAD_LEDGER_MAGIC, 8) != 0 ||
	    header(l)->version != LOAD_LEDGER_VERSION ||
	    header(l)->n > LOAD_LEDGER_MAX ||
	    size_for(header(l)->n) > l->size) {
		snprintf(err, err_size, "%s is no ledger of tributary-load",
		    path);
		return -1;
	}
	return 0;
}

struct load_ledger *
load_ledger_open(const char *path, char *err, size_t err_size)
{
	struct load_ledger *l;

	if ((l = calloc(1, sizeof(*l))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	if (map_existing(l, path, err, err_size) != 0) {
		load_ledger_free(l);
		return NULL;
	}
	return l;
}

void
load_ledger_free(struct load_ledger *l)
{
	if (l == NULL)
		return;
	if (l->map != NULL)
		munmap(l->map, l->size);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

uint32_t
load_ledger_add(struct load_ledger *l, uint32_t session, uint32_t producer,
    uint32_t connection)
{
	uint64_t n = header(l)->n;
	struct load_entry *e;

	if (n == LOAD_LEDGER_MAX || n + header(l)->first_key >= UINT32_MAX)
		return 0;
	if (size_for(n + 1) > l->size && grow(l, n + GROW) != 0)
		return 0;
	e = (struct load_entry *)(l->map + size_for(n));
	memset(e, 0, sizeof(*e));
	e->session = session;
	e->producer = producer;
	e->connection = connection;
	header(l)->n = n + 1;
	return header(l)->first_key + (uint32_t)n;
}

struct load_entry *
load_ledger_at(struct load_ledger *l, uint32_t key)
{
	uint32_t first = header(l)->first_key;

	/* The file may have grown since it was mapped: what was then counts. */
	if (key < first || key - first >= header(l)->n ||
	    size_for((uint64_t)(key - first) + 1) > l->size)
		return NULL;
	return (struct load_entry *)(l->map + size_for(key - first));
}

uint32_t
load_ledger_first(const struct load_ledger *l)
{
	return header(l)->first_key;
}

uint64_t
load_ledger_count(const struct load_ledger *l)
{
	return header(l)->n;
}

const char *
load_end_text(uint32_t end)
{
	static const char *const texts[LOAD_ENDS] = {
		[LOAD_WRITING] = "writing",
		[LOAD_STOPPED] = "stopped",
		[LOAD_CLOSED] = "closed",
		[LOAD_CUT] = "cut",
	};

	return end < LOAD_ENDS ? texts[end] : "unknown";
}
