#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#include "transport/link/link_zstd.h"

/* What one end may take, besides its own buffer of a block. */
#define COMPRESSOR_BYTES_MAX   (2u * 1024u * 1024u)
#define DECOMPRESSOR_BYTES_MAX (1024u * 1024u)

static uint8_t block[LINK_BLOCK_MAX];
static uint32_t seed;

static uint8_t
next_byte(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint8_t)(seed >> 24);
}

static int
setup(void **state)
{
	seed = 7;
	return 0;
}

static void
fill_with_noise(size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		block[i] = next_byte();
}

/* Events such as traces have: much stays, some bytes change. */
static void
fill_with_events(size_t len)
{
	static const uint8_t event[16] = { 0x0a, 0x0e, 0x08, 0, 0, 0, 0x9a, 0x01,
		0x06, 's', 'c', 'h', 'e', 'd', 0x10 };
	size_t i;

	for (i = 0; i < len; i++)
		block[i] = i % 16 == 3 || i % 16 == 4 || i % 16 == 15 ?
		    next_byte() : event[i % 16];
}

/* Through both, and the same again.  Returns its compressed size. */
static size_t
pass(struct link_compressor *c, struct link_decompressor *d, size_t len)
{
	const uint8_t *small, *again;
	size_t small_len;

	assert_int_equal(link_compress(c, block, len, &small, &small_len), 0);
	assert_true(small_len <= LINK_ZSTD_BLOCK_MAX);
	assert_int_equal(link_decompress(d, small, small_len, len, &again), 0);
	assert_memory_equal(again, block, len);
	return small_len;
}

static void
every_level_gives_back_each_block_at_once(void **state)
{
	struct link_compressor *c;
	struct link_decompressor *d;
	size_t len;
	int level;

	for (level = 1; level <= 19; level++) {
		assert_non_null(c = link_compressor_new(level));
		assert_non_null(d = link_decompressor_new());
		for (len = 1; len <= LINK_BLOCK_MAX; len = len * 3 + 1) {
			fill_with_events(len);
			pass(c, d, len);
			fill_with_noise(len);
			pass(c, d, len);
		}
		fill_with_noise(LINK_BLOCK_MAX);
		pass(c, d, LINK_BLOCK_MAX);
		link_compressor_free(c);
		link_decompressor_free(d);
	}
}

static void
what_earlier_blocks_held_makes_later_ones_smaller(void **state)
{
	struct link_compressor *c = link_compressor_new(1);
	struct link_decompressor *d = link_decompressor_new();
	size_t first, second;

	fill_with_noise(2000);
	first = pass(c, d, 2000);
	second = pass(c, d, 2000);
	assert_true(first > 1900);
	assert_true(second < 200);
	link_compressor_free(c);
	link_decompressor_free(d);
}

static void
no_level_takes_much_memory(void **state)
{
	struct link_compressor *c;
	struct link_decompressor *d;
	size_t before, with_c, with_d;
	int level;

	for (level = 1; level <= 19; level++) {
		before = mallinfo2().uordblks + mallinfo2().hblkhd;
		assert_non_null(c = link_compressor_new(level));
		assert_non_null(d = link_decompressor_new());
		fill_with_events(LINK_BLOCK_MAX);
		pass(c, d, LINK_BLOCK_MAX);
		with_c = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		link_decompressor_free(d);
		with_d = with_c;
		with_c = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		with_d -= with_c;
		assert_true(with_c <= COMPRESSOR_BYTES_MAX);
		assert_true(with_d <= DECOMPRESSOR_BYTES_MAX);
		link_compressor_free(c);
	}
}

static void
a_block_that_is_too_long_is_not_compressed(void **state)
{
	struct link_compressor *c = link_compressor_new(1);
	const uint8_t *out;
	size_t n;

	assert_int_equal(link_compress(c, block, LINK_BLOCK_MAX + 1, &out, &n),
	    -1);
	link_compressor_free(c);
}

static void
another_size_than_was_said_ends_the_stream(void **state)
{
	static const int off[] = { -1, 1 };
	struct link_compressor *c;
	struct link_decompressor *d;
	const uint8_t *small, *out;
	size_t n, i;

	for (i = 0; i < 2; i++) {
		c = link_compressor_new(3);
		d = link_decompressor_new();
		fill_with_events(5000);
		assert_int_equal(link_compress(c, block, 5000, &small, &n), 0);
		assert_int_equal(link_decompress(d, small, n,
		    (size_t)(5000 + off[i]), &out), -1);
		/* for good: the next would be out of step */
		assert_int_equal(link_compress(c, block, 5000, &small, &n), 0);
		assert_int_equal(link_decompress(d, small, n, 5000, &out), -1);
		link_compressor_free(c);
		link_decompressor_free(d);
	}
}

/* Compressed by somebody else, as a whole; in block. */
static size_t
foreign(const uint8_t *data, size_t len, int window_log, ZSTD_EndDirective end)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer out = { block, sizeof(block), 0 };

	ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window_log);
	assert_int_equal(ZSTD_compressStream2(ctx, &out, &in, end), 0);
	assert_int_equal(in.pos, len);
	ZSTD_freeCCtx(ctx);
	return out.pos;
}

static void
streams_that_want_more_memory_are_refused(void **state)
{
	static uint8_t data[1000];
	struct link_decompressor *d = link_decompressor_new();
	const uint8_t *out;
	size_t n;

	n = foreign(data, sizeof(data), LINK_ZSTD_WINDOW_LOG, ZSTD_e_flush);
	assert_int_equal(link_decompress(d, block, n, 1000, &out), 0);
	assert_memory_equal(out, data, 1000);
	link_decompressor_free(d);

	d = link_decompressor_new();
	n = foreign(data, sizeof(data), LINK_ZSTD_WINDOW_LOG + 1, ZSTD_e_flush);
	assert_int_equal(link_decompress(d, block, n, 1000, &out), -1);
	link_decompressor_free(d);
}

static void
a_stream_that_ends_is_refused(void **state)
{
	static uint8_t data[1000];
	struct link_decompressor *d = link_decompressor_new();
	const uint8_t *out;
	size_t n = foreign(data, sizeof(data), 17, ZSTD_e_end);

	assert_int_equal(link_decompress(d, block, n, 1000, &out), -1);
	link_decompressor_free(d);
}

static void
a_few_bytes_that_become_many_are_stopped(void **state)
{
	static uint8_t zeros[4u << 20];
	struct link_decompressor *d = link_decompressor_new();
	const uint8_t *out;
	size_t n = foreign(zeros, sizeof(zeros), 18, ZSTD_e_flush);

	assert_true(n < 2000);
	assert_int_equal(link_decompress(d, block, n, LINK_BLOCK_MAX, &out),
	    -1);
	link_decompressor_free(d);
}

static void
other_formats_are_refused(void **state)
{
	static const char *const start[] = {
		"\x50\x2a\x4d\x18\x00\x00\x00\x00", /* skippable */
		"\x27\xb5\x2f\xfd\x00\x00\x00\x00", /* version 0.7 */
		"\x25\xb5\x2f\xfd\x00\x00\x00\x00", /* version 0.5 */
		"\x28\xb5\x2f",
	};
	struct link_decompressor *d;
	const uint8_t *out;
	size_t i;

	for (i = 0; i < 4; i++) {
		d = link_decompressor_new();
		assert_int_equal(link_decompress(d, start[i], i == 3 ? 3 : 8,
		    1, &out), -1);
		link_decompressor_free(d);
	}
}

int
main(void)
{
#define CASE(fn) cmocka_unit_test_setup(fn, setup)
	const struct CMUnitTest tests[] = {
		CASE(every_level_gives_back_each_block_at_once),
		CASE(what_earlier_blocks_held_makes_later_ones_smaller),
		CASE(no_level_takes_much_memory),
		CASE(a_block_that_is_too_long_is_not_compressed),
		CASE(another_size_than_was_said_ends_the_stream),
		CASE(streams_that_want_more_memory_are_refused),
		CASE(a_stream_that_ends_is_refused),
		CASE(a_few_bytes_that_become_many_are_stopped),
		CASE(other_formats_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
