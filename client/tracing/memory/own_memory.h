/*
 * own_memory: the memory of whatever an event may need on its way, and the mark
 * of a thread that is inside of the library.
 *
 * An event may be written in a signal handler, which may have interrupted
 * malloc() or this library.  So nothing on the way of an event calls malloc():
 * memory comes from areas of mmap().  And a thread that takes a lock of the
 * library has entered (own_enter()): an event in a handler that has interrupted
 * it is dropped where it would take a lock.
 *
 * Small blocks are kept for later ones of their size, and never go back to the
 * system.  Any thread.
 */
#ifndef CLIENT_TRACING_MEMORY_OWN_MEMORY_H
#define CLIENT_TRACING_MEMORY_OWN_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

/* ---- The mark ---- */

extern __thread unsigned own_depth __attribute__((tls_model("initial-exec")));

/* The thread may take locks; pairs with own_leave(), and nests. */
static inline void
own_enter(void)
{
	own_depth++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void
own_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	own_depth--;
}

/*
 * For the way of an event: enters, or (false) the caller is in a handler that
 * has interrupted the library, and must take no lock.
 */
static inline bool
own_try_enter(void)
{
	if (UNLIKELY(own_depth != 0))
		return false;
	own_enter();
	return true;
}

/* ---- Blocks; the caller has entered ---- */

/* All zero.  NULL: no memory. */
void *own_alloc(size_t n) MUST_CHECK;
/* p: of n bytes before, or NULL.  NULL: no memory, and p is left as it is. */
void *own_realloc(void *p, size_t n, size_t wanted) MUST_CHECK;
/* p: as it was allocated, of n bytes.  NULL is fine. */
void own_free(void *p, size_t n);

/* Bytes of all blocks that are not free. */
size_t own_used(void);

/* Around a fork(). */
void own_before_fork(void);
void own_after_fork(bool in_child);

#endif /* CLIENT_TRACING_MEMORY_OWN_MEMORY_H */
