/*
 * link_unpack: takes compressed blocks out of what a relay sends, frame by
 * frame, on the thread that has the relay's socket (transport/stream/stream.h):
 * a frame with a compressed block becomes one with that block as it was before.
 *
 * Counted: the connection that asks for it holds one reference, the stream that
 * it is installed on the other.
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
 * frame is whole, header included, as is what is written to out; returns its
 * bytes.  0: the frame stays as it is (it has no compressed block, or one that
 * is damaged, as are all behind it).  STREAM_UNPACK_ROOM: more than `room` is
 * needed; nothing was done.
 */
size_t link_unpack_frame(struct link_unpacker *u, const uint8_t *frame,
    size_t len, uint8_t *out, size_t room);

/*
 * By how much frames became larger so far.  From any thread, which may not have
 * been shown all of these frames yet.
 */
uint64_t link_unpacker_grown(const struct link_unpacker *u);

#endif /* TRANSPORT_LINK_LINK_UNPACK_H */
