/*
 * link_in: the receiving side of one direction of a link: tells new blocks from
 * blocks that were sent again.
 * Pure; both ends use it.
 */
#ifndef TRANSPORT_LINK_LINK_IN_H
#define TRANSPORT_LINK_LINK_IN_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct link_in {
	uint64_t received; /* number of the last block taken; 0: none */
	uint64_t told;     /* of that, acknowledged to the other end */
};

enum link_in_verdict {
	LINK_IN_NEW,   /* apply the block: it counts as received from now on */
	LINK_IN_AGAIN, /* sent again: skip it */
	LINK_IN_GAP,   /* a block is missing: the peer breaks the protocol */
};

static inline enum link_in_verdict
link_in_take(struct link_in *in, uint64_t number)
{
	if (number <= in->received)
		return LINK_IN_AGAIN;
	if (number != in->received + 1)
		return LINK_IN_GAP;
	in->received = number;
	return LINK_IN_NEW;
}

#endif /* TRANSPORT_LINK_LINK_IN_H */
