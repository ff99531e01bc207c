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
 * As above into an empty writer; the short form where it would be longer than
 * most bytes.  Even that may be longer.
 */
void session_stats_packet_within(struct session *s, struct pb_writer *w,
    size_t most);
/*
 * Appends the fields of a TraceStats message for a reply: without the
 * histograms per writer, and with the losses of relays by machine, so that it
 * always fits a frame.
 */
void session_stats_message(struct session *s, struct pb_writer *w);

#endif /* SERVICE_OUTPUT_SESSION_STATS_H */
