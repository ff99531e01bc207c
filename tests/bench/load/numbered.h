/*
 * numbered: TracePackets that can be told apart: each carries the key of its
 * sequence, its number in it, and a checksum over both and its payload.
 *
 *	for_testing { str: CHECKSUM  seq_value: KEY  counter: NUMBER
 *	              payload { single_string: TEXT } }
 *
 * The checksum is the CRC-32 (zlib) of key (4 bytes), number (8 bytes, both
 * little-endian) and text, as eight hexadecimal digits.  Pure.
 */
#ifndef TESTS_BENCH_LOAD_NUMBERED_H
#define TESTS_BENCH_LOAD_NUMBERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

struct pb_writer;

/* What a packet has besides its text, at most. */
#define NUMBERED_HEAD_MAX 64u
#define NUMBERED_TEXT_MAX (1u << 20)
/* The size of for_testing is written in so many bytes, so it can be patched. */
#define NUMBERED_SIZE_BYTES 4u

/* Of TracePacket.sequence_flags. */
enum numbered_flag {
	NUMBERED_STATE_CLEARED = 1, /* its sequence begins anew */
	NUMBERED_NEEDS_STATE = 2,   /* of the packets before it */
};

/*
 * The packet into w, which is emptied, of about size bytes; flags: see above.
 * Returns where the size of its for_testing stands (NUMBERED_SIZE_BYTES).
 * w->failed: no memory.
 */
size_t numbered_put(struct pb_writer *w, uint32_t key, uint64_t number,
    uint64_t timestamp_ns, uint32_t flags, size_t size);

struct numbered {
	uint32_t key;
	uint64_t number;
	bool whole; /* the checksum fits */
};

/* A for_testing as a field of a packet.  false: it is no numbered one. */
bool numbered_read(struct numbered *n, const struct pb_field *for_testing)
    MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_NUMBERED_H */
