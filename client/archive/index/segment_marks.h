/*
 * segment_marks: what a segment says of itself, in its first packet and its
 * last (TracePacket.tributary_segment).  Untrusted input.  Pure.
 */
#ifndef CLIENT_ARCHIVE_INDEX_SEGMENT_MARKS_H
#define CLIENT_ARCHIVE_INDEX_SEGMENT_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct segment_entry;

/* Longer names are cut. */
#define SEGMENT_NAME_MAX 255u

/*
 * Takes a TracePacket of the service.  Sets the fields of the entry that are for
 * segments, and *begin_ns to the wall clock of its begin.  -1: no memory.
 */
int segment_marks_take(struct segment_entry *e, uint64_t *begin_ns,
    const uint8_t *packet, size_t len) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_INDEX_SEGMENT_MARKS_H */
