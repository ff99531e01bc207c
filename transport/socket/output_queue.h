/*
 * output_queue: output that a socket did not take yet, with the descriptors
 * that travel with it.
 *
 * Empty it holds no memory.  A descriptor travels with the first byte of the
 * output that it was queued with, and no other output is sent in the same call:
 * so the receiver can tell to which of several messages it belongs.
 */
#ifndef TRANSPORT_SOCKET_OUTPUT_QUEUE_H
#define TRANSPORT_SOCKET_OUTPUT_QUEUE_H

#include <stddef.h>
#include <sys/uio.h>

#include "transport/base/compiler.h"

struct output_queue_chunk;

struct output_queue {
	struct output_queue_chunk *head;
	struct output_queue_chunk *tail;
	size_t bytes;  /* queued */
	size_t memory; /* bytes allocated */
};

void output_queue_init(struct output_queue *q);
void output_queue_done(struct output_queue *q);

/*
 * Copies two pieces to the end.  fd >= 0 is owned by the queue on success.
 * -1: no memory; the queue is as it was.
 */
int output_queue_add(struct output_queue *q, const void *a, size_t alen,
    const void *b, size_t blen, int fd) MUST_CHECK;

/*
 * The beginning of the queue as up to max pieces, and the descriptor that
 * goes with it (borrowed) or -1.  Returns the number of pieces.
 */
int output_queue_peek(const struct output_queue *q, struct iovec *iov, int max,
    int *fd);

/* Forgets n bytes from the front; their descriptors are closed. */
void output_queue_consume(struct output_queue *q, size_t n);

#endif /* TRANSPORT_SOCKET_OUTPUT_QUEUE_H */
