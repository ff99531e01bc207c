#include "tests/oom/fail_malloc.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What stands below us: the sanitizer's where there is one. */
#define BELOW(result, name, params, args)                                      \
	result __libc_##name params;                                           \
	result __interceptor_##name params __attribute__((__weak__));          \
	static result below_##name params                                      \
	{                                                                      \
		return __interceptor_##name != NULL ?                          \
		    __interceptor_##name args : __libc_##name args;            \
	}

BELOW(void *, malloc, (size_t size), (size))
BELOW(void *, calloc, (size_t n, size_t size), (n, size))
BELOW(void *, realloc, (void *p, size_t size), (p, size))
BELOW(void *, memalign, (size_t align, size_t size), (align, size))
BELOW(void, free, (void *p), (p))

#define CALLER __builtin_return_address(0)

static struct fail_malloc nobody, *control = &nobody;
static bool say_where;

/* For people, with FAIL_MALLOC_SAY set: for addr2line. */
static void
say(void)
{
	void *callers[24];

	backtrace_symbols_fd(callers, backtrace(callers, 24), STDERR_FILENO);
}

/*
 * A sanitizer does not stand it that what it asks of the C library fails: with
 * one, calls from these two never do.
 */
static struct {
	uintptr_t from, to;
} spared[2];
static int n_spared;

static int
spare(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t at, to = 0;
	int i;

	if (strstr(info->dlpi_name, "/libc.so") == NULL &&
	    strstr(info->dlpi_name, "/libasan.so") == NULL)
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
		    info->dlpi_phdr[i].p_memsz;
		to = at > to ? at : to;
	}
	if (n_spared < 2) {
		spared[n_spared].from = info->dlpi_addr;
		spared[n_spared++].to = to;
	}
	return 0;
}

static bool
is_spared(const void *caller)
{
	int i;

	for (i = 0; i < n_spared; i++)
		if ((uintptr_t)caller >= spared[i].from &&
		    (uintptr_t)caller < spared[i].to)
			return true;
	return false;
}

__attribute__((__constructor__)) static void
find_control(void)
{
	const char *path = getenv(FAIL_MALLOC_FILE);
	void *map;
	int fd;

	if (__interceptor_malloc != NULL)
		dl_iterate_phdr(spare, NULL);
	say_where = getenv("FAIL_MALLOC_SAY") != NULL;
	if (path == NULL || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return;
	map = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED,
	    fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		control = map;
}

static bool
fails(const void *caller)
{
	unsigned long number, first;

	if (!atomic_load(&control->armed) || is_spared(caller))
		return false;
	number = atomic_fetch_add(&control->calls, 1) + 1;
	first = atomic_load(&control->first);
	if (number < first || number - first >= atomic_load(&control->count))
		return false;
	atomic_fetch_add(&control->failed, 1);
	if (say_where)
		say();
	errno = ENOMEM;
	return true;
}

/* A sanitizer counts for itself, and must not be asked before it is ready. */
static long
size_of(void *p)
{
	if (p == NULL || __interceptor_malloc != NULL)
		return 0;
	return (long)malloc_usable_size(p);
}

static void *
taken(void *p)
{
	atomic_fetch_add(&control->live, size_of(p));
	return p;
}

void *
malloc(size_t size)
{
	return fails(CALLER) ? NULL : taken(below_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
	return fails(CALLER) ? NULL : taken(below_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
	long before = size_of(p);
	void *q;

	if (fails(CALLER))
		return NULL;
	q = below_realloc(p, size);
	if (q == NULL && size > 0)
		return NULL;
	atomic_fetch_sub(&control->live, before);
	return taken(q);
}

void *
memalign(size_t align, size_t size)
{
	return fails(CALLER) ? NULL : taken(below_memalign(align, size));
}

void *
aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int
posix_memalign(void **out, size_t align, size_t size)
{
	void *p = memalign(align, size);

	if (p == NULL)
		return ENOMEM;
	*out = p;
	return 0;
}

void
free(void *p)
{
	atomic_fetch_sub(&control->live, size_of(p));
	below_free(p);
}
