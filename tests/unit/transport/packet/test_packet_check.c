#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_check.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ })
#define CHECK(...) \
	check_one(BYTES(__VA_ARGS__), sizeof(BYTES(__VA_ARGS__)))
#define MAX_PACKET 256

static enum packet_verdict
check_one(const uint8_t *data, size_t len)
{
	struct tb_slice s = { data, len };

	return packet_check(&s, 1, len);
}

/* The same bytes, with a slice for each of them and an empty one in between. */
static enum packet_verdict
check_bytewise(const uint8_t *data, size_t len)
{
	struct tb_slice s[2 * MAX_PACKET];
	size_t i;

	for (i = 0; i < len; i++) {
		s[2 * i] = (struct tb_slice){ data + i, 1 };
		s[2 * i + 1] = (struct tb_slice){ data + i, 0 };
	}
	return packet_check(s, 2 * len, len);
}

static enum packet_verdict
check_cut(const uint8_t *data, size_t len, size_t a, size_t b)
{
	struct tb_slice s[3] = {
		{ data, a }, { data + a, b - a }, { data + b, len - b },
	};

	return packet_check(s, 3, len);
}

/* One verdict, wherever the packet is cut. */
static enum packet_verdict
check_all_cuts(const uint8_t *data, size_t len)
{
	enum packet_verdict want = check_one(data, len);
	size_t a, b;

	assert_true(len <= MAX_PACKET);
	assert_int_equal(check_bytewise(data, len), want);
	for (a = 0; a <= len; a++)
		for (b = a; b <= len; b++)
			assert_int_equal(check_cut(data, len, a, b), want);
	return want;
}

/* A tag of any field and wire type 0. */
static size_t
put_tag(uint8_t *out, uint32_t field)
{
	uint64_t v = (uint64_t)field << 3;
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static enum packet_verdict
check_field(uint32_t field)
{
	uint8_t buf[16];
	size_t n = put_tag(buf, field);

	buf[n++] = 1;
	return check_all_cuts(buf, n);
}

static void
an_empty_packet_is_reported_as_empty(void **state)
{
	struct tb_slice none = { (const uint8_t *)"", 0 };

	assert_int_equal(packet_check(NULL, 0, 0), PACKET_EMPTY);
	assert_int_equal(packet_check(&none, 1, 0), PACKET_EMPTY);
}

static void
fields_of_every_wire_type_are_accepted(void **state)
{
	static const uint8_t all[] = {
		0x40, 0xd7, 0xb5, 0x8b, 0xe8, 0xd0, 0x4d, /* 8: varint */
		0x09, 1, 2, 3, 4, 5, 6, 7, 8,             /* 1: fixed64 */
		0x15, 1, 2, 3, 4,                         /* 2: fixed32 */
		0x5a, 3, 0xff, 0xff, 0xff,                /* 11: bytes */
		0x5a, 0,                                  /* 11: no bytes */
		0xa2, 0x38, 0x81, 0x00, 0x42,             /* 900, long length */
	};

	assert_int_equal(check_all_cuts(all, sizeof(all)), PACKET_OK);
}

static void
the_largest_field_number_is_accepted(void **state)
{
	assert_int_equal(check_field((1u << 29) - 1), PACKET_OK);
}

static void
field_number_zero_is_refused(void **state)
{
	assert_int_equal(check_field(0), PACKET_INVALID);
}

static void
the_fields_of_the_service_are_refused_and_no_others(void **state)
{
	static const uint32_t trusted[] = { 3, 10, 33, 35, 36, 50, 69, 79, 98,
		124, 125, 133, 1001, 1002, 1003, 1004 };
	uint32_t field;
	size_t i;

	for (field = 1; field < 1100; field++) {
		enum packet_verdict want = PACKET_OK;

		for (i = 0; i < sizeof(trusted) / sizeof(*trusted); i++)
			if (trusted[i] == field)
				want = PACKET_INVALID;
		assert_int_equal(check_field(field), want);
	}
}

static void
a_trusted_field_is_refused_behind_good_ones_too(void **state)
{
	static const uint8_t p[] = { 0x40, 1, 0x5a, 2, 0x50, 9, 0x50, 7 };

	assert_int_equal(check_all_cuts(p, sizeof(p)), PACKET_INVALID);
}

static void
a_trusted_field_is_refused_in_any_wire_type_and_spelling(void **state)
{
	/* 3 with each wire type */
	assert_int_equal(CHECK(0x18, 1), PACKET_INVALID);
	assert_int_equal(CHECK(0x19, 1, 2, 3, 4, 5, 6, 7, 8), PACKET_INVALID);
	assert_int_equal(CHECK(0x1a, 0), PACKET_INVALID);
	assert_int_equal(CHECK(0x1d, 1, 2, 3, 4), PACKET_INVALID);
	/* 3 in a tag that is longer than it needs to be */
	assert_int_equal(CHECK(0x98, 0x00, 1), PACKET_INVALID);
	assert_int_equal(CHECK(0x98, 0x80, 0x80, 0x80, 0x00, 1),
	    PACKET_INVALID);
	/* Readers that keep 32 bits of a number would see 3 here */
	assert_int_equal(CHECK(0x98, 0x80, 0x80, 0x80, 0x80, 0x01, 1),
	    PACKET_INVALID);
	assert_int_equal(CHECK(0x98, 0x80, 0x80, 0x80, 0x10, 1),
	    PACKET_INVALID);
}

static void
a_trusted_number_inside_a_nested_message_is_the_producers_own(void **state)
{
	assert_int_equal(CHECK(0x5a, 4, 0x18, 1, 0x50, 2), PACKET_OK);
}

static void
a_tag_beyond_32_bits_is_refused(void **state)
{
	static const uint8_t wide[] = { 0xf8, 0xff, 0xff, 0xff, 0x1f, 1 };
	static const uint8_t longer[] = { 0xc0, 0x80, 0x80, 0x80, 0x80, 0, 1 };

	assert_int_equal(check_all_cuts(wide, sizeof(wide)), PACKET_INVALID);
	assert_int_equal(check_all_cuts(longer, sizeof(longer)),
	    PACKET_INVALID);
}

static void
groups_and_unknown_wire_types_are_refused(void **state)
{
	uint8_t wire;

	for (wire = 0; wire < 8; wire++) {
		uint8_t p[10] = { (uint8_t)(0x40 | wire), 0 };
		size_t len = wire == 1 ? 9 : wire == 5 ? 5 : 2;
		bool known = wire <= 2 || wire == 5;

		assert_int_equal(check_all_cuts(p, len),
		    known ? PACKET_OK : PACKET_INVALID);
	}
}

static void
a_varint_of_ten_bytes_is_accepted_and_of_eleven_is_not(void **state)
{
	uint8_t p[16];

	p[0] = 0x40;
	memset(p + 1, 0xff, 9);
	p[10] = 1;
	assert_int_equal(check_all_cuts(p, 11), PACKET_OK);
	p[10] = 0xff;
	p[11] = 1;
	assert_int_equal(check_all_cuts(p, 12), PACKET_INVALID);
}

static void
a_packet_that_ends_inside_a_field_is_refused(void **state)
{
	static const uint8_t p[] = {
		0x40, 0xd7, 0xb5, 0x8b, 0xe8, 0xd0, 0x4d,
		0x09, 1, 2, 3, 4, 5, 6, 7, 8,
		0x15, 1, 2, 3, 4,
		0xa2, 0x38, 0x83, 0x00, 0x42, 0x43, 0x44,
	};
	static const size_t whole[] = { 7, 16, 21, 28 };
	size_t len, i;

	for (len = 1; len <= sizeof(p); len++) {
		enum packet_verdict want = PACKET_INVALID;

		for (i = 0; i < sizeof(whole) / sizeof(*whole); i++)
			if (whole[i] == len)
				want = PACKET_OK;
		assert_int_equal(check_all_cuts(p, len), want);
	}
}

static void
a_length_beyond_the_packet_is_refused_however_large(void **state)
{
	uint8_t p[12] = { 0x5a, 5, 1, 2, 3, 4 };

	assert_int_equal(check_all_cuts(p, 6), PACKET_INVALID);
	/* 2^64 - 1, and what wraps around to the end of the packet */
	memset(p + 1, 0xff, 9);
	p[10] = 1;
	assert_int_equal(check_all_cuts(p, 11), PACKET_INVALID);
	p[1] = 0xf5;
	assert_int_equal(check_all_cuts(p, 11), PACKET_INVALID);
	assert_int_equal(check_all_cuts(p, 12), PACKET_INVALID);
}

static void
a_payload_may_span_many_slices(void **state)
{
	static uint8_t payload[4096];
	struct tb_slice s[1002];
	static const uint8_t head[] = { 0x5a, 0x80, 0x80, 0xfa, 0x01 };
	static const uint8_t tail[] = { 0x40, 1 };
	size_t i, size = sizeof(head) + 1000 * sizeof(payload) + sizeof(tail);

	memset(payload, 0x18, sizeof(payload)); /* field 3, if it were read */
	s[0] = (struct tb_slice){ head, sizeof(head) };
	for (i = 1; i <= 1000; i++)
		s[i] = (struct tb_slice){ payload, sizeof(payload) };
	s[1001] = (struct tb_slice){ tail, sizeof(tail) };
	assert_int_equal(packet_check(s, 1002, size), PACKET_OK);
	assert_int_equal(packet_check(s, 1001, size - sizeof(tail)), PACKET_OK);
	assert_int_equal(packet_check(s, 1000, size), PACKET_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_packet_is_reported_as_empty),
		cmocka_unit_test(fields_of_every_wire_type_are_accepted),
		cmocka_unit_test(the_largest_field_number_is_accepted),
		cmocka_unit_test(field_number_zero_is_refused),
		cmocka_unit_test(
		    the_fields_of_the_service_are_refused_and_no_others),
		cmocka_unit_test(
		    a_trusted_field_is_refused_behind_good_ones_too),
		cmocka_unit_test(
		    a_trusted_field_is_refused_in_any_wire_type_and_spelling),
		cmocka_unit_test(
		    a_trusted_number_inside_a_nested_message_is_the_producers_own),
		cmocka_unit_test(a_tag_beyond_32_bits_is_refused),
		cmocka_unit_test(groups_and_unknown_wire_types_are_refused),
		cmocka_unit_test(
		    a_varint_of_ten_bytes_is_accepted_and_of_eleven_is_not),
		cmocka_unit_test(a_packet_that_ends_inside_a_field_is_refused),
		cmocka_unit_test(
		    a_length_beyond_the_packet_is_refused_however_large),
		cmocka_unit_test(a_payload_may_span_many_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
