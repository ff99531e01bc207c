/*
 * frame: cuts a byte stream into frames of 4-byte little-endian length and
 * payload (reference wire-format.md).  Pure.
 */
#ifndef TRANSPORT_WIRE_FRAME_H
#define TRANSPORT_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define FRAME_HEADER_BYTES 4u
/*
 * Length prefix included: what clients can receive, what we accept
 * (behaviour.md, "Sockets and frames").
 */
#define FRAME_MAX_BYTES (128u * 1024u)
#define FRAME_PAYLOAD_MAX (FRAME_MAX_BYTES - FRAME_HEADER_BYTES)

enum frame_verdict {
	FRAME_OK,      /* *payload, *payload_len, *used are set */
	FRAME_MORE,    /* incomplete; *need holds total bytes wanted from buf */
	FRAME_TOO_BIG, /* longer than FRAME_PAYLOAD_MAX: give up on the stream */
};

/* Looks at the first frame in buf.  A length of 0 is a valid empty frame. */
enum frame_verdict frame_next(const uint8_t *buf, size_t len,
    const uint8_t **payload, size_t *payload_len, size_t *used, size_t *need);

static inline void
frame_put_header(uint8_t out[4], uint32_t payload_len)
{
	out[0] = (uint8_t)payload_len;
	out[1] = (uint8_t)(payload_len >> 8);
	out[2] = (uint8_t)(payload_len >> 16);
	out[3] = (uint8_t)(payload_len >> 24);
}

#endif /* TRANSPORT_WIRE_FRAME_H */
