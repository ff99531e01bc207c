/*
 * segment_packet: the fields of one TracePacket that decide where it goes when
 * segments are joined, read in place.  Untrusted input.  Pure.
 */
#ifndef CLIENT_ARCHIVE_JOIN_SEGMENT_PACKET_H
#define CLIENT_ARCHIVE_JOIN_SEGMENT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

struct segment_packet {
	const uint8_t *data; /* borrowed; without framing */
	size_t len;
	int32_t uid;
	uint32_t sequence_id;
	uint32_t machine_id;
	/* clock_snapshot, trace_uuid, trace_stats; 0: any other */
	uint32_t payload;
	bool has_timestamp;
	bool repeated;
	bool divided;        /* its loss is the mark of a cut */
	bool cut;            /* a SegmentCut */
	uint64_t timestamp;
	struct pb_field segment; /* start NULL: none */
	struct pb_field content; /* of the payload, where that is not 0 */
};

/* false: malformed. */
bool segment_packet_read(struct segment_packet *p, const uint8_t *data,
    size_t len) MUST_CHECK;

/* Whether the service wrote it: only such packets' marks are believed. */
bool segment_packet_is_service(const struct segment_packet *p);
/* Whether it is the service's, and of no machine: each file may have it. */
bool segment_packet_is_common(const struct segment_packet *p);

#endif /* CLIENT_ARCHIVE_JOIN_SEGMENT_PACKET_H */
