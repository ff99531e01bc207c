/*
 * stats_lists: the lists of TraceStats whose entries have keys, added and
 * subtracted: writers, losses outside of buffers, and foreign clocks.
 *
 * Pure.  Input is hostile.  As stats_span.h says; no memory: w->failed.
 */
#ifndef TRANSPORT_PACKET_STATS_LISTS_H
#define TRANSPORT_PACKET_STATS_LISTS_H

#include "transport/packet/stats_numbers.h"
#include "transport/packet/stats_span.h"

/* With the bounds of the buckets before them, where there are any. */
void stats_lists_writers(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier);
void stats_lists_losses(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier);
void stats_lists_clocks(struct pb_writer *w, enum stats_how how,
    struct stats_reading later, struct stats_reading earlier);

#endif /* TRANSPORT_PACKET_STATS_LISTS_H */
