#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "client/trace/packet_expand.h"
#include "transport/wire/pb_writer.h"

/* Fields of TracePacket. */
enum { TIMESTAMP = 8, COMPRESSED = 50, FOR_TESTING = 900, ZSTD = 133 };

struct fixture {
	struct packet_expand *x;
	struct pb_writer inner; /* Trace.packet fields */
	struct pb_writer packet;
	size_t packets;
	uint64_t bytes; /* of them */
	uint64_t last;  /* first byte behind TIMESTAMP's tag */
	char err[160];
};

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct fixture *f = arg;

	f->packets++;
	f->bytes += len;
	f->last = len > 1 ? data[1] : 0;
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f->x = packet_expand_new(inner_cb, f));
	pb_writer_init(&f->inner);
	pb_writer_init(&f->packet);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	packet_expand_free(f->x);
	pb_writer_done(&f->inner);
	pb_writer_done(&f->packet);
	free(f);
	return 0;
}

/* A packet of the number and so many more bytes. */
static void
add(struct fixture *f, uint8_t number, size_t more)
{
	size_t mark = pb_nest_begin(&f->inner, 1);
	uint8_t *fill = calloc(1, more + 1);

	pb_put_uint(&f->inner, TIMESTAMP, number);
	pb_put_bytes(&f->inner, FOR_TESTING, fill, more);
	pb_nest_end(&f->inner, mark);
	assert_false(f->inner.failed);
	free(fill);
}

/* The inner bytes compressed, into packet; returns those of the field. */
static size_t
wrap(struct fixture *f, uint32_t field, bool zstd)
{
	size_t cap = ZSTD_compressBound(f->inner.len) + 64, n;
	uint8_t *out = malloc(cap);
	uLongf zn = cap;

	if (zstd) {
		n = ZSTD_compress(out, cap, f->inner.data, f->inner.len, 3);
		assert_false(ZSTD_isError(n));
	} else {
		assert_int_equal(compress2(out, &zn, f->inner.data,
		    f->inner.len, 6), Z_OK);
		n = zn;
	}
	pb_writer_reset(&f->packet);
	pb_put_bytes(&f->packet, field, out, n);
	free(out);
	return n;
}

static enum packet_expand_result
push_bytes(struct fixture *f, const uint8_t *data, size_t len)
{
	f->packets = 0;
	f->bytes = 0;
	f->err[0] = '\0';
	return packet_expand_packet(f->x, data, len, f->err, sizeof(f->err));
}

static enum packet_expand_result
push(struct fixture *f)
{
	return push_bytes(f, f->packet.data, f->packet.len);
}

static void
deflate_and_zstd_come_out_packet_by_packet(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 100; i++)
		add(f, (uint8_t)i, i * 50);
	wrap(f, COMPRESSED, false);
	assert_true(packet_expand_is_compressed(f->packet.data, f->packet.len));
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	assert_int_equal(f->packets, 100);
	assert_int_equal(f->last, 99);
	wrap(f, ZSTD, true);
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	assert_int_equal(f->packets, 100);
	assert_int_equal(packet_expand_bytes(f->x), 2 * f->inner.len);
}

static void
zstd_in_the_older_field_is_known_by_its_first_bytes(void **state)
{
	struct fixture *f = *state;

	add(f, 7, 10);
	wrap(f, COMPRESSED, true);
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	assert_int_equal(f->packets, 1);
}

static void
packets_that_are_not_compressed_are_not_touched(void **state)
{
	struct fixture *f = *state;

	pb_put_uint(&f->packet, TIMESTAMP, 5);
	assert_false(packet_expand_is_compressed(f->packet.data,
	    f->packet.len));
	assert_int_equal(push(f), PACKET_EXPAND_PLAIN);
	assert_int_equal(push_bytes(f, (const uint8_t *)"\x92\x03\xff", 3),
	    PACKET_EXPAND_PLAIN);
	assert_int_equal(push_bytes(f, NULL, 0), PACKET_EXPAND_PLAIN);
	assert_int_equal(f->packets, 0);
}

static void
what_lies_before_a_cut_is_handed_out(void **state)
{
	struct fixture *f = *state;
	size_t n;
	int zstd;

	for (zstd = 0; zstd < 2; zstd++) {
		add(f, 1, 300000);
		add(f, 2, 300000);
		wrap(f, zstd ? ZSTD : COMPRESSED, zstd);
		/* the field again, without its last bytes */
		n = f->packet.len - 12;
		memmove(f->packet.data, f->packet.data + 4, n);
		pb_writer_reset(&f->inner);
		pb_put_bytes(&f->inner, zstd ? ZSTD : COMPRESSED,
		    f->packet.data, n - 4);
		assert_int_equal(push_bytes(f, f->inner.data, f->inner.len),
		    PACKET_EXPAND_BAD);
		pb_writer_reset(&f->inner);
		assert_non_null(strstr(f->err, "compressed packets "));
	}
	/* and it does not spoil the next one */
	add(f, 3, 10);
	wrap(f, ZSTD, true);
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	wrap(f, COMPRESSED, false);
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	assert_int_equal(f->packets, 1);
}

static void
damage_has_a_sentence(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} damaged[] = {
		{ "", 0 }, { "x", 1 }, { "\x78\x9c", 2 },
		{ "\x78\x9c\xff\xff\xff", 5 }, { "\x28\xb5\x2f\xfd", 4 },
		{ "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff", 9 },
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		pb_writer_reset(&f->packet);
		pb_put_bytes(&f->packet, i % 2 == 0 ? COMPRESSED : ZSTD,
		    damaged[i].bytes, damaged[i].len);
		assert_int_equal(push(f), PACKET_EXPAND_BAD);
		assert_true(strlen(f->err) > 20);
		assert_int_equal(f->packets, 0);
	}
}

static void
what_is_inside_has_to_be_packets(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 10);
	pb_put_uint(&f->inner, 2, 1);
	wrap(f, COMPRESSED, false);
	assert_int_equal(push(f), PACKET_EXPAND_BAD);
	assert_int_equal(f->packets, 1);
	assert_non_null(strstr(f->err, "something else"));

	pb_writer_reset(&f->inner);
	add(f, 1, 10);
	f->inner.len--;
	wrap(f, ZSTD, true);
	assert_int_equal(push(f), PACKET_EXPAND_BAD);
	assert_non_null(strstr(f->err, "within a packet"));
}

static void
what_is_compressed_twice_is_expanded_once(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 1000);
	wrap(f, ZSTD, true);
	pb_writer_reset(&f->inner);
	pb_put_bytes(&f->inner, 1, f->packet.data, f->packet.len);
	wrap(f, ZSTD, true);
	assert_int_equal(push(f), PACKET_EXPAND_DONE);
	assert_int_equal(f->packets, 1);
	assert_true(f->bytes < 1000);
}

/* A zstd frame of n bytes that are all the same; only the first is special. */
static void
make_bomb(struct fixture *f, uint64_t n)
{
	static uint8_t zeroes[1 << 20], out[1 << 20];
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_inBuffer in;
	ZSTD_outBuffer to = { out, sizeof(out), 0 };
	struct pb_writer head;
	uint64_t at;

	pb_writer_init(&head);
	pb_put_varint(&head, 1 << 3 | 2);
	pb_put_varint(&head, n);
	in = (ZSTD_inBuffer){ head.data, head.len, 0 };
	ZSTD_compressStream2(c, &to, &in, ZSTD_e_continue);
	for (at = 0; at < n; at += sizeof(zeroes)) {
		in = (ZSTD_inBuffer){ zeroes, sizeof(zeroes), 0 };
		ZSTD_compressStream2(c, &to, &in, ZSTD_e_continue);
	}
	assert_int_equal(ZSTD_compressStream2(c, &to, &in, ZSTD_e_end), 0);
	pb_writer_reset(&f->packet);
	pb_put_bytes(&f->packet, ZSTD, out, to.pos);
	pb_writer_done(&head);
	ZSTD_freeCCtx(c);
}

static void
a_bomb_costs_no_more_than_its_bound(void **state)
{
	struct fixture *f = *state;
	uint64_t before, most;
	unsigned i;

	make_bomb(f, PACKET_EXPAND_MAX_BYTES + (64u << 20));
	assert_int_equal(push(f), PACKET_EXPAND_BAD);
	assert_non_null(strstr(f->err, "larger"));
	assert_int_equal(f->packets, 0);
	assert_true(packet_expand_bytes(f->x) <= PACKET_EXPAND_MAX_BYTES);

	/* Small enough each, too many together. */
	make_bomb(f, PACKET_EXPAND_MAX_BYTES / 2 - (1u << 20));
	before = packet_expand_bytes(f->x);
	most = PACKET_EXPAND_ALLOWANCE +
	    PACKET_EXPAND_RATIO * 100 * f->packet.len;
	for (i = 0; i < 20 && push(f) == PACKET_EXPAND_DONE; i++) {
		assert_true(packet_expand_bytes(f->x) > before);
		before = packet_expand_bytes(f->x);
	}
	assert_true(i > 3);
	assert_true(i < 20);
	assert_true(packet_expand_bytes(f->x) <= most);
	assert_non_null(strstr(f->err, "larger"));
}

static void
a_window_over_the_limit_is_refused(void **state)
{
	/* The frame header asks for 2^31 bytes: exponent 21, mantissa 0. */
	static const uint8_t frame[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00,
		21 << 3, 0x01, 0x00, 0x00 };
	struct fixture *f = *state;

	pb_put_bytes(&f->packet, ZSTD, frame, sizeof(frame));
	assert_int_equal(push(f), PACKET_EXPAND_BAD);
	assert_non_null(strstr(f->err, "damaged"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(deflate_and_zstd_come_out_packet_by_packet),
		T(zstd_in_the_older_field_is_known_by_its_first_bytes),
		T(packets_that_are_not_compressed_are_not_touched),
		T(what_lies_before_a_cut_is_handed_out),
		T(damage_has_a_sentence),
		T(what_is_inside_has_to_be_packets),
		T(what_is_compressed_twice_is_expanded_once),
		T(a_bomb_costs_no_more_than_its_bound),
		T(a_window_over_the_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
