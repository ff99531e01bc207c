/*
 * segment_splitter: cuts the stream of a recording into segments, each of which
 * is a trace by itself (protos/segment.proto).
 *
 * Pure: takes bytes that are whole Trace.packet fields, and hands each packet
 * to one segment.  Knows no files, no names of files, no clock and no threads.
 * A splitter belongs to one thread.  Input is hostile.
 *
 * Where packets go:
 *  - Marks (SegmentCut) and repeated packets (tributary_repeated) are believed
 *    of the service's sequence alone, and only a BEGIN whose number is greater
 *    than the current one, and an END with the number of the last BEGIN.  Other
 *    marks are packets as any other.  A BEGIN before the END of the last cut
 *    ends that cut first.
 *  - The mark BEGIN becomes Segment.begun_by; the mark END is in the segment
 *    that it begins.
 *  - At BEGIN the service's packets go to the new segment, except TraceStats,
 *    which go to the old one until END.
 *  - Another sequence moves with its first packet that clears incremental state
 *    after BEGIN, else at END.
 *  - In each segment but the first, the first packet of a sequence that needs
 *    incremental state, while the sequence has not cleared it in this segment,
 *    gets previous_packet_dropped and tributary_divided, if it has no loss.
 *  - Descriptions that producers give only once (CpuInfo, packages, descriptors
 *    of sequences without incremental state, ...) are kept, the last of each
 *    kind and sequence, and repeated at the begin of each segment, with
 *    tributary_repeated: up to 64 KiB each and 4 MiB in all.
 *  - Compressed packets are not looked into; a stream that is to be split has
 *    none.
 *
 * A segment begins with a packet that has tributary_segment, and a trace_uuid of
 * its own, which follows from the recording's, the number and the machine.
 * trace_uuid packets of the service are left out.  It ends with a packet that
 * has Segment.end.
 *
 * TraceStats in the stream are those of the whole recording so far, always.  In
 * a segment they are of its span: what the recording counted since the last
 * reading in the segment before (stats_span.h subtracts, and adds up again).
 * The service therefore puts plain TraceStats before each END and at the end.
 *
 * Split by machine: each machine has a file of each number in which it has
 * packets, and the collector's own machine (0) always has one.  That one has
 * also all packets of the service that are of no machine; those that readers of
 * any file need (config, clock snapshots, events, ...) are in the others too,
 * with tributary_repeated.  Of TraceStats, each file has the writers, losses
 * and foreign clocks of its machine; the collector's has all that is of no
 * machine (buffers, filter, flushes, ...), of unknown machines, and of those
 * without a file of that number.  The files' TraceStats add up to those of the
 * recording.
 */
#ifndef TRANSPORT_SEGMENT_SEGMENT_SPLITTER_H
#define TRANSPORT_SEGMENT_SEGMENT_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct segment_splitter;

#define SEGMENT_UUID_SIZE 16u

struct segment_id {
	uint32_t number;  /* from 1 */
	uint32_t machine; /* as in the packets; 0: the collector, or not split */
	/*
	 * MACHINE_WORD_HOST for the collector's own, else by its SystemInfo;
	 * NULL: not split, or not known (yet).  Borrowed for the call of
	 * begin().
	 */
	const char *machine_name;
	uint64_t begin_realtime_ns; /* wall clock of the cut */
};

/* A segment that is whole. */
struct segment_summary {
	uint32_t number;
	uint32_t machine;
	uint64_t packets;    /* as Segment.End.packets */
	uint32_t unanswered; /* as Segment.End.unanswered */
	bool last;           /* no segment follows */
};

/*
 * From begin() to end() two segments of a machine may be open, the old one and
 * the new one.  Each call may end the splitter's work by an answer that is not
 * 0; only segment_splitter_free() may follow then.  None may call the splitter.
 */
struct segment_ops {
	/* *segment: whatever the other calls are to get for this segment. */
	int (*begin)(void *arg, const struct segment_id *id, void **segment);
	/* Whole Trace.packet fields, borrowed; at least one. */
	int (*put)(void *arg, void *segment, const uint8_t *packets, size_t len);
	/* Exactly once for each begin() that answered 0, unless one fails. */
	int (*end)(void *arg, void *segment, const struct segment_summary *of);
};

struct segment_options {
	/*
	 * trace_uuid of the recording, SEGMENT_UUID_SIZE bytes, most
	 * significant first; NULL: as the stream says.  The first segment
	 * begins once it is known.
	 */
	const uint8_t *recording_uuid;
	const char *recording;      /* its name; NULL: none is written */
	uint64_t begin_realtime_ns; /* of the first segment */
	/* SegmentCut that the first segment begins by; NULL: none */
	const uint8_t *begun_by;
	size_t begun_by_len;
	int32_t uid;                /* trusted_uid of what the splitter writes */
	bool by_machine;
};

enum segment_result {
	SEGMENT_OK = 0,
	SEGMENT_NO_MEMORY,
	SEGMENT_NO_PACKETS, /* the bytes are not whole Trace.packet fields */
	SEGMENT_REFUSED,    /* by one of the ops */
};

/* The options are copied; ops is borrowed.  NULL: no memory. */
struct segment_splitter *segment_splitter_new(const struct segment_options *o,
    const struct segment_ops *ops, void *arg) MUST_CHECK;
/* Ends no segment: ops are not called. */
void segment_splitter_free(struct segment_splitter *s);

/*
 * Takes the next packets.  After another answer than SEGMENT_OK the packets
 * before were handed out, and only segment_splitter_free() may follow.
 */
enum segment_result segment_splitter_put(struct segment_splitter *s,
    const uint8_t *packets, size_t len) MUST_CHECK;

/* Ends all segments; only segment_splitter_free() may follow. */
enum segment_result segment_splitter_finish(struct segment_splitter *s)
    MUST_CHECK;

/* The number of the newest segment: of the last BEGIN that was believed. */
uint32_t segment_splitter_number(const struct segment_splitter *s);
/*
 * Bytes of producers' packets in the newest segment that has most of them.
 * Packets that are repeated, or the service's, do not count.
 */
uint64_t segment_splitter_fresh(const struct segment_splitter *s);
/*
 * Descriptions that will not be repeated: larger than 64 KiB, the oldest of
 * more than 4 MiB, or without memory.
 */
uint64_t segment_splitter_given_up(const struct segment_splitter *s);

#endif /* TRANSPORT_SEGMENT_SEGMENT_SPLITTER_H */
