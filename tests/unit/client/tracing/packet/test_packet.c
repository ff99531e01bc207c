/* Fields as they are written, read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/tracing/packet/packet.h"
#include "transport/wire/pb_reader.h"

static bool no_memory;

void *__real_own_alloc(size_t n);
void *__wrap_own_alloc(size_t n);
void *__real_own_realloc(void *p, size_t n, size_t wanted);
void *__wrap_own_realloc(void *p, size_t n, size_t wanted);

void *
__wrap_own_alloc(size_t n)
{
	return no_memory ? NULL : __real_own_alloc(n);
}

void *
__wrap_own_realloc(void *p, size_t n, size_t wanted)
{
	return no_memory ? NULL : __real_own_realloc(p, n, wanted);
}

/* The next field of a message, which has this number. */
static struct pb_field
next(struct pb_reader *r, uint32_t number, enum pb_wire wire)
{
	struct pb_field f;

	assert_true(pb_next(r, &f));
	assert_int_equal(f.number, number);
	assert_int_equal(f.wire, wire);
	return f;
}

static void
assert_at_end(struct pb_reader *r)
{
	struct pb_field f;

	assert_false(pb_next(r, &f));
}

static void
fields_of_every_kind_are_read_as_they_were_put(void **state)
{
	struct tributary_packet p;
	struct pb_reader r;
	struct pb_field f;
	double d = 0.1;
	float s = 0.5f;

	packet_init(&p);
	tributary_put_uint(&p, 1, UINT64_MAX);
	tributary_put_int(&p, 2, -2);
	tributary_put_sint(&p, 3, -3);
	tributary_put_sint(&p, 4, INT64_MIN);
	tributary_put_fixed64(&p, 5, UINT64_MAX - 5);
	tributary_put_fixed32(&p, 6, UINT32_MAX - 6);
	tributary_put_double(&p, 7, d);
	tributary_put_float(&p, 8, s);
	tributary_put_bytes(&p, 9, "a\0b", 3);
	tributary_put_string(&p, 536870911, "text");
	tributary_put_bytes(&p, 11, NULL, 0);
	tributary_put_encoded(&p, "\x60\x01", 2);
	tributary_put_encoded(&p, NULL, 0);
	assert_false(p.failed);
	pb_init(&r, p.data, packet_len(&p));
	assert_true(next(&r, 1, PB_VARINT).value == UINT64_MAX);
	assert_true(next(&r, 2, PB_VARINT).value == (uint64_t)-2);
	assert_int_equal(next(&r, 3, PB_VARINT).value, 5);
	assert_true(next(&r, 4, PB_VARINT).value == UINT64_MAX);
	assert_true(next(&r, 5, PB_FIXED64).value == UINT64_MAX - 5);
	assert_int_equal(next(&r, 6, PB_FIXED32).value, UINT32_MAX - 6);
	f = next(&r, 7, PB_FIXED64);
	assert_memory_equal(&f.value, &d, 8);
	f = next(&r, 8, PB_FIXED32);
	assert_memory_equal(&f.value, &s, 4);
	f = next(&r, 9, PB_BYTES);
	assert_int_equal(f.len, 3);
	assert_memory_equal(f.data, "a\0b", 3);
	f = next(&r, 536870911, PB_BYTES);
	assert_memory_equal(f.data, "text", f.len);
	assert_int_equal(next(&r, 11, PB_BYTES).len, 0);
	assert_int_equal(next(&r, 12, PB_VARINT).value, 1);
	assert_at_end(&r);
	packet_done(&p);
}

/* A message of `len` bytes inside of two others, and a field behind each. */
static void
nested(size_t len)
{
	struct tributary_packet p;
	struct pb_reader outer, middle, inner;
	struct pb_field f;
	uint8_t *data = malloc(len + 1);
	size_t i;

	assert_non_null(data);
	for (i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 + len);
	packet_init(&p);
	tributary_put_uint(&p, 1, 1);
	tributary_begin(&p, 2);
	tributary_begin(&p, 3);
	tributary_put_bytes(&p, 4, data, len);
	tributary_end(&p);
	tributary_put_uint(&p, 5, 5);
	tributary_end(&p);
	tributary_put_uint(&p, 6, 6);
	assert_false(p.failed);
	pb_init(&outer, p.data, packet_len(&p));
	(void)next(&outer, 1, PB_VARINT);
	f = next(&outer, 2, PB_BYTES);
	pb_init(&middle, f.data, f.len);
	f = next(&middle, 3, PB_BYTES);
	pb_init(&inner, f.data, f.len);
	f = next(&inner, 4, PB_BYTES);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.data, data, len);
	assert_at_end(&inner);
	assert_int_equal(next(&middle, 5, PB_VARINT).value, 5);
	assert_at_end(&middle);
	assert_int_equal(next(&outer, 6, PB_VARINT).value, 6);
	assert_at_end(&outer);
	packet_done(&p);
	free(data);
}

static void
lengths_of_nested_messages_take_one_to_four_bytes(void **state)
{
	static const size_t around[] = { 127, 16383, 2097151 };
	size_t i, len;

	for (len = 0; len < 700; len++)
		nested(len);
	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (len = around[i] - 12; len < around[i] + 4; len++)
			nested(len);
}

static void
empty_messages_stay_empty(void **state)
{
	struct tributary_packet p;
	struct pb_reader r;

	packet_init(&p);
	tributary_begin(&p, 1);
	tributary_end(&p);
	pb_init(&r, p.data, packet_len(&p));
	assert_int_equal(next(&r, 1, PB_BYTES).len, 0);
	assert_at_end(&r);
	packet_done(&p);
}

static void
a_packet_grows_and_keeps_what_it_has(void **state)
{
	struct tributary_packet p;
	struct pb_reader r;
	uint64_t i;

	packet_init(&p);
	for (i = 0; i < 100000; i++)
		tributary_put_uint(&p, 1, i);
	assert_false(p.failed);
	assert_ptr_not_equal(p.data, p.own);
	pb_init(&r, p.data, packet_len(&p));
	for (i = 0; i < 100000; i++)
		assert_int_equal(next(&r, 1, PB_VARINT).value, i);
	assert_at_end(&r);
	packet_done(&p);
}

static void
messages_nest_as_deep_as_is_promised(void **state)
{
	struct tributary_packet p;
	unsigned i;

	packet_init(&p);
	for (i = 0; i < PACKET_DEPTH_MAX; i++)
		tributary_begin(&p, 1);
	assert_false(p.failed);
	for (i = 0; i < PACKET_DEPTH_MAX; i++)
		tributary_end(&p);
	assert_false(p.failed);
	assert_int_equal(p.depth, 0);
	packet_done(&p);

	packet_init(&p);
	for (i = 0; i <= PACKET_DEPTH_MAX; i++)
		tributary_begin(&p, 1);
	assert_true(p.failed);
	for (i = 0; i <= PACKET_DEPTH_MAX; i++)
		tributary_end(&p);
	assert_true(p.failed);
	packet_done(&p);
}

static void
an_end_without_a_beginning_fails(void **state)
{
	struct tributary_packet p;

	packet_init(&p);
	tributary_end(&p);
	assert_true(p.failed);
	packet_done(&p);
}

static void
without_memory_a_packet_has_failed_and_stays_so(void **state)
{
	struct tributary_packet p;
	char text[300] = "";

	packet_init(&p);
	tributary_put_bytes(&p, 1, text, sizeof(text));
	no_memory = true;
	tributary_put_bytes(&p, 1, text, sizeof(text));
	no_memory = false;
	assert_true(p.failed);
	tributary_put_bytes(&p, 1, text, sizeof(text));
	tributary_begin(&p, 1);
	tributary_end(&p);
	assert_true(p.failed);
	packet_done(&p);
}

static void
a_packet_longer_than_services_take_fails(void **state)
{
	struct tributary_packet p;
	uint8_t *data = calloc(1, PACKET_MAX);

	assert_non_null(data);
	packet_init(&p);
	tributary_put_bytes(&p, 1, data, PACKET_MAX - 6);
	assert_false(p.failed);
	assert_true(packet_len(&p) <= PACKET_MAX);
	tributary_put_bytes(&p, 1, data, 1000);
	assert_true(p.failed);
	packet_done(&p);

	packet_init(&p);
	tributary_put_encoded(&p, data, SIZE_MAX);
	assert_true(p.failed);
	packet_done(&p);

	packet_init(&p);
	tributary_put_bytes(&p, 1, data, SIZE_MAX - 3);
	assert_true(p.failed);
	packet_done(&p);
	free(data);
}

/* A message in a message with this many bytes, begun in a room of 127. */
static void
check_begun_in_room(size_t len)
{
	uint8_t room[127 + 1], data[2048];
	struct tributary_packet p;
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	room[127] = 0xa5;
	packet_init_in(&p, room, 127);
	packet_begin(&p, 1);
	packet_put_uint(&p, 2, 300);
	packet_begin(&p, 30);
	packet_put_bytes(&p, 4, data, len);
	packet_end(&p);
	packet_end(&p);
	assert_false(p.failed);
	assert_int_equal(room[127], 0xa5);
	assert_true(packet_is_in(&p, room) || packet_len(&p) > 100);
	assert_true(packet_is_in(&p, p.own) || len < 128 || len > 450);
	pb_init(&r, p.data, packet_len(&p));
	f = next(&r, 1, PB_BYTES);
	assert_at_end(&r);
	pb_init(&r, f.data, f.len);
	assert_int_equal(next(&r, 2, PB_VARINT).value, 300);
	f = next(&r, 30, PB_BYTES);
	assert_at_end(&r);
	pb_init(&r, f.data, f.len);
	f = next(&r, 4, PB_BYTES);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.data, data, len);
	assert_at_end(&r);
	packet_done(&p);
}

static void
a_packet_outgrows_the_room_that_it_was_begun_in(void **state)
{
	size_t len;

	for (len = 0; len <= 1200; len++)
		check_begun_in_room(len);
}

static void
without_memory_a_packet_that_outgrows_its_room_has_failed(void **state)
{
	struct tributary_packet p;
	uint8_t room[127], data[600] = { 0 };

	packet_init_in(&p, room, sizeof(room));
	no_memory = true;
	packet_put_bytes(&p, 1, data, sizeof(data));
	no_memory = false;
	assert_true(p.failed);
	packet_done(&p);
}

static void
flags_of_the_sequence_add_up(void **state)
{
	struct tributary_packet p;

	packet_init(&p);
	assert_int_equal(p.flags, 0);
	tributary_packet_clears_state(&p);
	assert_int_equal(p.flags, 1);
	tributary_packet_needs_state(&p);
	assert_int_equal(p.flags, 3);
	packet_done(&p);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    fields_of_every_kind_are_read_as_they_were_put),
		cmocka_unit_test(
		    lengths_of_nested_messages_take_one_to_four_bytes),
		cmocka_unit_test(empty_messages_stay_empty),
		cmocka_unit_test(a_packet_grows_and_keeps_what_it_has),
		cmocka_unit_test(messages_nest_as_deep_as_is_promised),
		cmocka_unit_test(an_end_without_a_beginning_fails),
		cmocka_unit_test(
		    without_memory_a_packet_has_failed_and_stays_so),
		cmocka_unit_test(a_packet_longer_than_services_take_fails),
		cmocka_unit_test(
		    a_packet_outgrows_the_room_that_it_was_begun_in),
		cmocka_unit_test(
		    without_memory_a_packet_that_outgrows_its_room_has_failed),
		cmocka_unit_test(flags_of_the_sequence_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
