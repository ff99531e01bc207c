/*
 * commit_batch: the finished chunks of one producer on their way to the
 * service.
 *
 * Trace writers add chunks; the batch encodes them into CommitDataRequests,
 * with their bytes where the service cannot see the shared memory (emulation).
 * Without heap memory to encode a request, the request is lost.
 * Knows nothing of the connection: it hands encoded requests to ops->send().
 * Belongs to one thread.
 */
#ifndef CLIENT_LIBRARY_COMMIT_BATCH_H
#define CLIENT_LIBRARY_COMMIT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct commit_batch;
struct shm;
struct shm_slot;

/* An encoded request is never longer; leaves room for the frame around it. */
#define COMMIT_REQUEST_MAX (128u * 1024u - 256u)

struct commit_ops {
	/* One CommitDataRequest; msg is borrowed for the call. */
	void (*send)(void *arg, const uint8_t *msg, size_t len);
	/*
	 * A stalling trace writer blocks the thread until chunks are free:
	 * writes queued bytes to the socket now, as the loop does not turn.
	 */
	void (*push)(void *arg);
	/*
	 * Back-pressure under emulation: whether the connection takes another
	 * request now.
	 */
	bool (*may_send)(void *arg);
	/* Chunks are queued: call commit_batch_send() before long. */
	void (*wake)(void *arg);
};

/*
 * shm and ops are borrowed and outlive the batch; arg is passed to all ops.
 * NULL: no memory.
 */
struct commit_batch *commit_batch_new(struct shm *shm, bool emulated,
    const struct commit_ops *ops, void *arg) MUST_CHECK;
/* Frees the batch; queued chunks are not sent.  NULL is fine. */
void commit_batch_free(struct commit_batch *b);

struct shm *commit_batch_shm(const struct commit_batch *b);

/*
 * Completes the slot and queues its chunk for the service's buffer with the
 * global id `buffer`; used: bytes of its payload that hold fragments.  Sends,
 * as commit_batch_send() does, when the queued payloads make half of the shared
 * memory; else calls ops->wake() for the first chunk in the queue.
 */
void commit_batch_add(struct commit_batch *b, const struct shm_slot *slot,
    size_t used, uint32_t buffer);

/* Sends queued chunks as far as may_send() allows.  True: none are left. */
bool commit_batch_send(struct commit_batch *b);
/* Calls ops->push() for earlier requests, then commit_batch_send(). */
void commit_batch_push(struct commit_batch *b);
/*
 * Sends every queued chunk without asking may_send(); with a flush request
 * id that is not 0, tells the service in the last request that this flush is
 * done.
 */
void commit_batch_send_all(struct commit_batch *b, uint64_t flush_request_id);

/* Queued chunks. */
size_t commit_batch_waiting(const struct commit_batch *b);

#endif /* CLIENT_LIBRARY_COMMIT_BATCH_H */
