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
	uint64_t received; /* every block up to this one was taken */
	uint64_t told;     /* the other end knows that */
};

enum link_in_verdict {
	LINK_IN_NEW,   /* take it: it counts as received from now on */
	LINK_IN_AGAIN, /* was taken before: skip it */
	LINK_IN_GAP,   /* one is missing: the other end breaks the protocol */
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
