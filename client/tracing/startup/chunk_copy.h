/*
 * chunk_copy: packets of one chunk_memory, whose writers have ended, written
 * once more into another.
 */
#ifndef CLIENT_TRACING_STARTUP_CHUNK_COPY_H
#define CLIENT_TRACING_STARTUP_CHUNK_COPY_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct chunk_memory;
struct tributary_instance;

/* Any buffer but 0: which one is said when the packets are copied. */
#define CHUNK_COPY_BUFFER 1u

/*
 * Takes all that is queued in m, each writer's packets in their order, and
 * writes them for the instance, as sequences of their own; waits for its
 * service as a stalling writer does.  to: NULL: none is written.  Returns
 * the packets that were not written.
 */
uint64_t chunk_copy(struct chunk_memory *m, struct tributary_instance *to)
    MUST_CHECK;

#endif /* CLIENT_TRACING_STARTUP_CHUNK_COPY_H */
