/*
 * fd_queue: descriptors that arrived on a stream and wait for their message.
 *
 * A read of a UNIX socket ends with the bytes that a descriptor was sent with
 * (unix(7)), so all that is known of its place is the input offset where the
 * read ended: it belongs to the message that this offset lies in, or that ends
 * there.
 * Empty it holds no memory.
 */
#ifndef TRANSPORT_SOCKET_FD_QUEUE_H
#define TRANSPORT_SOCKET_FD_QUEUE_H

#include <stdint.h>

#include "transport/base/compiler.h"

/* More than this many are closed as they come. */
#define FD_QUEUE_MAX 4

struct fd_queue_items;

struct fd_queue {
	struct fd_queue_items *items; /* NULL: empty */
};

/* Closes all. */
void fd_queue_done(struct fd_queue *q);

/*
 * Takes ownership of fd, whose read ended at the input offset `end`.  -1: there
 * is no memory, and it was closed.
 */
int fd_queue_add(struct fd_queue *q, int fd, uint64_t end) MUST_CHECK;

/* The descriptor of the message at [start, end), the caller's; -1: none. */
int fd_queue_take_of(struct fd_queue *q, uint64_t start, uint64_t end);

/* Closes descriptors of messages that ended at or before the offset. */
void fd_queue_drop_until(struct fd_queue *q, uint64_t offset);

#endif /* TRANSPORT_SOCKET_FD_QUEUE_H */
