/*
 * fdq: descriptors that arrived on a stream and wait for their message.
 *
 * A read of a UNIX socket ends with the bytes that a descriptor was sent with
 * (unix(7)), so all that is known of its place is the input offset where its
 * read ended: it belongs to the message that this offset lies in or ends.
 * Empty it holds no memory.
 */
#ifndef TRANSPORT_FDQ_H
#define TRANSPORT_FDQ_H

#include <stdint.h>

#include "transport/compiler.h"

/* More than this many are closed as they come. */
#define FDQ_MAX 4

struct fdq_items;

struct fdq {
	struct fdq_items *items; /* NULL: empty */
};

/* Closes all. */
void fdq_done(struct fdq *q);

/*
 * Takes ownership of fd, whose read ended at the input offset `end`.  -1: there
 * is no memory, and it was closed.
 */
int fdq_add(struct fdq *q, int fd, uint64_t end) MUST_CHECK;

/* The oldest, or -1.  The caller owns it. */
int fdq_take(struct fdq *q);
/* The one of the message at [start, end), or -1.  The caller owns it. */
int fdq_take_of(struct fdq *q, uint64_t start, uint64_t end);

/* Closes those of messages that ended at or before the offset. */
void fdq_drop_until(struct fdq *q, uint64_t offset);

#endif /* TRANSPORT_FDQ_H */
