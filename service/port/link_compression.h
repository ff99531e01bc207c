/*
 * link_compression: decompresses the blocks that come on one connection of a
 * link, on the loop's thread or the socket's I/O thread, and charges the
 * decompressor's memory to the budget of all connections.  Does not look into
 * blocks.
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

/*
 * Embedded in its owner, which sets service.  Zero-initialised is off: blocks
 * come plain.
 */
struct link_compression {
	struct service *service;
	/* One of them is set and owned while it is on. */
	struct link_decompressor *zstd;
	struct link_unpacker *unpacker;
	uint64_t grown;  /* link_unpacker_grown(), as seen last */
	uint64_t excess; /* of it, bytes not yet subtracted from a count */
};

/*
 * Stays off without memory, or when decompressors would have more than half of
 * the budget of all connections.
 */
void link_compression_start(struct link_compression *c, struct rpc_conn *conn);
void link_compression_done(struct link_compression *c);
bool link_compression_is_on(const struct link_compression *c);
/*
 * The bytes that len received bytes took on the network.  Exact only in the sum
 * over time: the I/O thread may have decompressed frames that have not come
 * here yet.
 */
size_t link_compression_network_bytes(struct link_compression *c, size_t len);
/*
 * Sets *block to the decompressed block of a frame, borrowed until the next
 * call, from f where it was plain.  Returns NULL, or why the link is to be
 * given up (static).
 */
const char *link_compression_unpack(struct link_compression *c,
    const struct link_frame *f, const uint8_t **block, size_t *len) MUST_CHECK;

#endif /* SERVICE_PORT_LINK_COMPRESSION_H */
