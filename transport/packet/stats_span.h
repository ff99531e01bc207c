/*
 * stats_span: TraceStats of a span of a recording, from readings of the whole,
 * and the way back.
 *
 * A reading is an encoded TraceStats message: all since the recording began.
 * Pure.  Input is hostile: a malformed message counts up to its first bad byte.
 *
 * Counters are subtracted and added: all of BufferStats but buffer_size; the
 * histograms of WriterStats, by sequence and buffer; FilterStats; LinkLossStats,
 * by machine, sequence, producer and cause; ForeignClock.packets; and of the
 * message itself chunks_discarded, patches_discarded, invalid_packets, flushes_*
 * and tributary_packets.  A counter that is smaller later has begun anew: it is
 * taken as it is.
 *
 * All other fields are readings of one moment, and the later one stands:
 * buffer_size, producers_* and data_sources_* (of the service, not of the
 * recording), tracing_sessions, total_buffers, final_flush_outcome, offset_ns.
 */
#ifndef TRANSPORT_PACKET_STATS_SPAN_H
#define TRANSPORT_PACKET_STATS_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct pb_writer;

/* The fields of a TraceStats message, borrowed. */
struct stats_reading {
	const uint8_t *data;
	size_t len;
};

/*
 * Appends the statistics of the span between two readings (no tag, no length).
 * Writers, losses and foreign clocks without anything new are left out.  A
 * reading may have its losses by machine only (the service's short form): where
 * either has, so has the span.  No memory: w->failed.
 */
void stats_span_subtract(struct pb_writer *w, struct stats_reading later,
    struct stats_reading earlier);

/*
 * Appends the statistics of two spans together; a reading is a span, too.  No
 * memory: w->failed.
 */
void stats_span_add(struct pb_writer *w, struct stats_reading earlier,
    struct stats_reading later);

#endif /* TRANSPORT_PACKET_STATS_SPAN_H */
