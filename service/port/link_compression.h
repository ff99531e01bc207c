/*
 * link_compression: unpacks the blocks that come on one connection of a link,
 * here or on the thread of its socket, and charges what that takes to the
 * memory of all connections.  Knows nothing of what blocks say.
 */
#ifndef SERVICE_PORT_LINK_COMPRESSION_H
#define SERVICE_PORT_LINK_COMPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct link_decompressor;
struct link_frame;
struct link_unpacker;
struct rpc_conn;
struct service;

/* Embedded in its owner, which sets service; zero is off: blocks come plain. */
struct link_compression {
	struct service *service;
	/* One of them, when it is on. */
	struct link_decompressor *zstd;
	struct link_unpacker *unpacker;
	uint64_t grown;  /* link_unpacker_grown(), as seen last */
	uint64_t excess; /* of it, what is not taken off any count yet */
};

/* Stays off where there is no memory. */
void link_compression_start(struct link_compression *c, struct rpc_conn *conn);
void link_compression_done(struct link_compression *c);
bool link_compression_is_on(const struct link_compression *c);
/*
 * The bytes that a block of len took on the network.  Right in the sum only:
 * blocks that another thread has unpacked may not have come here yet.
 */
size_t link_compression_network_bytes(struct link_compression *c, size_t len);
/*
 * The block of a frame, plain: borrowed until the next call.  NULL, or why the
 * link is to be given up (static).
 */
const char *link_compression_unpack(struct link_compression *c,
    const struct link_frame *f, const uint8_t **block, size_t *len) MUST_CHECK;

#endif /* SERVICE_PORT_LINK_COMPRESSION_H */
