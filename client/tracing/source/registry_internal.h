/*
 * registry_internal: shared by registry.c (sources), instance.c (instances) and
 * sequence.c (threads).
 */
#ifndef CLIENT_TRACING_SOURCE_REGISTRY_INTERNAL_H
#define CLIENT_TRACING_SOURCE_REGISTRY_INTERNAL_H

#include <stdbool.h>

#include "client/tracing/source/registry.h"

/* ---- instance.c; under the lock ---- */

/*
 * Lets go of an instance.  The last one is dead, and freed by
 * instance_free_dead(): a signal handler must not free() what it refers to.
 */
void instance_unref(struct tributary_instance *i);
void instance_free_dead(void);
void instance_after_fork(void);

/*
 * Every thread that has not seen a flag set before is inside, and its `busy` is
 * seen by the caller.
 */
void registry_see_each_other(void);

static inline bool
sequence_is_busy(const struct sequence *q)
{
	return __atomic_load_n(&q->busy, __ATOMIC_ACQUIRE) != SEQUENCE_OUT;
}

/* ---- sequence.c ---- */

void sequence_init_threads(void);
/* In the child of a fork(). */
void sequence_after_fork(void);

#endif /* CLIENT_TRACING_SOURCE_REGISTRY_INTERNAL_H */
