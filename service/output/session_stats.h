/*
 * session_stats: TraceStats of a session, for the trace and for GetTraceStats.
 */
#ifndef SERVICE_OUTPUT_SESSION_STATS_H
#define SERVICE_OUTPUT_SESSION_STATS_H

#include <stddef.h>

struct pb_writer;
struct session;

/* Appends the TraceStats packet (body of a TracePacket). */
void session_stats_packet(struct session *s, struct pb_writer *w);
/*
 * As above into an empty writer; where the packet would be longer than `most`
 * bytes, the short form, without histograms and with losses by machine.  Even
 * the short form may be longer.
 */
void session_stats_packet_within(struct session *s, struct pb_writer *w,
    size_t most);
/*
 * Appends the fields of a TraceStats message for a reply, which always fits a
 * frame: with histograms of at most 256 writers, or of none where that is more
 * than 96 KiB, and with the losses outside of buffers summed by machine.
 */
void session_stats_message(struct session *s, struct pb_writer *w);

#endif /* SERVICE_OUTPUT_SESSION_STATS_H */
