/*
 * trace_clocks_internal: what trace_clocks.c (sequences, times, snapshots) and
 * remote_sync.c (RemoteClockSync) share.
 */
#ifndef CLIENT_CLOCK_TRACE_CLOCKS_INTERNAL_H
#define CLIENT_CLOCK_TRACE_CLOCKS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "client/clock/clock_graph.h"
#include "transport/base/compiler.h"

/* ClockSnapshot.Clock */
struct clock_message {
	uint32_t id;
	uint64_t timestamp;
	uint64_t unit_ns; /* 1, where it says nothing */
	bool incremental;
};

/*
 * The clocks of an encoded ClockSnapshot, up to max; counts all of them.
 * *primary: primary_trace_clock, untouched where there is none.
 */
size_t clock_messages_read(const uint8_t *data, size_t len,
    struct clock_message *out, size_t max, uint32_t *primary);

/* An encoded RemoteClockSync of a machine (not 0).  -1: no memory. */
int remote_sync_take(struct clock_graph *g, uint32_t machine,
    const uint8_t *data, size_t len) MUST_CHECK;

#endif /* CLIENT_CLOCK_TRACE_CLOCKS_INTERNAL_H */
