/*
 * link_unpack: decompresses the blocks of a relay, frame by frame, on the
 * thread that has the relay's socket (stream_set_unpack()): a frame with a
 * compressed block becomes a frame with the plain block.
 *
 * Reference-counted: the connection that installs it holds one reference, the
 * stream the other.
 */
#ifndef TRANSPORT_LINK_LINK_UNPACK_H
#define TRANSPORT_LINK_LINK_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct link_unpacker;

/* With one reference.  NULL: no memory. */
struct link_unpacker *link_unpacker_new(void) MUST_CHECK;
struct link_unpacker *link_unpacker_ref(struct link_unpacker *u);
/* From any thread; NULL is fine. */
void link_unpacker_unref(struct link_unpacker *u);

/*
 * As frame() of struct stream_unpack: frame is whole, header included, as is
 * its replacement in out, whose bytes are returned.  0: the frame stays as it
 * is (it has no compressed block, or a damaged one, which makes all later ones
 * unreadable, too).  STREAM_UNPACK_ROOM: more than `room` is needed; nothing
 * was done.
 */
size_t link_unpack_frame(struct link_unpacker *u, const uint8_t *frame,
    size_t len, uint8_t *out, size_t room);

/*
 * By how many bytes frames became larger so far.  From any thread; the count
 * may be ahead of the frames that were shown to the stream's owner.
 */
uint64_t link_unpacker_grown(const struct link_unpacker *u);

#endif /* TRANSPORT_LINK_LINK_UNPACK_H */
