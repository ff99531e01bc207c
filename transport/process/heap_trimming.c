#include "transport/process/heap_trimming.h"

#include <malloc.h>

/*
 * Larger blocks than these are mapped from the kernel: those of compressors,
 * and whole batches for them.  Frames and their blocks (128 KiB), which come
 * and go all the time, are not.
 */
#define LARGE_BYTES (256 * 1024)
/* Bytes that may stay free at a heap's end before it is cut off. */
#define END_BYTES (256 * 1024)

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
heap_trim(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}
