/*
 * populator: gives memory to pages that somebody will write soon, on a thread
 * of its own.
 *
 * The first touch of a page costs up to milliseconds where pages are huge or the
 * machine is a virtual one; on the loop everybody would wait for it.  Nothing
 * depends on it: a page that comes too late is made by the one who writes it.
 * Knows nothing of buffers.  The thread begins with the first request.
 */
#ifndef SERVICE_RING_MEMORY_POPULATOR_H
#define SERVICE_RING_MEMORY_POPULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transport/base/compiler.h"

/* One call of the kernel makes so much: whoever drops a job waits for one. */
#define POPULATOR_STEP (UINT64_C(2) << 20)

struct populator;

/* Embedded by its owner; all zero at first, and its fields are private. */
struct populate_job {
	TAILQ_ENTRY(populate_job) link; /* while begin < end */
	uintptr_t begin; /* what is still to be made */
	uintptr_t end;
};

/* NULL: no memory. */
struct populator *populator_new(void) MUST_CHECK;
/* Waits for the step under way; no job may be left.  NULL is fine. */
void populator_free(struct populator *p);

/*
 * Has the pages from `begin` to `end` (multiples of the page size) made, in this
 * order; what is in them stays, and may change meanwhile.  Asked again for a job,
 * both move on: what is before `begin` is not wanted any more, what was made
 * already is not made again.  Jobs take turns.
 */
void populator_ask(struct populator *p, struct populate_job *j,
    const void *begin, const void *end);
/*
 * Ends the job: its memory is not touched any more and may go.  Then it is as
 * it was at first.
 */
void populator_drop(struct populator *p, struct populate_job *j);

#endif /* SERVICE_RING_MEMORY_POPULATOR_H */
