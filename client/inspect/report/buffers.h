/*
 * buffers: the buffers of a trace's session, with the advice that
 * buffer_advice derives from their statistics.
 */
#ifndef CLIENT_INSPECT_REPORT_BUFFERS_H
#define CLIENT_INSPECT_REPORT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/trace/buffer_advice.h"

struct inspection;

struct inspect_buffer {
	const struct Perfetto__Protos__TraceStats__BufferStats *stats;
	const char *name; /* "": it has none */
	bool discard;
	struct buffer_advice reading;
};

/* Buffers in the statistics at the trace's end; 0: there are none. */
size_t inspect_buffers_count(const struct inspection *i);
/* index: below the count.  stats and name borrow from the inspection. */
void inspect_buffers_read(struct inspect_buffer *out,
    const struct inspection *i, size_t index);

#endif /* CLIENT_INSPECT_REPORT_BUFFERS_H */
