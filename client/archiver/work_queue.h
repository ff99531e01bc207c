/*
 * work_queue: paths that a thread is to look at, from another thread.
 *
 * A path that waits is not queued twice.  Bounded: when too many wait, they
 * become one, the whole tree.
 */
#ifndef CLIENT_ARCHIVER_WORK_QUEUE_H
#define CLIENT_ARCHIVER_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct work_queue;

#define WORK_QUEUE_MAX 65536u

struct work {
	char *path;     /* the taker's to free; "" is the whole tree */
	bool is_folder; /* all that is below it */
};

struct work_queue *work_queue_new(void) MUST_CHECK;
/* No thread may use it any more. */
void work_queue_free(struct work_queue *q);

/* Never fails: without memory it queues the whole tree. */
void work_queue_add(struct work_queue *q, const char *path, bool is_folder);
/* work_queue_take() returns, once, even if nothing waits. */
void work_queue_wake(struct work_queue *q);
/* From now on work_queue_is_stopped(), and nothing is taken. */
void work_queue_stop(struct work_queue *q);

/*
 * Takes the path that has waited longest; waits for one for wait_ms.  False:
 * there is none in that time, or it was woken or stopped.
 */
bool work_queue_take(struct work_queue *q, uint64_t wait_ms,
    struct work *out) MUST_CHECK;
bool work_queue_is_stopped(struct work_queue *q);
/* Paths that wait. */
size_t work_queue_length(struct work_queue *q);

#endif /* CLIENT_ARCHIVER_WORK_QUEUE_H */
