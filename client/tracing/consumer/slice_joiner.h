/*
 * slice_joiner: puts the packets of ReadBuffers together from their slices.
 *
 * Takes encoded ReadBuffersResponse messages in their order.  A packet may be
 * spread over any number of messages; at most one incomplete packet is kept.
 * Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACING_CONSUMER_SLICE_JOINER_H
#define CLIENT_TRACING_CONSUMER_SLICE_JOINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/wire/pb_writer.h"

/* A larger packet is an error. */
#define SLICE_JOINER_MAX_PACKET (1024u << 20)

struct slice_joiner {
	struct pb_writer partial; /* the incomplete packet */
	const char *error;        /* the first error; static; NULL: none */
};

/* A whole packet, borrowed for the call.  false: stop, j may be freed. */
typedef bool (*slice_joiner_fn)(void *arg, const uint8_t *data, size_t len);

/* Zero-initialised is ready to use; done frees memory and resets to that. */
void slice_joiner_done(struct slice_joiner *j);

/*
 * Takes one message, and calls fn for each packet that it completes.  Returns
 * false when fn did, and does not touch j after that.  After an error
 * (slice_joiner_error()) further messages are ignored.
 */
bool slice_joiner_feed(struct slice_joiner *j, const uint8_t *msg, size_t len,
    slice_joiner_fn fn, void *arg);

/* Called after the last message: a static sentence; NULL: all came whole. */
const char *slice_joiner_error(const struct slice_joiner *j);

#endif /* CLIENT_TRACING_CONSUMER_SLICE_JOINER_H */
