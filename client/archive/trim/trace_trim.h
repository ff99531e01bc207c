/*
 * trace_trim: cuts a trace to a time, packet by packet: events outside of it
 * go, and what the events inside of it need stays.
 *
 * Only packets of kinds that are events and nothing else go: track events,
 * ftrace bundles, counters of probes, test events.  Where such a packet also
 * changes the state of its sequence (interned data, defaults, a cleared state, a
 * loss), it stays without its event.  Timestamps that count from the packet
 * before are corrected.  Kept as they are: packets without a time or of a time
 * that cannot be told, and values that count from the one before (incremental
 * counters).  Descriptors, configs, clocks and statistics stay.
 *
 * Times are the wall clock of the collector.  Memory as trace_clocks.  Input is
 * untrusted; packets are not compressed.  Pure.
 */
#ifndef CLIENT_ARCHIVE_TRIM_TRACE_TRIM_H
#define CLIENT_ARCHIVE_TRIM_TRACE_TRIM_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_trim;

struct trace_trim_counts {
	uint64_t dropped;
	uint64_t emptied; /* stay without their event */
	uint64_t timeless; /* events whose time could not be told */
};

/* CLOCK_REALTIME, both ends inside.  NULL: no memory. */
struct trace_trim *trace_trim_new(uint64_t from_ns, uint64_t to_ns) MUST_CHECK;
void trace_trim_free(struct trace_trim *t);

/*
 * Takes the next packet of the trace.  *out, *out_len: what becomes of it,
 * borrowed until the next call; *out NULL: it goes.  -1: no memory.
 */
int trace_trim_packet(struct trace_trim *t, const uint8_t *data, size_t len,
    const uint8_t **out, size_t *out_len) MUST_CHECK;
struct trace_trim_counts trace_trim_counts(const struct trace_trim *t);

#endif /* CLIENT_ARCHIVE_TRIM_TRACE_TRIM_H */
