#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "transport/producer_port/source_descriptor.h"
#include "transport/wire/pb_writer.h"

static void
what_the_descriptor_says_is_known(void **state)
{
	struct source_descriptor d = { 0 };
	struct pb_writer w;
	const char *name;
	size_t n;

	pb_writer_init(&w);
	pb_put_uint(&w, DataSourceDescriptor_will_notify_on_stop, 1);
	pb_put_string(&w, DataSourceDescriptor_name, "first");
	pb_put_string(&w, DataSourceDescriptor_name, "last");
	pb_put_uint(&w, DataSourceDescriptor_no_flush, 1);
	pb_put_uint(&w, 999, 7);
	assert_int_equal(source_descriptor_read(&d, w.data, w.len), 0);
	assert_string_equal(d.name, "last");
	assert_int_equal(d.len, w.len);
	assert_memory_equal(d.encoded, w.data, w.len);
	assert_true(d.will_notify_on_stop);
	assert_true(d.no_flush);
	assert_false(d.will_notify_on_start);
	assert_false(d.handles_incremental_state_clear);
	assert_true(source_descriptor_is_named(&d, "last", 4));
	assert_false(source_descriptor_is_named(&d, "lasting", 7));
	assert_false(source_descriptor_is_named(&d, "la", 2));
	name = source_descriptor_name(w.data, w.len, &n);
	assert_int_equal(n, 4);
	assert_memory_equal(name, "last", 4);
	source_descriptor_done(&d);
	pb_writer_done(&w);
}

static void
a_descriptor_without_anything_has_an_empty_name(void **state)
{
	struct source_descriptor d = { 0 };
	size_t n;

	assert_int_equal(source_descriptor_read(&d, NULL, 0), 0);
	assert_string_equal(d.name, "");
	assert_null(source_descriptor_name(NULL, 0, &n));
	source_descriptor_done(&d);
}

static void
one_that_does_not_parse_leaves_the_last_one(void **state)
{
	static const uint8_t good[] = { 0x0a, 1, 'a' };
	static const uint8_t cut[] = { 0x0a, 2, 'b' };
	static const uint8_t not_text[] = { 0x0a, 1, 'b', 0x08, 1 };
	struct source_descriptor d = { 0 };
	size_t n;

	assert_int_equal(source_descriptor_read(&d, good, sizeof(good)), 0);
	assert_int_equal(source_descriptor_read(&d, cut, sizeof(cut)), -1);
	assert_int_equal(source_descriptor_read(&d, not_text,
	    sizeof(not_text)), -1);
	assert_null(source_descriptor_name(cut, sizeof(cut), &n));
	assert_string_equal(d.name, "a");
	assert_int_equal(d.len, sizeof(good));
	source_descriptor_done(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_descriptor_says_is_known),
		cmocka_unit_test(
		    a_descriptor_without_anything_has_an_empty_name),
		cmocka_unit_test(one_that_does_not_parse_leaves_the_last_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
