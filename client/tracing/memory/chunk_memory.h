/*
 * chunk_memory: the memory that this program's trace writers share with one
 * service, and what the service is still to be told about it: finished chunks,
 * and which writer writes into which of its buffers.
 *
 * Knows nothing of connections: its owner, on one thread, takes what is queued
 * and tells the service.  Every other function may be called from any thread,
 * and holds a lock for some instructions only; on the way of an event it has
 * entered (own_memory.h).  Counted references: writers
 * outlive the connection, and write into memory that is not read until they
 * notice.
 */
#ifndef CLIENT_TRACING_MEMORY_CHUNK_MEMORY_H
#define CLIENT_TRACING_MEMORY_CHUNK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/shm/shm.h"

struct chunk_memory;

/* A finished chunk that the service is to move into its buffer. */
struct chunk_commit {
	uint32_t page;
	uint32_t index;
	uint32_t buffer;
	uint32_t used; /* bytes of its payload that hold fragments */
};

/* A writer that began (buffer not 0) or ended. */
struct writer_note {
	uint16_t writer;
	uint32_t buffer;
};

/*
 * Owns shm.  wake: called when something is queued and nothing was; from any
 * thread, also under locks: it may only wake the owner.  NULL: no memory; shm
 * is left alone.
 */
struct chunk_memory *chunk_memory_new(struct shm *shm, void (*wake)(void *arg),
    void *arg) MUST_CHECK;
struct chunk_memory *chunk_memory_ref(struct chunk_memory *m);
/* NULL is fine. */
void chunk_memory_unref(struct chunk_memory *m);

struct shm *chunk_memory_shm(struct chunk_memory *m); /* borrowed */

/*
 * The service is gone: no chunk is acquired any more, and wake() is not called
 * after this returns.
 */
void chunk_memory_close(struct chunk_memory *m);

/* ---- Writers ---- */

/* An id for a writer into the buffer; 0: all 32767 are in use. */
uint16_t chunk_memory_begin_writer(struct chunk_memory *m, uint32_t buffer)
    MUST_CHECK;
/* After its last commit. */
void chunk_memory_end_writer(struct chunk_memory *m, uint16_t writer);

enum chunk_acquire {
	CHUNK_ACQUIRED,
	CHUNK_NONE_FREE,
	CHUNK_CLOSED, /* none will ever be */
};
enum chunk_acquire chunk_memory_acquire(struct chunk_memory *m,
    uint16_t writer, uint32_t chunk_id, uint8_t flags, struct shm_slot *out)
    MUST_CHECK;
/* The chunk stays the writer's, and may be read. */
void chunk_memory_complete(struct chunk_memory *m,
    const struct shm_slot *slot);
/* Queues a complete chunk. */
void chunk_memory_commit(struct chunk_memory *m, const struct shm_slot *slot,
    size_t used, uint32_t buffer);

/*
 * Waits some time, at first 50 microseconds, in *wait_ns, for the service to
 * free a chunk; the owner hears that it is waited for.  On the owner's thread
 * it calls tell(arg), set by chunk_memory_set_owner(), as the queue would stay
 * full otherwise.  A writer that waits holds no chunk, which would be missing.
 */
void chunk_memory_wait(struct chunk_memory *m, long *wait_ns);
/* As chunk_memory_wait(), but for something else than a chunk. */
void chunk_memory_pause(long *wait_ns);

/* ---- Its owner ---- */

/*
 * Whether a writer has found no chunk since the last call, and none is on its
 * way: writers hold them all, the owner is to have them handed over.
 */
bool chunk_memory_starves(struct chunk_memory *m);

/* The calling thread is the owner; tell: tells the service what is queued. */
void chunk_memory_set_owner(struct chunk_memory *m, void (*tell)(void *arg),
    void *arg);

/*
 * Takes up to most of what is queued, in order: notes that a writer began come
 * before its chunks, those that it ended after them.  0: nothing is queued.
 */
struct chunk_queue_item {
	bool is_note;
	union {
		struct chunk_commit commit;
		struct writer_note note;
	} is;
};
size_t chunk_memory_take(struct chunk_memory *m, struct chunk_queue_item *out,
    size_t most);

#endif /* CLIENT_TRACING_MEMORY_CHUNK_MEMORY_H */
