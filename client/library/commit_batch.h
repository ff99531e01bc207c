/*
 * commit_batch: the finished chunks of one producer on their way to the
 * service.
 *
 * Trace writers add chunks; the batch encodes them into CommitDataRequests,
 * with their bytes where the service cannot see the memory (emulation).  A
 * request for which there is no memory is lost.
 * Knows nothing of the connection: it hands encoded requests to ops->send().
 * One thread only.
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
	 * The caller's thread waits for memory: sent bytes must leave now,
	 * although the loop does not turn.
	 */
	void (*push)(void *arg);
	/* Under emulation: whether the connection takes more bytes now. */
	bool (*may_send)(void *arg);
	/* Chunks are queued: call commit_batch_send() before long. */
	void (*wake)(void *arg);
};

/* shm is borrowed and outlives the batch.  NULL: no memory. */
struct commit_batch *commit_batch_new(struct shm *shm, bool emulated,
    const struct commit_ops *ops, void *arg) MUST_CHECK;
/* Forgets chunks that were not sent. */
void commit_batch_free(struct commit_batch *b);

struct shm *commit_batch_shm(const struct commit_batch *b);

/*
 * Completes the slot and queues its chunk for the global buffer `buffer`;
 * used: bytes of its payload that hold fragments.  Sends by itself when the
 * payloads that wait make half of the memory.
 */
void commit_batch_add(struct commit_batch *b, const struct shm_slot *slot,
    size_t used, uint32_t buffer);

/* Sends queued chunks as far as may_send() allows.  True: none are left. */
bool commit_batch_send(struct commit_batch *b);
/* Pushes earlier requests out as far as possible, then sends queued chunks. */
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
