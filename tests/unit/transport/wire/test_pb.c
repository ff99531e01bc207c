#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static struct pb_writer w;

static int
setup(void **state)
{
	pb_writer_init(&w);
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

static void
every_kind_of_field_reads_back_as_written(void **state)
{
	struct pb_reader r;
	struct pb_field f;
	double d = 1.5;
	uint64_t bits;

	memcpy(&bits, &d, 8);
	pb_put_uint(&w, 1, UINT64_MAX);
	pb_put_int(&w, 2, -3);
	put_fixed64(&w, 3, bits);
	pb_put_string(&w, 536870911, "text");
	pb_put_raw(&w, "\x2d\x01\x02\x03\x04", 5); /* field 5, fixed32 */
	pb_put_bytes(&w, 6, NULL, 0);
	assert_false(w.failed);

	pb_init(&r, w.data, w.len);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, 1);
	assert_int_equal(f.wire, PB_VARINT);
	assert_true(f.value == UINT64_MAX);
	assert_ptr_equal(f.start, w.data);
	assert_true(pb_next(&r, &f));
	assert_int_equal((int64_t)f.value, -3);
	assert_int_equal(f.start - w.data, 11);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.wire, PB_FIXED64);
	assert_true(f.value == bits);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.number, 536870911);
	assert_int_equal(f.len, 4);
	assert_memory_equal(f.data, "text", 4);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.wire, PB_FIXED32);
	assert_int_equal(f.value, 0x04030201);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.len, 0);
	assert_false(pb_next(&r, &f));
	assert_false(r.bad);
}

static void
nested_messages_get_lengths_of_any_size(void **state)
{
	static char big[300000];
	struct pb_reader r, inner;
	struct pb_field f;
	size_t outer, mid, sizes[] = { 0, 1, 127, 128, 16384, 300000 }, i;

	memset(big, 'b', sizeof(big));
	for (i = 0; i < 6; i++) {
		pb_writer_reset(&w);
		outer = pb_nest_begin(&w, 1);
		mid = pb_nest_begin(&w, 2);
		pb_put_bytes(&w, 3, big, sizes[i]);
		pb_nest_end(&w, mid);
		pb_put_uint(&w, 4, 7);
		pb_nest_end(&w, outer);
		pb_put_uint(&w, 5, 9);
		assert_false(w.failed);

		pb_init(&r, w.data, w.len);
		assert_true(pb_next(&r, &f));
		pb_init(&inner, f.data, f.len);
		assert_true(pb_next(&r, &f));
		assert_int_equal(f.value, 9);
		assert_false(pb_next(&r, &f));
		assert_true(pb_next(&inner, &f));
		pb_init(&r, f.data, f.len);
		assert_true(pb_next(&inner, &f));
		assert_int_equal(f.value, 7);
		assert_true(pb_next(&r, &f));
		assert_int_equal(f.len, sizes[i]);
		assert_memory_equal(f.data, big, sizes[i]);
		assert_false(r.bad || inner.bad);
	}
}

static void
a_message_cut_at_any_byte_is_malformed_or_ends_on_a_field(void **state)
{
	struct pb_reader r;
	struct pb_field f;
	size_t cut, fields, whole = 0;

	pb_put_uint(&w, 1, 300);
	pb_put_string(&w, 2, "0123456789");
	put_fixed64(&w, 3, 1);
	for (cut = 0; cut <= w.len; cut++) {
		pb_init(&r, w.data, cut);
		for (fields = 0; pb_next(&r, &f); fields++)
			assert_true(f.data == NULL ||
			    f.data + f.len <= w.data + cut);
		if (!r.bad)
			whole++;
		assert_false(pb_next(&r, &f));
	}
	assert_int_equal(whole, 4);
}

static void
is_malformed(const char *bytes, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, (const uint8_t *)bytes, len);
	while (pb_next(&r, &f))
		;
	assert_true(r.bad);
	assert_false(pb_next(&r, &f));
}

static void
malformed_bytes_are_refused_for_good(void **state)
{
	is_malformed("\x00\x01", 2);                 /* field 0 */
	is_malformed("\x0b", 1);                     /* group */
	is_malformed("\x0c", 1);                     /* end of group */
	is_malformed("\x0e\x00", 2);                 /* wire type 6 */
	is_malformed("\x0f\x00", 2);                 /* wire type 7 */
	is_malformed("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
	is_malformed("\xff\xff\xff\xff\x7f\x01", 6); /* tag over 32 bits */
	is_malformed("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12);
	is_malformed("\x0a\x02x", 3);
}

static void
a_varint_takes_as_many_bytes_as_it_says(void **state)
{
	uint8_t out[10];
	uint64_t v, back;
	size_t n;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		for (v = (uint64_t)1 << bit; v >= ((uint64_t)1 << bit) - 1;
		     v--) {
			n = pb_encode_varint(out, v);
			assert_int_equal(n, pb_varint_size(v));
			assert_ptr_equal(pb_varint(out, out + n, &back),
			    out + n);
			assert_true(back == v);
			assert_null(pb_varint(out, out + n - 1, &back));
			if (v == 0)
				break;
		}
	}
	assert_int_equal(pb_varint_size(UINT64_MAX), 10);
}

static void
lack_of_memory_is_remembered_until_reset(void **state)
{
	pb_put_uint(&w, 1, 1);
	pb_put_bytes(&w, 2, "x", SIZE_MAX / 2);
	assert_true(w.failed);
	pb_put_uint(&w, 3, 1);
	pb_nest_end(&w, pb_nest_begin(&w, 4));
	assert_true(w.failed);
	pb_writer_reset(&w);
	assert_false(w.failed);
	assert_int_equal(w.len, 0);
	pb_put_uint(&w, 1, 1);
	assert_int_equal(w.len, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_kind_of_field_reads_back_as_written),
		TEST(nested_messages_get_lengths_of_any_size),
		TEST(a_message_cut_at_any_byte_is_malformed_or_ends_on_a_field),
		TEST(malformed_bytes_are_refused_for_good),
		TEST(a_varint_takes_as_many_bytes_as_it_says),
		TEST(lack_of_memory_is_remembered_until_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
