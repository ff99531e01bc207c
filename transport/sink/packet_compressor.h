/*
 * packet_compressor: turns a batch of packets (Trace.packet fields) into one
 * packet that holds them compressed, or leaves the batch as it is where that
 * would not make it smaller.  Either way the output is whole packets, and never
 * more bytes than the input.
 *
 * deflate is a zlib stream in TracePacket.compressed_packets, zstd a frame in
 * zstd_compressed_packets; inside are the batch's bytes as they were.  Pure:
 * no thread, no file.  A call takes a while: 5 to 20 ms for a batch with
 * deflate, 1 to 3 ms with zstd at its usual level and 200 ms at its highest.
 *
 * Memory: the result (as large as the largest batch yet, 0.6 MiB as a rule),
 * and a context that is kept from batch to batch: 0.3 MiB for deflate, 1.3 MiB
 * for zstd at its usual level, at most 2.5 MiB at any.
 */
#ifndef TRANSPORT_SINK_PACKET_COMPRESSOR_H
#define TRANSPORT_SINK_PACKET_COMPRESSOR_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct packet_compressor;

enum packet_compression_kind {
	PACKET_PLAIN, /* leaves all as it is */
	PACKET_DEFLATE,
	PACKET_ZSTD,
};

struct packet_compression {
	enum packet_compression_kind kind;
	/*
	 * zstd's level, clamped to the bounds below; 0: its default (3).  Not
	 * used for deflate, which is always at level 6.
	 */
	int level;
};

/* Faster, but hardly smaller, than -20; slower, but hardly smaller, than 19. */
#define PACKET_ZSTD_LEVEL_MIN (-20)
#define PACKET_ZSTD_LEVEL_MAX 19

/*
 * Bytes to gather before they are compressed.  Four times as much makes files
 * up to 6 % smaller, a quarter of it 2 to 28 % larger (docs/performance.md).
 */
#define PACKET_BATCH_BYTES (512u * 1024u)

/* NULL: no memory. */
struct packet_compressor *packet_compressor_new(
    const struct packet_compression *how) MUST_CHECK;
void packet_compressor_free(struct packet_compressor *c);

/*
 * Compresses data, which is whole packets.  Returns the result, *out_len bytes:
 * data itself, or memory of the compressor, borrowed until the next call.
 * Without memory for an unusually large batch, that is data itself.
 */
const uint8_t *packet_compressor_run(struct packet_compressor *c,
    const uint8_t *data, size_t len, size_t *out_len);

/*
 * Compresses as many packets from the beginning of data as become at most
 * `room` bytes (a binary search); *taken: their bytes in data.  Returns the
 * result as packet_compressor_run() does.
 */
const uint8_t *packet_compressor_fit(struct packet_compressor *c,
    const uint8_t *data, size_t len, size_t room, size_t *taken,
    size_t *out_len);

#endif /* TRANSPORT_SINK_PACKET_COMPRESSOR_H */
