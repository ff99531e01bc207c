#include "transport/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "transport/shm/shm_internal.h"

static bool
page_size_valid(size_t page)
{
	return page >= SHM_PAGE_UNIT && page <= SHM_PAGE_MAX &&
	    (page & (page - 1)) == 0;
}

static bool
size_valid(size_t size, size_t page)
{
	return size >= page && size <= SHM_SIZE_MAX && size % page == 0;
}

void
shm_valid_sizes(size_t want_size, size_t want_page, size_t *size, size_t *page)
{
	if (want_size == 0)
		want_size = SHM_SIZE_DEFAULT;
	if (want_page == 0)
		want_page = SHM_PAGE_UNIT;
	if (want_size > SHM_SIZE_MAX)
		want_size = SHM_SIZE_MAX;
	if (!page_size_valid(want_page) || !size_valid(want_size, want_page)) {
		want_size = SHM_SIZE_DEFAULT;
		want_page = SHM_PAGE_UNIT;
	}
	*size = want_size;
	*page = want_page;
}

/* Maps fd, whose size the caller checked.  Owns fd on success. */
static struct shm *
map(int fd, size_t size, size_t page_size)
{
	struct shm *s;
	void *base;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		free(s);
		return NULL;
	}
	s->base = base;
	s->size = size;
	s->page_size = page_size;
	s->pages = size / page_size;
	s->fd = fd;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct shm *
shm_new(size_t size, size_t page_size)
{
	struct shm *s;
	int fd;

	if (!page_size_valid(page_size) || !size_valid(size, page_size))
		return NULL;
	fd = memfd_create("tributary-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return NULL;
	if (ftruncate(fd, (off_t)size) < 0)
		goto fail;
	/* Growing is sealed too: clients check for all three. */
	if (fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	if ((s = map(fd, size, page_size)) == NULL)
		goto fail;
	return s;

fail:
	close(fd);
	return NULL;
}

struct shm *
shm_adopt(int fd, size_t page_size, char *err, size_t err_size)
{
	struct statfs fs;
	struct stat st;
	struct shm *s;
	int seals;

	if (!page_size_valid(page_size)) {
		snprintf(err, err_size, "a page of %zu bytes is not 4, 8, 16 "
		    "or 32 KiB", page_size);
		return NULL;
	}
	/*
	 * A file of huge pages can be sealed as well, but punching a hole in
	 * it takes its pages away and touching them is then fatal.
	 */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    (seals = fcntl(fd, F_GET_SEALS)) < 0) {
		snprintf(err, err_size, "the descriptor is no memfd");
		return NULL;
	}
	if ((seals & F_SEAL_SHRINK) == 0) {
		snprintf(err, err_size, "the memfd is not sealed against "
		    "shrinking");
		return NULL;
	}
	if (st.st_size < 0 || !size_valid((size_t)st.st_size, page_size)) {
		snprintf(err, err_size, "%lld bytes are not a multiple of the "
		    "page (%zu) up to %u MiB", (long long)st.st_size, page_size,
		    SHM_SIZE_MAX >> 20);
		return NULL;
	}
	if ((s = map(fd, (size_t)st.st_size, page_size)) == NULL) {
		snprintf(err, err_size, "cannot map the memfd: %s",
		    strerror(errno));
		return NULL;
	}
	return s;
}

void
shm_free(struct shm *s)
{
	if (s == NULL)
		return;
	munmap(s->base, s->size);
	close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->scraped);
	free(s);
}

int
shm_fd(const struct shm *s)
{
	return s->fd;
}

size_t
shm_size(const struct shm *s)
{
	return s->size;
}

size_t
shm_page_size(const struct shm *s)
{
	return s->page_size;
}

size_t
shm_pages(const struct shm *s)
{
	return s->pages;
}
