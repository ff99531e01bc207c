/*
 * trace_expand: the packets inside of a packet that holds others compressed
 * (TracePacket.compressed_packets and zstd_compressed_packets).
 *
 * Takes whole TracePackets one by one and hands out what is inside of those
 * that are compressed.  Untrusted input: what one of them costs is bounded by
 * TRACE_EXPAND_MAX_BYTES in time and memory, and what all together cost by
 * TRACE_EXPAND_ALLOWANCE and TRACE_EXPAND_RATIO.  Pure.
 *
 *	switch (trace_expand_packet(x, data, len, inner_fn, arg, err, size)) {
 *	case TRACE_EXPAND_PLAIN:  look at data, len itself
 *	case TRACE_EXPAND_DONE:   inner_fn had all that is in it
 *	case TRACE_EXPAND_BAD:    inner_fn had what could be read; err says why
 *	}                         it ended.  The next packet is a new beginning.
 */
#ifndef CLIENT_TRACE_EXPAND_H
#define CLIENT_TRACE_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct trace_expand;

/*
 * What one compressed packet may become.  Collectors put about a megabyte and
 * at most one packet more into each.
 */
#define TRACE_EXPAND_MAX_BYTES (256u << 20)
/*
 * What all packets of a trace may become: this much, and then so many times
 * their compressed size.  A bomb makes more (deflate 1000 times, zstd more).
 */
#define TRACE_EXPAND_ALLOWANCE (1ull << 30)
#define TRACE_EXPAND_RATIO     200u
/*
 * The logarithm of the largest window of zstd: as far back as its levels up to
 * 22 look.  A frame that wants more is refused; memory for one that wants less
 * is what it wants.  In all at most this window and TRACE_EXPAND_MAX_BYTES for
 * one packet that is not complete yet (mostly far less), and 128 KiB.
 */
#define TRACE_EXPAND_WINDOW_LOG 27

enum trace_expand_result {
	TRACE_EXPAND_PLAIN, /* not compressed, or no message: not touched */
	TRACE_EXPAND_DONE,
	TRACE_EXPAND_BAD,   /* damaged, cut, or over a limit */
};

/*
 * An inner packet without its framing, borrowed.  One that is compressed
 * again is handed out as it is: no collector nests them, only bombs do.
 */
typedef void (*trace_expand_fn)(void *arg, const uint8_t *data, size_t len);

/* NULL: no memory. */
struct trace_expand *trace_expand_new(void) MUST_CHECK;
void trace_expand_free(struct trace_expand *x);

/*
 * One TracePacket, without the tag and length that a file puts before it.
 * err: written only for TRACE_EXPAND_BAD, a sentence without a full stop.
 */
enum trace_expand_result trace_expand_packet(struct trace_expand *x,
    const uint8_t *data, size_t len, trace_expand_fn fn, void *arg, char *err,
    size_t err_size) MUST_CHECK;

/* Whether this TracePacket is one that holds others compressed. */
bool trace_expand_is_compressed(const uint8_t *data, size_t len);

/* Bytes that came out so far, framing of the inner packets included. */
uint64_t trace_expand_bytes(const struct trace_expand *x);

#endif /* CLIENT_TRACE_EXPAND_H */
