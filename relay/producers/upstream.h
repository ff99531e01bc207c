/*
 * upstream: the interface by which local producers (producers.h) send messages
 * to the collector: over the link or by Perfetto's protocol, which the
 * implementation decides and producers do not know.
 *
 * A producer is a channel.  No message of it is put before
 * producers_announce(), and none after producers_lost() until it is announced
 * again.  All ids of buffers, instances and flushes in messages are the
 * collector's.
 */
#ifndef RELAY_PRODUCERS_UPSTREAM_H
#define RELAY_PRODUCERS_UPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include "transport/link/link_wire.h"

enum upstream_room {
	UPSTREAM_ROOM,    /* *out is writable; commit() must follow */
	UPSTREAM_LATER,   /* back-pressure: again after producers_resume() */
	UPSTREAM_DROPPED, /* never: the caller reports it with dropped() */
};

struct upstream_ops {
	/*
	 * Puts a message of any kind but LINK_UP_COMMIT, encoded as in
	 * LinkUpBlock; data is copied.  A kind that is a varint: len is 0 and
	 * value counts.
	 * Never refused: without room for it, producers_lost() follows on a
	 * later turn.
	 */
	void (*put)(void *arg, uint32_t channel, enum link_up kind,
	    const void *data, size_t len, uint64_t value);
	/*
	 * Reserves *out for an encoded CommitDataRequest of at most max bytes
	 * (up to LINK_MESSAGE_MAX); the caller writes it and calls commit()
	 * before any other call.  data_len: bytes of the chunk in it; 0:
	 * patches or a flush acknowledgement, which are neither dropped nor put
	 * off.
	 */
	enum upstream_room (*reserve)(void *arg, uint32_t channel, size_t max,
	    size_t data_len, uint8_t **out);
	/* Puts the first len of the reserved bytes; 0: gives all back. */
	void (*commit)(void *arg, uint32_t channel, size_t len);
	/*
	 * Counts a chunk that found no room (cause LINK_LOSS_UNSPECIFIED: the
	 * upstream knows the cause) or is longer than a message can be, and on
	 * a link puts the loss in its place.  Called once for each chunk given
	 * up, not for one that is tried again.
	 */
	void (*dropped)(void *arg, uint32_t channel,
	    const struct link_loss *loss);
};

struct upstream {
	const struct upstream_ops *ops;
	void *arg;
};

#endif /* RELAY_PRODUCERS_UPSTREAM_H */
