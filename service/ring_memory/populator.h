/*
 * populator: prefaults pages that will be written soon, on a thread of its own.
 *
 * The first touch of a page costs up to milliseconds where pages are huge or
 * the machine is a virtual one; on the loop all connections would wait for it.
 * Nothing depends on the populator: a page that it did not reach in time is
 * faulted in by its first write.  Knows nothing of buffers.
 *
 * All calls come from the loop's thread.  The populator's own thread begins
 * with the first request; where it cannot begin, or the kernel is too old for
 * MADV_POPULATE_WRITE, requests have no effect.
 */
#ifndef SERVICE_RING_MEMORY_POPULATOR_H
#define SERVICE_RING_MEMORY_POPULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/base/compiler.h"

/* Bytes of one call of the kernel: populator_drop() waits for at most one. */
#define POPULATOR_STEP (UINT64_C(2) << 20)

struct populator;

/* Embedded by its owner; all zero at first, and its fields are private. */
struct populate_job {
	TAILQ_ENTRY(populate_job) link; /* while begin < end */
	uintptr_t begin; /* addresses that are still to be made */
	uintptr_t end;
};

/* NULL: no memory. */
struct populator *populator_new(void) MUST_CHECK;
/*
 * Joins the thread, after its step under way; no job may be left.  NULL is
 * fine.
 */
void populator_free(struct populator *p);

/*
 * Has the pages from `begin` to `end` (multiples of the page size) made, in
 * this order; their contents stay, and may change meanwhile.  Another call for
 * the same job moves its range on: pages before `begin` are not wanted any
 * more, and pages that were made are not made again.  Jobs are served round
 * robin, a step at a time.
 */
void populator_ask(struct populator *p, struct populate_job *j,
    const void *begin, const void *end);
/*
 * Ends the job, after its step under way: its memory is not touched any more
 * and may be unmapped.  The job is all zero again.
 */
void populator_drop(struct populator *p, struct populate_job *j);

#endif /* SERVICE_RING_MEMORY_POPULATOR_H */
