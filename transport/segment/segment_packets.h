/*
 * segment_packets: packets that a splitter writes itself, and changes to those
 * of others.
 *
 * Pure: each function appends a whole Trace.packet field to w.  Memory failure
 * shows in w->failed.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_PACKETS_H
#define TRANSPORT_SEGMENT_SEGMENT_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_writer;
struct segment_look;

struct segment_uuid {
	uint64_t msb;
	uint64_t lsb;
};

/* A segment's own uuid: always the same one of the same arguments. */
struct segment_uuid segment_uuid_of(const struct segment_uuid *recording,
    uint32_t number, uint32_t machine);

struct segment_head {
	struct segment_uuid recording_uuid;
	const char *recording;   /* NULL: left out */
	uint32_t number;
	const uint8_t *begun_by; /* SegmentCut; NULL: left out */
	size_t begun_by_len;
	bool by_machine;
	uint32_t machine;
	const char *machine_name; /* NULL: left out */
	uint64_t begin_realtime_ns;
};

/* The first packets of a segment: who it is, and its trace_uuid. */
void segment_packets_head(struct pb_writer *w, int32_t uid,
    const struct segment_head *h);

struct segment_tail {
	struct segment_uuid recording_uuid;
	uint32_t number;
	uint64_t packets;
	uint32_t unanswered;
	uint32_t cause; /* SegmentCut.Cause; 0: left out */
};

void segment_packets_tail(struct pb_writer *w, int32_t uid,
    const struct segment_tail *t);

/* The packet with previous_packet_dropped, which a cut is the cause of. */
void segment_packets_divided(struct pb_writer *w, const struct segment_look *k);
/*
 * The packet with tributary_repeated.  A loss before it, which is where it was
 * first, is taken out.
 */
void segment_packets_repeated(struct pb_writer *w,
    const struct segment_look *k);
/* The packet with other contents, in the field that it has them in. */
void segment_packets_changed(struct pb_writer *w, const struct segment_look *k,
    const struct pb_writer *content);

#endif /* TRANSPORT_SEGMENT_SEGMENT_PACKETS_H */
