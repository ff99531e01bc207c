/* stats_sum: adds up the TraceStats of the segments of a recording.  Pure. */
#ifndef CLIENT_ARCHIVE_JOIN_STATS_SUM_H
#define CLIENT_ARCHIVE_JOIN_STATS_SUM_H

#include "transport/base/compiler.h"

struct pb_writer;
struct segment_packet;
struct stats_sum;

struct stats_sum *stats_sum_new(void) MUST_CHECK;
void stats_sum_free(struct stats_sum *s);

/* Takes a packet with TraceStats of a later span.  -1: no memory. */
int stats_sum_add(struct stats_sum *s, const struct segment_packet *p)
    MUST_CHECK;
/*
 * Appends the body of a packet with the sum, in all else the last packet that
 * was taken; nothing, where none was.  -1: no memory.
 */
int stats_sum_packet(const struct stats_sum *s, struct pb_writer *w) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_JOIN_STATS_SUM_H */
