#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "transport/sink/packet_boundary.h"
#include "transport/sink/packet_compressor.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static const struct packet_compression deflated = { PACKET_DEFLATE, 0 };
static const struct packet_compression zstd = { PACKET_ZSTD, 0 };
static const struct packet_compression plain = { PACKET_PLAIN, 0 };

static uint32_t seed;

static uint8_t
chance(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint8_t)(seed >> 24);
}

/* A packet of len bytes: text-like, or with no pattern at all. */
static void
add(struct pb_writer *w, size_t len, bool noise)
{
	uint8_t *body = malloc(len + 1);
	size_t i;

	for (i = 0; i < len; i++)
		body[i] = noise ? chance() : (uint8_t)("trace"[i % 5] +
		    (chance() < 20));
	pb_put_bytes(w, 1, body, len);
	assert_false(w->failed);
	free(body);
}

/* What a reader gets out of data: the batch's bytes, owned. */
static uint8_t *
expand(const uint8_t *data, size_t len, size_t raw)
{
	struct pb_reader r, inner;
	struct pb_field packet, f;
	uint8_t *out = malloc(raw + 1);
	uLongf n = raw;

	pb_init(&r, data, len);
	assert_true(pb_next(&r, &packet));
	assert_int_equal(packet.number, 1);
	assert_false(pb_next(&r, &f)); /* one packet, and all of the bytes */
	assert_false(r.bad);
	pb_init(&inner, packet.data, packet.len);
	assert_true(pb_next(&inner, &f));
	if (f.number == 133) {
		n = ZSTD_decompress(out, raw, f.data, f.len);
	} else {
		assert_int_equal(f.number, 50);
		assert_int_equal(uncompress(out, &n, f.data, f.len), Z_OK);
	}
	assert_int_equal(n, raw);
	assert_false(pb_next(&inner, &packet));
	assert_false(inner.bad);
	return out;
}

/* Both ways; returns how large it became. */
static size_t
round_trip(struct packet_compressor *c, const struct pb_writer *w)
{
	size_t n;
	const uint8_t *out = packet_compressor_run(c, w->data, w->len, &n);
	uint8_t *back;

	assert_true(n <= w->len);
	assert_int_equal(packet_boundary(out, n), n);
	if (out == w->data) {
		assert_int_equal(n, w->len);
		return n;
	}
	back = expand(out, n, w->len);
	assert_memory_equal(back, w->data, w->len);
	free(back);
	return n;
}

static struct packet_compressor *
new_compressor(const struct packet_compression *how)
{
	struct packet_compressor *c = packet_compressor_new(how);

	assert_non_null(c);
	return c;
}

static void
a_batch_becomes_one_packet_that_holds_it(void **state)
{
	const struct packet_compression *how[] = { &deflated, &zstd };
	struct packet_compressor *c;
	struct pb_writer w;
	size_t i, k;

	for (i = 0; i < 2; i++) {
		c = new_compressor(how[i]);
		/* the context is used again: no batch knows of another */
		for (k = 1; k < 40; k += 13) {
			pb_writer_init(&w);
			while (w.len < k * 14000)
				add(&w, 20 + chance(), false);
			assert_true(round_trip(c, &w) < w.len / 2);
			pb_writer_done(&w);
		}
		packet_compressor_free(c);
	}
}

static void
what_does_not_become_smaller_stays_as_it_is(void **state)
{
	const struct packet_compression *how[] = { &deflated, &zstd, &plain };
	struct packet_compressor *c;
	struct pb_writer w;
	size_t i, n;

	for (i = 0; i < 3; i++) {
		c = new_compressor(how[i]);
		pb_writer_init(&w);
		assert_ptr_equal(packet_compressor_run(c, w.data, 0, &n),
		    w.data);
		assert_int_equal(n, 0);
		/* one that is hardly there */
		add(&w, 3, false);
		assert_ptr_equal(packet_compressor_run(c, w.data, w.len, &n),
		    w.data);
		assert_int_equal(n, w.len);
		while (w.len < PACKET_BATCH_BYTES)
			add(&w, 3000, true);
		assert_ptr_equal(packet_compressor_run(c, w.data, w.len, &n),
		    w.data);
		assert_int_equal(n, w.len);
		pb_writer_done(&w);
		/* and what comes after it is compressed again */
		pb_writer_init(&w);
		add(&w, 5000, false);
		assert_true((round_trip(c, &w) < w.len) == (i < 2));
		pb_writer_done(&w);
		packet_compressor_free(c);
	}
}

static void
a_packet_larger_than_many_batches_is_compressed_whole(void **state)
{
	const struct packet_compression *how[] = { &deflated, &zstd };
	struct packet_compressor *c;
	struct pb_writer big, small;
	size_t i;

	pb_writer_init(&big);
	pb_writer_init(&small);
	add(&small, 1000, false);
	add(&big, 100, false);
	add(&big, 6 * PACKET_BATCH_BYTES, false);
	for (i = 0; i < 2; i++) {
		c = new_compressor(how[i]);
		assert_true(round_trip(c, &big) < big.len / 2);
		assert_true(round_trip(c, &small) < small.len);
		assert_true(round_trip(c, &big) < big.len / 2);
		packet_compressor_free(c);
	}
	pb_writer_done(&big);
	pb_writer_done(&small);
}

static size_t
size_at_level(const struct pb_writer *w, int level)
{
	const struct packet_compression how = { PACKET_ZSTD, level };
	struct packet_compressor *c = new_compressor(&how);
	size_t n = round_trip(c, w);

	packet_compressor_free(c);
	return n;
}

static void
levels_outside_of_the_bounds_mean_the_nearest(void **state)
{
	struct pb_writer w;

	pb_writer_init(&w);
	while (w.len < 60000)
		add(&w, chance(), false);
	assert_int_equal(size_at_level(&w, 0), size_at_level(&w, 3));
	assert_int_equal(size_at_level(&w, INT32_MAX),
	    size_at_level(&w, PACKET_ZSTD_LEVEL_MAX));
	assert_int_equal(size_at_level(&w, 22),
	    size_at_level(&w, PACKET_ZSTD_LEVEL_MAX));
	assert_int_equal(size_at_level(&w, INT32_MIN),
	    size_at_level(&w, PACKET_ZSTD_LEVEL_MIN));
	assert_true(size_at_level(&w, 19) < size_at_level(&w, 1));
	assert_true(size_at_level(&w, 1) < size_at_level(&w, -20));
	pb_writer_done(&w);
}

/*
 * The promises of packet_compressor_fit(): within the room, whole packets, and
 * that one packet more has no room.
 */
static void
check_fit(struct packet_compressor *c, const struct pb_writer *w, size_t room)
{
	size_t taken, n, more;
	const uint8_t *out;
	struct pb_reader r;
	struct pb_field f;

	out = packet_compressor_fit(c, w->data, w->len, room, &taken, &n);
	assert_true(n <= room);
	assert_int_equal(packet_boundary(w->data, taken), taken);
	if (n == taken) {
		assert_memory_equal(out, w->data, n);
	} else {
		uint8_t *back = expand(out, n, taken);

		assert_memory_equal(back, w->data, taken);
		free(back);
	}
	if (taken == w->len)
		return;
	pb_init(&r, w->data + taken, w->len - taken);
	assert_true(pb_next(&r, &f));
	more = taken + (size_t)(r.p - (w->data + taken));
	(void)packet_compressor_run(c, w->data, more, &n);
	assert_true(n > room);
}

static void
as_many_packets_as_have_room_are_taken(void **state)
{
	const struct packet_compression *how[] = { &deflated, &zstd, &plain };
	struct packet_compressor *c;
	struct pb_writer w;
	size_t i, room, all;

	pb_writer_init(&w);
	for (i = 0; i < 300; i++)
		add(&w, 50 + chance(), i % 3 == 0);
	add(&w, 40000, false);
	for (i = 0; i < 50; i++)
		add(&w, 50, false);
	for (i = 0; i < 3; i++) {
		c = new_compressor(how[i]);
		(void)packet_compressor_run(c, w.data, w.len, &all);
		for (room = 0; room < all; room += 1 + all / 13)
			check_fit(c, &w, room);
		check_fit(c, &w, all - 1);
		check_fit(c, &w, all);
		check_fit(c, &w, SIZE_MAX);
		packet_compressor_free(c);
	}
	pb_writer_done(&w);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_becomes_one_packet_that_holds_it),
		cmocka_unit_test(what_does_not_become_smaller_stays_as_it_is),
		cmocka_unit_test(
		    a_packet_larger_than_many_batches_is_compressed_whole),
		cmocka_unit_test(levels_outside_of_the_bounds_mean_the_nearest),
		cmocka_unit_test(as_many_packets_as_have_room_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
