/*
 * What an io thread makes of a hostile relay's frames.  Input, first byte:
 *	even: payloads of length (2 bytes) and bytes, each a frame
 *	odd: pieces of length (2) and bytes, compressed honestly into the block of
 *	     a frame, with the byte at a place (2) of each frame changed by xor (1)
 * Both come with the room that there is at first (2).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/input.h"
#include "tests/fuzz/messages/messages.h"
#include "transport/link/link_unpack.h"
#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/stream/stream.h"
#include "transport/wire/ipc_frame.h"

/* Bound the time of one input. */
#define FRAMES_MAX 32
/* More than one block and what stands around it. */
#define ENOUGH (LINK_BLOCK_MAX + LINK_HEAD_MAX + IPC_HEAD_MAX)

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
	uint8_t *frame = input_copy(data, len), *out = malloc(room + 1);
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
run_raw(struct link_unpacker *u, size_t room, struct input *in)
{
	const uint8_t *data;
	uint8_t *frame;
	size_t len;
	int i;

	for (i = 0; i < FRAMES_MAX && in->left > 0; i++) {
		len = input_number(in, 2);
		data = input_bytes(in, &len);
		CHECK((frame = malloc(FRAME_HEADER_BYTES + len)) != NULL);
		memset(frame, 0, FRAME_HEADER_BYTES);
		memcpy(frame + FRAME_HEADER_BYTES, data, len);
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
run_harmed(struct link_unpacker *u, size_t room, struct input *in)
{
	static uint8_t frame[FRAME_MAX_BYTES];
	struct link_compressor *c = link_compressor_new(1);
	const uint8_t *data;
	size_t len, n, place;
	bool honest = true, out;
	uint8_t harm;
	int i;

	CHECK(c != NULL);
	for (i = 0; i < FRAMES_MAX && in->left > 0; i++) {
		place = input_number(in, 2);
		harm = (uint8_t)input_number(in, 1);
		len = input_number(in, 2);
		data = input_bytes(in, &len);
		if (len == 0)
			break;
		n = pack(c, data, len, (uint64_t)i + 1, frame);
		honest = honest && harm == 0;
		frame[FRAME_HEADER_BYTES + place % (n - FRAME_HEADER_BYTES)] ^=
		    harm;
		out = unpack(u, frame, n, room, honest ? data : NULL, len);
		CHECK(out || !honest);
	}
	link_compressor_free(c);
}

void
fuzz_link_unpack(const uint8_t *data, size_t size)
{
	struct link_unpacker *u = link_unpacker_new();
	struct input in = { data, size };
	bool harmed;
	size_t room;

	CHECK(u != NULL);
	harmed = input_number(&in, 1) % 2 != 0;
	room = input_number(&in, 2);
	if (harmed)
		run_harmed(u, room, &in);
	else
		run_raw(u, room, &in);
	link_unpacker_unref(u);
}
