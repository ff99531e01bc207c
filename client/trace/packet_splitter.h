/*
 * packet_splitter: cuts the bytes of a trace file, which come in any pieces,
 * into packets.  Keeps at most one incomplete packet.  Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_PACKET_SPLITTER_H
#define CLIENT_TRACE_PACKET_SPLITTER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* A file with a larger packet is no trace. */
#define PACKET_SPLITTER_MAX_PACKET (1u << 30)

/* Tag and the longest varint. */
#define PACKET_SPLITTER_HEADER_MAX 11

/* Whether some bytes begin with a whole packet, a part of one, or neither. */
enum trace_cut { TRACE_CUT_OK, TRACE_CUT_MORE, TRACE_CUT_BAD };

/*
 * On OK and MORE *total is the packet's size with its framing, of which the
 * first *header bytes are tag and length; both are 0 when not even that is
 * known.
 */
enum trace_cut packet_splitter_look(const uint8_t *data, size_t len,
    size_t *header, size_t *total) MUST_CHECK;

struct packet_splitter {
	uint8_t *tail; /* the incomplete packet, framing included; owned */
	size_t tail_len;
	size_t tail_cap;
	uint64_t whole_bytes; /* up to the end of the last whole packet */
};

/* A packet without its framing, borrowed for the call. */
typedef void (*packet_splitter_fn)(void *arg, const uint8_t *data, size_t len);

/* Frees the memory; a splitter is ready to use again, as zero-initialised. */
void packet_splitter_done(struct packet_splitter *c);

/*
 * Takes the next bytes, and calls fn for each packet that they complete.  -1
 * when the bytes are no trace (another field than Trace.packet, a packet that
 * is too large) or memory is short: the packets in the first whole_bytes bytes
 * were handed out, and only packet_splitter_done() may follow.
 */
int packet_splitter_feed(struct packet_splitter *c, const uint8_t *data,
    size_t len, packet_splitter_fn fn, void *arg) MUST_CHECK;

#endif /* CLIENT_TRACE_PACKET_SPLITTER_H */
