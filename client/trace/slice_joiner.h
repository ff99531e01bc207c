/*
 * slice_joiner: puts the packets of ReadBuffers together from their slices.
 *
 * Takes encoded ReadBuffersResponse messages in their order.  A packet may be
 * spread over any number of them; it is kept up to its end and no further.
 * Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_SLICE_JOINER_H
#define CLIENT_TRACE_SLICE_JOINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_writer.h"

/* A larger packet is an error. */
#define SLICE_JOINER_MAX_PACKET (1024u << 20)

struct slice_joiner {
	struct pb_writer partial; /* a packet that is not complete yet */
	const char *error;        /* the first; static; NULL: none */
};

/* A packet, borrowed.  false: no more of them, please. */
typedef bool (*slice_joiner_fn)(void *arg, const uint8_t *data, size_t len);

/* Zero-initialised is ready to use, and done makes it so again. */
void slice_joiner_done(struct slice_joiner *j);

/*
 * One message: calls fn for each packet that it completes.  Returns false when
 * fn did, and does not touch j after that.  After an error the rest is ignored.
 */
bool slice_joiner_feed(struct slice_joiner *j, const uint8_t *msg, size_t len,
    slice_joiner_fn fn, void *arg);

/* Called after the last message: a sentence, or NULL when all came whole. */
const char *slice_joiner_error(const struct slice_joiner *j);

#endif /* CLIENT_TRACE_SLICE_JOINER_H */
