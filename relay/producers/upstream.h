/*
 * upstream: where the words of local producers go: over the link, or in the
 * classic way.  What implements it decides; local producers
 * (relay/producers/producers.h) cannot tell.
 *
 * A producer is a channel.  Nothing is said of it before producers_announce(),
 * and nothing after producers_lost() until it is announced again.  All ids of
 * buffers, instances and flushes in what goes through here are the collector's.
 */
#ifndef RELAY_PRODUCERS_UPSTREAM_H
#define RELAY_PRODUCERS_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

enum upstream_room {
	UPSTREAM_ROOM,    /* *out is writable; upward_commit() must follow */
	UPSTREAM_LATER,   /* not now: producers_resume() says when */
	UPSTREAM_DROPPED, /* never: say what it was with dropped() */
};

struct upstream_ops {
	/*
	 * Puts a message of any kind but LINK_UP_COMMIT, encoded as in
	 * LinkUpBlock; kinds that are a varint: len is 0 and value counts.
	 * Never refused: without room for it, producers_lost() follows on a
	 * later turn.
	 */
	void (*put)(void *arg, uint32_t channel, enum link_up kind,
	    const void *data, size_t len, uint64_t value);
	/*
	 * Room for an encoded CommitDataRequest of at most max bytes (up to
	 * LINK_MESSAGE_MAX), into which the caller writes at once.  data_len:
	 * of the chunk in it, for counting; 0: patches or a flush
	 * acknowledgement, which are never dropped nor put off.
	 */
	enum upstream_room (*reserve)(void *arg, uint32_t channel, size_t max,
	    size_t data_len, uint8_t **out);
	/* len bytes of it were used; 0: none, it is given back. */
	void (*commit)(void *arg, uint32_t channel, size_t len);
	/*
	 * Counts a chunk that found no room (cause LINK_LOSS_UNSPECIFIED:
	 * upward knows why) or is longer than a message can be, and tells of it
	 * where it would have stood.  Once for each: a chunk may also be tried
	 * again.
	 */
	void (*dropped)(void *arg, uint32_t channel,
	    const struct link_loss *loss);
};

struct upstream {
	const struct upstream_ops *ops;
	void *arg;
};

#endif /* RELAY_PRODUCERS_UPSTREAM_H */
