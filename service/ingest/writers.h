/*
 * writers: the buffers that a producer may write to, and the one that each of
 * its writers is bound to.  Buffers are named by their global ids.  Belongs to
 * the loop's thread.
 */
#ifndef SERVICE_INGEST_WRITERS_H
#define SERVICE_INGEST_WRITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct producer;

bool writers_may_use(const struct producer *p, uint16_t buffer);
/* -1: no memory. */
int writers_allow(struct producer *p, uint16_t buffer) MUST_CHECK;
/* Forbids a buffer that is going away, and unbinds its writers. */
void writers_forget_buffer(struct producer *p, uint16_t buffer);

/*
 * Binds the writer to a buffer that its producer may write to.  Another buffer
 * or an impossible id is counted and ignored; so is a writer over the
 * producer's quota of sequences.
 */
void writers_register(struct producer *p, uint32_t writer, uint32_t buffer);
/* Unbinds the writer, and tells its buffer that the writer is gone. */
void writers_unregister(struct producer *p, uint32_t writer);
/* The buffer that the writer is bound to; 0: none. */
uint16_t writers_buffer_of(const struct producer *p, uint32_t writer);

/* Frees both tables, as the producer is being freed. */
void writers_free(struct producer *p);

#endif /* SERVICE_INGEST_WRITERS_H */
