/*
 * What an io thread makes of a hostile relay's frames.  Input, first byte:
 *	even: payloads of length (2 bytes) and bytes, each a frame
 *	odd: pieces of length (2) and bytes, compressed honestly into the block of
 *	     a frame, with the byte at a place (2) of each frame changed by xor (1)
 * Both come with the room that there is at first (2).
 */
#include "tests/fuzz/messages/messages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ipc_frame.h"
#include "transport/link_unpack.h"
#include "transport/link_wire.h"
#include "transport/link_zstd.h"
#include "transport/stream.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

/* Bound the time of one input. */
#define FRAMES_MAX 32
/* More than one block and what stands around it. */
#define ENOUGH (LINK_BLOCK_MAX + LINK_HEAD_MAX + IPC_HEAD_MAX)

static const uint8_t *in;
static size_t left;

static size_t
take(size_t bytes)
{
	size_t v = 0;

	while (bytes-- > 0) {
		v = v << 8 | (left > 0 ? *in : 0);
		if (left > 0) {
			in++;
			left--;
		}
	}
	return v;
}

/* An exact copy, so that a byte too many is seen. */
static uint8_t *
copy_of(const void *data, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	CHECK(copy != NULL);
	if (len > 0)
		memcpy(copy, data, len);
	return copy;
}

/* What came out is a frame, and says what the one that came in did. */
static void
check_unpacked(const uint8_t *was, size_t was_len, const uint8_t *is,
    size_t len)
{
	struct link_frame before, after;
	struct ipc_invoke call;
	struct ipc_frame ipc;
	uint64_t request;

	CHECK(ipc_parse_frame(&ipc, was + FRAME_HEADER_BYTES,
	    was_len - FRAME_HEADER_BYTES) == 0);
	request = ipc.request_id;
	CHECK(ipc_parse_invoke(&call, ipc.body) == 0);
	CHECK(link_parse_frame(&before, call.args.data, call.args.len) == 0);
	CHECK(len >= FRAME_HEADER_BYTES);
	CHECK(ipc_parse_frame(&ipc, is + FRAME_HEADER_BYTES,
	    len - FRAME_HEADER_BYTES) == 0);
	CHECK(ipc.request_id == request && ipc.kind == IPC_INVOKE_METHOD);
	CHECK(ipc_parse_invoke(&call, ipc.body) == 0);
	CHECK(call.method_id == LINK_METHOD_UP);
	CHECK(link_parse_frame(&after, call.args.data, call.args.len) == 0);
	CHECK(before.compressed && !after.compressed);
	CHECK(after.len == before.raw_size);
	CHECK(after.number == before.number);
	CHECK(after.channel == before.channel);
}

/* Returns whether a block came out of it. */
static bool
unpack(struct link_unpacker *u, const uint8_t *data, size_t len, size_t room,
    const uint8_t *block, size_t block_len)
{
	uint64_t grown = link_unpacker_grown(u);
	uint8_t *frame = copy_of(data, len), *out = malloc(room + 1);
	size_t n;

	CHECK(out != NULL);
	n = link_unpack_frame(u, frame, len, out, room);
	if (n == STREAM_UNPACK_ROOM && room < ENOUGH) {
		CHECK(link_unpacker_grown(u) == grown);
		free(out);
		CHECK((out = malloc(ENOUGH)) != NULL);
		n = link_unpack_frame(u, frame, len, out, ENOUGH);
	}
	CHECK(n <= ENOUGH);
	if (n > 0)
		check_unpacked(frame, len, out, n);
	if (n > 0 && block != NULL)
		CHECK(n > block_len &&
		    memcmp(out + n - block_len, block, block_len) == 0);
	CHECK(link_unpacker_grown(u) - grown ==
	    (n > len ? (uint64_t)(n - len) : 0));
	free(frame);
	free(out);
	return n > 0;
}

static void
run_raw(struct link_unpacker *u, size_t room)
{
	uint8_t *frame;
	size_t len;
	int i;

	for (i = 0; i < FRAMES_MAX && left > 0; i++) {
		len = take(2);
		if (len > left)
			len = left;
		CHECK((frame = malloc(FRAME_HEADER_BYTES + len)) != NULL);
		memset(frame, 0, FRAME_HEADER_BYTES);
		memcpy(frame + FRAME_HEADER_BYTES, in, len);
		in += len;
		left -= len;
		(void)unpack(u, frame, FRAME_HEADER_BYTES + len, room, NULL, 0);
		free(frame);
	}
}

/* A call of Up with the bytes as a compressed block. */
static size_t
pack(struct link_compressor *c, const uint8_t *data, size_t len, uint64_t number,
    uint8_t out[FRAME_MAX_BYTES])
{
	struct link_frame f = { .number = number, .channel = 3,
		.compressed = true, .raw_size = len };
	uint8_t head[LINK_HEAD_MAX];
	const uint8_t *small;
	size_t n, n_head;

	CHECK(link_compress(c, data, len, &small, &f.len) == 0);
	n_head = link_put_head(head, &f);
	n = ipc_put_invoke_head(out, 7, 1, LINK_METHOD_UP, true,
	    n_head + f.len);
	memcpy(out + n, head, n_head);
	memcpy(out + n + n_head, small, f.len);
	return n + n_head + f.len;
}

static void
run_harmed(struct link_unpacker *u, size_t room)
{
	static uint8_t frame[FRAME_MAX_BYTES];
	struct link_compressor *c = link_compressor_new(1);
	size_t len, n, place;
	bool honest = true, out;
	uint8_t harm;
	int i;

	CHECK(c != NULL);
	for (i = 0; i < FRAMES_MAX && left > 0; i++) {
		place = take(2);
		harm = (uint8_t)take(1);
		len = take(2);
		if (len > left)
			len = left;
		if (len == 0)
			break;
		n = pack(c, in, len, (uint64_t)i + 1, frame);
		honest = honest && harm == 0;
		frame[FRAME_HEADER_BYTES + place % (n - FRAME_HEADER_BYTES)] ^=
		    harm;
		out = unpack(u, frame, n, room, honest ? in : NULL, len);
		CHECK(out || !honest);
		in += len;
		left -= len;
	}
	link_compressor_free(c);
}

void
fuzz_link_unpack(const uint8_t *data, size_t size)
{
	struct link_unpacker *u = link_unpacker_new();
	bool harmed;
	size_t room;

	CHECK(u != NULL);
	in = data;
	left = size;
	harmed = take(1) % 2 != 0;
	room = take(2);
	if (harmed)
		run_harmed(u, room);
	else
		run_raw(u, room);
	link_unpacker_unref(u);
}
