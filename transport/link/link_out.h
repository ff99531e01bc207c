/*
 * link_out: the sending side of the collector's direction: numbers blocks, and
 * keeps them in memory until they are acknowledged.  Pure.
 *
 * Messages for one channel that follow each other share a block until it is
 * sent.  (The relay's direction is relay/outbox/outbox.h.)
 */
#ifndef TRANSPORT_LINK_LINK_OUT_H
#define TRANSPORT_LINK_LINK_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/link/link_wire.h"

struct link_out;

struct link_out_block {
	uint64_t number;
	uint32_t channel;
	const uint8_t *data; /* borrowed, until the block is acknowledged */
	size_t len;
};

/* limit: most bytes of blocks that are kept.  NULL: no memory. */
struct link_out *link_out_new(size_t limit) MUST_CHECK;
void link_out_free(struct link_out *o);

/*
 * Adds a message (copied).  -1: over the limit, longer than LINK_MESSAGE_MAX,
 * or no memory.
 */
int link_out_put(struct link_out *o, uint32_t channel, enum link_down kind,
    const void *data, size_t len) MUST_CHECK;
/*
 * The next block that was not sent on this connection yet; it counts as sent
 * from now on.  False: there is none.
 */
bool link_out_next(struct link_out *o, struct link_out_block *b);
/* Acknowledges, and frees, every block up to number.  -1: it was never sent. */
int link_out_acked(struct link_out *o, uint64_t number) MUST_CHECK;
/*
 * A new connection, whose peer has taken every block up to `received`: later
 * blocks are sent again.  -1: that is below an acknowledged block, or was never
 * sent.
 */
int link_out_resume(struct link_out *o, uint64_t received) MUST_CHECK;

size_t link_out_bytes(const struct link_out *o); /* of blocks that are kept */

#endif /* TRANSPORT_LINK_LINK_OUT_H */
