/*
 * writers: which buffers a producer may write to, and which of them each of its
 * writers is bound to.  Buffers are named by their global ids.
 */
#ifndef SERVICE_INGEST_WRITERS_H
#define SERVICE_INGEST_WRITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct producer;

bool writers_may_use(const struct producer *p, uint16_t buffer);
int writers_allow(struct producer *p, uint16_t buffer) MUST_CHECK;
/* The buffer is going away. */
void writers_forget_buffer(struct producer *p, uint16_t buffer);

/* Binds the writer, to a buffer that its producer may write to. */
void writers_register(struct producer *p, uint32_t writer, uint32_t buffer);
void writers_unregister(struct producer *p, uint32_t writer);
/* The buffer that the writer is bound to; 0: none. */
uint16_t writers_buffer_of(const struct producer *p, uint32_t writer);

/* The producer is being freed. */
void writers_free(struct producer *p);

#endif /* SERVICE_INGEST_WRITERS_H */
