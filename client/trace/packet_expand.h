/*
 * packet_expand: decompresses the packets inside a compressed packet
 * (TracePacket.compressed_packets and zstd_compressed_packets).
 *
 * Takes whole TracePackets one by one and hands out the inner packets of
 * compressed ones.  Untrusted input: time and memory for one compressed packet
 * are bounded by PACKET_EXPAND_MAX_BYTES, for all of a trace by
 * PACKET_EXPAND_ALLOWANCE and PACKET_EXPAND_RATIO.  Pure.
 *
 *	switch (packet_expand_packet(x, data, len, err, size)) {
 *	case PACKET_EXPAND_PLAIN:  look at data, len itself
 *	case PACKET_EXPAND_DONE:   fn got all inner packets
 *	case PACKET_EXPAND_BAD:    fn got those before the damage that err tells
 *	}                         of; the next call is not affected
 */
#ifndef CLIENT_TRACE_PACKET_EXPAND_H
#define CLIENT_TRACE_PACKET_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct packet_expand;

/*
 * Limit for one compressed packet.  Collectors put about a megabyte and at most
 * one packet more into each.
 */
#define PACKET_EXPAND_MAX_BYTES (256u << 20)
/*
 * Limit for the expanded bytes of all packets of a trace so far: the allowance
 * plus RATIO times their compressed bytes.  Decompression bombs have higher
 * ratios (deflate up to 1000, zstd more).
 */
#define PACKET_EXPAND_ALLOWANCE (1ull << 30)
#define PACKET_EXPAND_RATIO     200u
/*
 * Base-2 logarithm of the largest zstd window, that of level 22.  A frame with
 * a larger window is refused; a smaller window takes less memory.  Memory in
 * all: at most this window, PACKET_EXPAND_MAX_BYTES for an incomplete inner
 * packet (mostly far less), and 128 KiB.
 */
#define PACKET_EXPAND_WINDOW_LOG 27

enum packet_expand_result {
	PACKET_EXPAND_PLAIN, /* not compressed, or no message: not touched */
	PACKET_EXPAND_DONE,
	PACKET_EXPAND_BAD,   /* damaged, cut, or over a limit */
};

/*
 * An inner packet without its framing, borrowed for the call.  A compressed
 * inner packet is handed out as it is: no collector nests them, only
 * decompression bombs do.
 */
typedef void (*packet_expand_fn)(void *arg, const uint8_t *data, size_t len);

/* fn: called in packet_expand_packet() only; arg: borrowed.  NULL: no memory. */
struct packet_expand *packet_expand_new(packet_expand_fn fn, void *arg)
    MUST_CHECK;
void packet_expand_free(struct packet_expand *x);

/*
 * Takes one TracePacket, without the tag and length that a file puts before it,
 * and calls fn for each inner packet.  err: written only for PACKET_EXPAND_BAD,
 * a sentence without a full stop.
 */
enum packet_expand_result packet_expand_packet(struct packet_expand *x,
    const uint8_t *data, size_t len, char *err, size_t err_size) MUST_CHECK;

/* Whether this TracePacket is well-formed and holds compressed packets. */
bool packet_expand_is_compressed(const uint8_t *data, size_t len);

/* Decompressed bytes so far, framing of the inner packets included. */
uint64_t packet_expand_bytes(const struct packet_expand *x);

#endif /* CLIENT_TRACE_PACKET_EXPAND_H */
