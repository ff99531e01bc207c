#include "client/tracing/memory/own_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Sizes of blocks: steps of 16 bytes up to 512, then powers of two. */
#define STEP       16u
#define STEPS_MAX  512u
#define POWERS_MAX 65536u
#define STEPS      (STEPS_MAX / STEP)
#define CLASSES    (STEPS + 7u)
/* Taken from the system at once; what is not touched costs nothing. */
#define AREA (256u * 1024u)

struct block {
	struct block *next;
};

__thread unsigned own_depth __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct block *free_blocks[CLASSES];
static uint8_t *area, *area_end;
static size_t used;

/*
 * LeakSanitizer looks for pointers in what malloc() gave alone, unless it is
 * told of more.
 */
void __lsan_register_root_region(const void *p, size_t n)
    __attribute__((__weak__));

/* Class of a block of n bytes; CLASSES: one of its own mapping. */
static unsigned
class_of(size_t n, size_t *size)
{
	unsigned c;

	if (n <= STEPS_MAX) {
		c = n > 0 ? (unsigned)((n - 1) / STEP) : 0;
		*size = (c + 1) * STEP;
		return c;
	}
	for (c = STEPS, *size = STEPS_MAX * 2; *size < n && c < CLASSES; c++)
		*size *= 2;
	if (n > POWERS_MAX) {
		*size = (n + 4095) & ~(size_t)4095;
		return CLASSES;
	}
	return c;
}

static void *
map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (__lsan_register_root_region != NULL)
		__lsan_register_root_region(p, n);
	return p;
}

/* Under the lock.  NULL: no memory. */
static void *
take(unsigned c, size_t size)
{
	struct block *b = free_blocks[c];
	uint8_t *fresh;

	if (b != NULL) {
		free_blocks[c] = b->next;
		memset(b, 0, size);
		return b;
	}
	if ((size_t)(area_end - area) < size) {
		if ((fresh = map(AREA)) == NULL)
			return NULL;
		area = fresh;
		area_end = fresh + AREA;
	}
	area += size;
	return area - size;
}

void *
own_alloc(size_t n)
{
	size_t size;
	unsigned c = class_of(n, &size);
	void *p;

	own_enter();
	pthread_mutex_lock(&lock);
	p = c < CLASSES ? take(c, size) : map(size);
	if (p != NULL)
		used += size;
	pthread_mutex_unlock(&lock);
	own_leave();
	return p;
}

void
own_free(void *p, size_t n)
{
	struct block *b = p;
	size_t size;
	unsigned c = class_of(n, &size);

	if (p == NULL)
		return;
	own_enter();
	pthread_mutex_lock(&lock);
	used -= size;
	if (c < CLASSES) {
		b->next = free_blocks[c];
		free_blocks[c] = b;
	} else {
		munmap(p, size);
	}
	pthread_mutex_unlock(&lock);
	own_leave();
}

/* Both are mappings of their own: pages move without being copied. */
static void *
remap(void *p, size_t size, size_t wanted)
{
	void *q = mremap(p, size, wanted, MREMAP_MAYMOVE);

	if (q == MAP_FAILED)
		return NULL;
	own_enter();
	pthread_mutex_lock(&lock);
	used += wanted - size;
	pthread_mutex_unlock(&lock);
	own_leave();
	return q;
}

void *
own_realloc(void *p, size_t n, size_t wanted)
{
	size_t size, wanted_size;
	unsigned c = class_of(n, &size), wanted_c = class_of(wanted,
	    &wanted_size);
	void *q;

	if (p != NULL && size == wanted_size)
		return p;
	if (p != NULL && c == CLASSES && wanted_c == CLASSES)
		return remap(p, size, wanted_size);
	if ((q = own_alloc(wanted)) != NULL && p != NULL) {
		memcpy(q, p, n < wanted ? n : wanted);
		own_free(p, n);
	}
	return q;
}

size_t
own_used(void)
{
	size_t n;

	own_enter();
	pthread_mutex_lock(&lock);
	n = used;
	pthread_mutex_unlock(&lock);
	own_leave();
	return n;
}

void
own_before_fork(void)
{
	own_enter();
	pthread_mutex_lock(&lock);
}

void
own_after_fork(bool in_child)
{
	if (in_child)
		pthread_mutex_init(&lock, NULL);
	else
		pthread_mutex_unlock(&lock);
	own_leave();
}
