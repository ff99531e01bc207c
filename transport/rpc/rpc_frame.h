/*
 * rpc_frame: the next frame of what a stream has brought, for both ends of a
 * connection.  Private to the room.
 */
#ifndef TRANSPORT_RPC_RPC_FRAME_H
#define TRANSPORT_RPC_RPC_FRAME_H

#include "transport/stream/stream.h"
#include "transport/wire/frame.h"

struct rpc_frame {
	const uint8_t *start; /* of its header; len: with it */
	size_t len;
	const uint8_t *payload;
	size_t payload_len;
};

/* frame_next(); tells the stream how many bytes an incomplete frame wants. */
static inline enum frame_verdict
rpc_frame_next(struct rpc_frame *f, struct stream *s, const uint8_t *buf,
    size_t len)
{
	enum frame_verdict v;
	size_t need;

	v = frame_next(buf, len, &f->payload, &f->payload_len, &f->len, &need);
	f->start = buf;
	if (v == FRAME_MORE)
		stream_want(s, need);
	return v;
}

#endif /* TRANSPORT_RPC_RPC_FRAME_H */
