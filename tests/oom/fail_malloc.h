/*
 * fail_malloc: malloc() and its relatives with failures on demand, to be
 * preloaded into a program: it stands before the C library (or the sanitizer)
 * for everybody in the process, libraries included.
 *
 * Somebody else says when: both map the file that the environment names, which
 * holds one struct fail_malloc.
 */
#ifndef TESTS_OOM_FAIL_MALLOC_H
#define TESTS_OOM_FAIL_MALLOC_H

#include <stdatomic.h>

#define FAIL_MALLOC_FILE "FAIL_MALLOC_FILE"

/* All zero: nothing fails. */
struct fail_malloc {
	atomic_bool armed;  /* calls are counted */
	atomic_ulong calls; /* of allocators, since then */
	atomic_ulong first; /* these fail: first ... first + count - 1 */
	atomic_ulong count;
	atomic_ulong failed;
	atomic_long live;   /* bytes that nobody freed */
};

#endif /* TESTS_OOM_FAIL_MALLOC_H */
