/*
 * outq: output that a socket did not take yet, with the descriptors that
 * travel with it.
 *
 * Empty it holds no memory.  A descriptor belongs to the first byte of what it
 * was queued with, and nothing is sent in one call with it but that: so the
 * receiver can tell to which of several messages it belongs.
 */
#ifndef TRANSPORT_OUTQ_H
#define TRANSPORT_OUTQ_H

#include <stddef.h>
#include <sys/uio.h>

#include "transport/compiler.h"

struct outq_chunk;

struct outq {
	struct outq_chunk *head;
	struct outq_chunk *tail;
	size_t bytes;  /* queued */
	size_t memory; /* allocated */
};

void outq_init(struct outq *q);
void outq_done(struct outq *q);

/*
 * Copies two pieces to the end.  fd >= 0 is owned by the queue on success.
 * -1: no memory; the queue is as it was.
 */
int outq_add(struct outq *q, const void *a, size_t alen, const void *b,
    size_t blen, int fd) MUST_CHECK;

/*
 * The beginning of the queue as up to max pieces, and the descriptor that
 * goes with it (borrowed) or -1.  Returns the number of pieces.
 */
int outq_peek(const struct outq *q, struct iovec *iov, int max, int *fd);

/* Forgets n bytes from the front; their descriptors are closed. */
void outq_consume(struct outq *q, size_t n);

#endif /* TRANSPORT_OUTQ_H */
