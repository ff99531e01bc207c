/*
 * packet_expand: the packets inside of a packet that holds others compressed
 * (TracePacket.compressed_packets and zstd_compressed_packets).
 *
 * Takes whole TracePackets one by one and hands out what is inside of those
 * that are compressed.  Untrusted input: what one of them costs is bounded by
 * PACKET_EXPAND_MAX_BYTES in time and memory, and what all together cost by
 * PACKET_EXPAND_ALLOWANCE and PACKET_EXPAND_RATIO.  Pure.
 *
 *	switch (packet_expand_packet(x, data, len, err, size)) {
 *	case PACKET_EXPAND_PLAIN:  look at data, len itself
 *	case PACKET_EXPAND_DONE:   fn had all that is in it
 *	case PACKET_EXPAND_BAD:    fn had what could be read; err says why
 *	}                         it ended.  The next packet is a new beginning.
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
 * Limit for all packets of a trace: this much, and then so many times their
 * compressed size.  A bomb makes more (deflate 1000 times, zstd more).
 */
#define PACKET_EXPAND_ALLOWANCE (1ull << 30)
#define PACKET_EXPAND_RATIO     200u
/*
 * The logarithm of the largest window of zstd: as far back as its levels up to
 * 22 look.  A frame that wants more is refused; memory for one that wants less
 * is what it wants.  In all at most this window and PACKET_EXPAND_MAX_BYTES for
 * one packet that is not complete yet (mostly far less), and 128 KiB.
 */
#define PACKET_EXPAND_WINDOW_LOG 27

enum packet_expand_result {
	PACKET_EXPAND_PLAIN, /* not compressed, or no message: not touched */
	PACKET_EXPAND_DONE,
	PACKET_EXPAND_BAD,   /* damaged, cut, or over a limit */
};

/*
 * An inner packet without its framing, borrowed.  One that is compressed
 * again is handed out as it is: no collector nests them, only bombs do.
 */
typedef void (*packet_expand_fn)(void *arg, const uint8_t *data, size_t len);

/* fn: called in packet_expand_packet() only; arg: borrowed.  NULL: no memory. */
struct packet_expand *packet_expand_new(packet_expand_fn fn, void *arg)
    MUST_CHECK;
void packet_expand_free(struct packet_expand *x);

/*
 * One TracePacket, without the tag and length that a file puts before it.
 * err: written only for PACKET_EXPAND_BAD, a sentence without a full stop.
 */
enum packet_expand_result packet_expand_packet(struct packet_expand *x,
    const uint8_t *data, size_t len, char *err, size_t err_size) MUST_CHECK;

/* Whether this TracePacket is one that holds others compressed. */
bool packet_expand_is_compressed(const uint8_t *data, size_t len);

/* Bytes that came out so far, framing of the inner packets included. */
uint64_t packet_expand_bytes(const struct packet_expand *x);

#endif /* CLIENT_TRACE_PACKET_EXPAND_H */
