/*
 * split_world: a splitter whose segments are lines of text.
 *
 * A packet is its timestamp; behind it `!` where previous_packet_dropped is
 * set, and `r` where it is repeated.  S: the segment's head with its number, U:
 * a trace_uuid, END: the mark, stats: TraceStats with invalid_packets, E: the
 * segment's end with its count of packets, then u and the producers without an
 * answer, c and the cause.
 *
 *	"S2 U 7r 8! 9 stats3 E2 c1"
 */
#ifndef TESTS_UNIT_TRANSPORT_SEGMENT_SPLIT_WORLD_H
#define TESTS_UNIT_TRANSPORT_SEGMENT_SPLIT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/trace_packet.pb-c.h"
#include "transport/segment/segment_splitter.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__TracePacket Packet;

#define WORLD_SEGMENTS 64

struct world_segment {
	uint32_t number;
	uint32_t machine;
	char name[32]; /* at its begin; empty: none */
	uint64_t begin_realtime_ns;
	struct pb_writer bytes;
	size_t puts;
	bool ended;
	struct segment_summary summary;
};

struct world {
	struct segment_splitter *s;
	struct world_segment segments[WORLD_SEGMENTS];
	size_t n;
	struct pb_writer input; /* not put yet */
	size_t refuse_after;    /* calls; 0: never */
	size_t calls;
	char line[4096];
};

/* The recording's uuid is 1, 2. */
#define WORLD_UUID "trace_uuid { msb: 1 lsb: 2 } "
#define SERVICE    "trusted_packet_sequence_id: 1 "
#define CUT_BEGIN(n) SERVICE "tributary_segment_cut { phase: BEGIN number: " #n \
	" cause: TIME realtime_ns: " #n "000 } "
#define CUT_END(n) SERVICE "tributary_segment_cut { phase: END number: " #n " } "

struct world *world_new(bool by_machine);
struct world *world_new_with(const struct segment_options *o);
void world_free(struct world *w);

/* Adds a packet, as protobuf text, to what is put next. */
void world_add(struct world *w, const char *text);
/* Puts the packets that were added, in one piece. */
enum segment_result world_put(struct world *w);
/* Adds and puts; it must work. */
void world_take(struct world *w, const char *text);
void world_finish(struct world *w);

/* NULL: there is none. */
struct world_segment *world_segment(struct world *w, uint32_t number,
    uint32_t machine);
/* The segment's line, until the next call. */
const char *world_line(struct world *w, uint32_t number, uint32_t machine);

/* Calls fn with each packet of some bytes. */
void world_each(const uint8_t *data, size_t len,
    void (*fn)(void *arg, const Packet *p), void *arg);

#endif /* TESTS_UNIT_TRANSPORT_SEGMENT_SPLIT_WORLD_H */
