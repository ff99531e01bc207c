#include "transport/process/heap_trimming.h"

#include <malloc.h>

/*
 * Larger blocks than these come from the kernel.  Frames and their blocks (128
 * KiB), which come and go all the time, do not; what compresses, and whole
 * batches for it, does.
 */
#define LARGE_BYTES (256 * 1024)
/* What may be free at a heap's end before it is cut off. */
#define END_BYTES (256 * 1024)

#define STIRRED      64u
#define CAME_MANY    8u
#define SECONDS_REST 5u /* between two times */

void
heap_init(unsigned threads)
{
#ifdef __GLIBC__
	/* Setting one of the last two keeps malloc() from raising both. */
	(void)mallopt(M_ARENA_MAX, 1 + (int)threads);
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, END_BYTES);
#endif
}

void
heap_rest_freed(struct heap_rest *r, uint32_t n)
{
	if (n > UINT32_MAX - r->stirred)
		n = UINT32_MAX - r->stirred;
	r->stirred += n;
}

void
heap_rest_came(struct heap_rest *r)
{
	heap_rest_freed(r, 1);
	r->came++;
}

bool
heap_rest_second(struct heap_rest *r)
{
	bool calm = r->came <= CAME_MANY;

	r->came = 0;
	if (r->seconds < SECONDS_REST)
		r->seconds++;
	if (!calm || r->stirred < STIRRED || r->seconds < SECONDS_REST)
		return false;
	r->stirred = r->seconds = 0;
	return true;
}

void
heap_trim(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}
