/* Compressed blocks that become plain ones on their way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/link/link_unpack.h"
#include "transport/link/link_wire.h"
#include "transport/link/link_zstd.h"
#include "transport/stream/stream.h"
#include "transport/wire/ipc_frame.h"

#define SERVICE 3u
#define CHANNEL 77u

static struct {
	struct link_compressor *zstd;
	struct link_unpacker *unpacker;
	uint8_t block[LINK_BLOCK_MAX];
	uint8_t frame[FRAME_MAX_BYTES];
	uint8_t out[FRAME_MAX_BYTES];
	struct link_frame f; /* what the next frame says, besides its block */
} t;

static int
setup(void **state)
{
	size_t i;

	memset(&t, 0, sizeof(t));
	t.zstd = link_compressor_new(1);
	t.unpacker = link_unpacker_new();
	for (i = 0; i < sizeof(t.block); i++)
		t.block[i] = (uint8_t)(i % 16 == 3 ? i / 16 : i % 16);
	return t.zstd == NULL || t.unpacker == NULL;
}

static int
teardown(void **state)
{
	link_compressor_free(t.zstd);
	link_unpacker_unref(t.unpacker);
	return 0;
}

/* A call of this method with t.f and the block; returns the frame's bytes. */
static size_t
make_call(uint32_t method, const uint8_t *block, size_t len)
{
	uint8_t head[LINK_HEAD_MAX];
	size_t n_head, n;

	t.f.len = len;
	n_head = link_put_head(head, &t.f);
	n = ipc_put_invoke_head(t.frame, 42, SERVICE, method, true,
	    n_head + len);
	memcpy(t.frame + n, head, n_head);
	n += n_head;
	if (len > 0)
		memcpy(t.frame + n, block, len);
	return n + len;
}

/* Of the first len bytes of t.block, compressed. */
static size_t
make_packed(uint64_t number, size_t len)
{
	const uint8_t *small;
	size_t n;

	assert_int_equal(link_compress(t.zstd, t.block, len, &small, &n), 0);
	t.f.number = number;
	t.f.channel = CHANNEL;
	t.f.compressed = true;
	t.f.raw_size = len;
	return make_call(LINK_METHOD_UP, small, n);
}

static size_t
unpack(size_t len)
{
	return link_unpack_frame(t.unpacker, t.frame, len, t.out,
	    sizeof(t.out));
}

/* What is in t.out is a call of Up with the first len bytes of t.block. */
static void
check_plain(size_t n, uint64_t number, size_t len)
{
	const uint8_t *payload;
	size_t payload_len, used, need;
	struct ipc_frame ipc;
	struct ipc_invoke call;
	struct link_frame f;

	assert_int_equal(frame_next(t.out, n, &payload, &payload_len, &used,
	    &need), FRAME_OK);
	assert_int_equal(used, n);
	assert_int_equal(ipc_parse_frame(&ipc, payload, payload_len), 0);
	assert_int_equal(ipc.request_id, 42);
	assert_int_equal(ipc.kind, IPC_INVOKE_METHOD);
	assert_int_equal(ipc_parse_invoke(&call, ipc.body), 0);
	assert_int_equal(call.service_id, SERVICE);
	assert_int_equal(call.method_id, LINK_METHOD_UP);
	assert_true(call.drop_reply);
	assert_int_equal(link_parse_frame(&f, call.args.data, call.args.len),
	    0);
	assert_false(f.compressed);
	assert_int_equal(f.number, number);
	assert_int_equal(f.channel, CHANNEL);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.block, t.block, len);
}

static void
one_block_after_the_other_becomes_what_it_was(void **state)
{
	static const size_t sizes[] = { 1, 100, LINK_BLOCK_MAX, 5000, 70000 };
	uint64_t grown = 0;
	size_t i, n, len;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		len = make_packed(i + 1, sizes[i]);
		n = unpack(len);
		assert_int_not_equal(n, 0);
		assert_int_not_equal(n, STREAM_UNPACK_ROOM);
		check_plain(n, i + 1, sizes[i]);
		grown += n > len ? n - len : 0;
		assert_int_equal(link_unpacker_grown(t.unpacker), grown);
	}
	assert_true(grown > 100000);
}

static void
all_else_that_a_frame_says_stays(void **state)
{
	static const uint8_t clock[] = { 8, 1 }, status[] = { 16, 2, 24, 3 };
	struct ipc_frame ipc;
	struct ipc_invoke call;
	struct link_frame f;
	size_t n;

	t.f.has_received = true;
	t.f.received = 9;
	t.f.has_consumed_in_all = true;
	t.f.consumed_in_all = 1234567;
	t.f.clock = clock;
	t.f.clock_len = sizeof(clock);
	t.f.status = status;
	t.f.status_len = sizeof(status);
	n = unpack(make_packed(5, 300));
	check_plain(n, 5, 300);
	assert_int_equal(ipc_parse_frame(&ipc, t.out + 4, n - 4), 0);
	assert_int_equal(ipc_parse_invoke(&call, ipc.body), 0);
	assert_int_equal(link_parse_frame(&f, call.args.data, call.args.len),
	    0);
	assert_true(f.has_received && f.has_consumed_in_all);
	assert_int_equal(f.received, 9);
	assert_int_equal(f.consumed_in_all, 1234567);
	assert_int_equal(f.clock_len, sizeof(clock));
	assert_memory_equal(f.clock, clock, sizeof(clock));
	assert_int_equal(f.status_len, sizeof(status));
	assert_memory_equal(f.status, status, sizeof(status));
}

static void
other_frames_stay_as_they_are(void **state)
{
	uint8_t noise[300];
	size_t i;

	t.f.number = 1;
	assert_int_equal(unpack(make_call(LINK_METHOD_UP, t.block, 100)), 0);
	t.f.number = 0;
	assert_int_equal(unpack(make_call(LINK_METHOD_UP, NULL, 0)), 0);
	/* Another method may look the same. */
	make_packed(1, 100);
	assert_int_equal(unpack(make_call(LINK_METHOD_UP + 1, t.block, 50)), 0);
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 37 + 11);
	memcpy(t.frame, noise, sizeof(noise));
	frame_put_header(t.frame, sizeof(noise) - 4);
	assert_int_equal(unpack(sizeof(noise)), 0);
	frame_put_header(t.frame, 0);
	assert_int_equal(unpack(4), 0);
	assert_int_equal(link_unpacker_grown(t.unpacker), 0);
}

static void
what_needs_more_room_is_asked_for_again(void **state)
{
	size_t len = make_packed(1, 50000), n;

	assert_int_equal(link_unpack_frame(t.unpacker, t.frame, len, t.out,
	    50000), STREAM_UNPACK_ROOM);
	assert_int_equal(link_unpack_frame(t.unpacker, t.frame, len, t.out, 0),
	    STREAM_UNPACK_ROOM);
	n = unpack(len);
	check_plain(n, 1, 50000);
	/* Just enough. */
	len = make_packed(2, 50000);
	assert_int_equal(link_unpack_frame(t.unpacker, t.frame, len, t.out,
	    n - 1), STREAM_UNPACK_ROOM);
	assert_int_equal(link_unpack_frame(t.unpacker, t.frame, len, t.out, n),
	    n);
	check_plain(n, 2, 50000);
}

static void
behind_a_damaged_block_all_stay_compressed(void **state)
{
	size_t len = make_packed(1, 3000);

	assert_int_not_equal(unpack(len), 0);
	len = make_packed(2, 3000);
	memset(t.frame + len - 8, 0xff, 8);
	assert_int_equal(unpack(len), 0);
	assert_int_equal(unpack(make_packed(3, 3000)), 0);
}

static void
a_block_of_another_size_than_it_says_is_damaged(void **state)
{
	const uint8_t *small;
	size_t n;

	assert_int_equal(link_compress(t.zstd, t.block, 3000, &small, &n), 0);
	t.f.number = 1;
	t.f.compressed = true;
	t.f.raw_size = 2999;
	assert_int_equal(unpack(make_call(LINK_METHOD_UP, small, n)), 0);
}

static void
it_lives_as_long_as_anybody_needs_it(void **state)
{
	struct link_unpacker *u = link_unpacker_ref(t.unpacker);
	size_t n;

	link_unpacker_unref(t.unpacker);
	t.unpacker = u;
	n = unpack(make_packed(1, 100));
	check_plain(n, 1, 100);
	link_unpacker_unref(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(one_block_after_the_other_becomes_what_it_was),
		CASE(all_else_that_a_frame_says_stays),
		CASE(other_frames_stay_as_they_are),
		CASE(what_needs_more_room_is_asked_for_again),
		CASE(behind_a_damaged_block_all_stay_compressed),
		CASE(a_block_of_another_size_than_it_says_is_damaged),
		CASE(it_lives_as_long_as_anybody_needs_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
