/*
 * session_filter: a session's TraceFilter at work: puts a packet and its
 * trusted fields together, filters the whole, and counts the bytes that it took
 * out of each buffer's packets.
 *
 * The trusted fields go through the filter like all others, as in Perfetto: a
 * filter that does not name them takes them away.  A packet that loses all its
 * fields, or is malformed, becomes an empty one, so that packets can be counted
 * on both sides.
 */
#ifndef SERVICE_PACKET_SESSION_FILTER_H
#define SERVICE_PACKET_SESSION_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct config;
struct packet_filter_stats;
struct packet_parts;
struct session_filter;
struct tb_slice;

/* Instead of a buffer, for the service's own packets. */
#define SESSION_FILTER_NO_BUFFER SIZE_MAX

/*
 * Makes the filter of a config with a trace_filter, which it does not keep.
 * NULL with the sentence for EnableTracing in err.
 */
struct session_filter *session_filter_new(const struct config *c, char *err,
    size_t err_size) MUST_CHECK;
void session_filter_free(struct session_filter *f);

/*
 * Returns the filtered packet, borrowed until the next call.  buffer: the
 * packet's, an index in the config, or SESSION_FILTER_NO_BUFFER.
 */
struct tb_slice session_filter_packet(struct session_filter *f,
    const struct packet_parts *packet, size_t buffer);

/* Nanoseconds that filtering took so far. */
uint64_t session_filter_ns(const struct session_filter *f);
/*
 * Copies the counters; out->discarded is borrowed: valid until the filter is
 * freed, and changes with each packet.
 */
void session_filter_stats(const struct session_filter *f,
    struct packet_filter_stats *out);

#endif /* SERVICE_PACKET_SESSION_FILTER_H */
