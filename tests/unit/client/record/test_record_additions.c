#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/additions.h"
#include "protos/trace_config.pb-c.h"
#include "transport/wire/pb_writer.h"

static struct record_additions a;
static Perfetto__Protos__TraceConfig *config;
static char err[300];

static int
setup(void **state)
{
	memset(&a, 0, sizeof(a));
	config = NULL;
	return 0;
}

static int
teardown(void **state)
{
	if (config != NULL)
		perfetto__protos__trace_config__free_unpacked(config, NULL);
	return 0;
}

static void
attribute(const char *text)
{
	assert_int_equal(record_additions_attribute(&a, text, err,
	    sizeof(err)), 0);
}

/* What becomes of an encoded config. */
static void
put(const char *in, size_t len)
{
	struct pb_writer w;

	pb_writer_init(&w);
	assert_int_equal(record_additions_put(&a, (const uint8_t *)in, len,
	    &w), 0);
	config = perfetto__protos__trace_config__unpack(NULL, w.len, w.data);
	assert_non_null(config);
	pb_writer_done(&w);
}

static const Perfetto__Protos__TraceAttributes__Attribute *
nth(size_t i)
{
	assert_true(config->trace_attributes->n_attribute > i);
	return config->trace_attributes->attribute[i];
}

static void
values_are_numbers_where_they_read_as_such(void **state)
{
	static const struct {
		const char *text;
		const char *string; /* NULL: number */
		int64_t number;
	} values[] = {
		{ "k=0", NULL, 0 },
		{ "k=-17", NULL, -17 },
		{ "k=9223372036854775807", NULL, INT64_MAX },
		{ "k=9223372036854775808", "9223372036854775808", 0 },
		{ "k=007", "007", 0 },
		{ "k=+7", "+7", 0 },
		{ "k= 7", " 7", 0 },
		{ "k=-0", "-0", 0 },
		{ "k=1.5", "1.5", 0 },
		{ "k=", "", 0 },
		{ "k", "", 0 },
		{ "k=a=b", "a=b", 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setup(NULL);
		attribute(values[i].text);
		put("", 0);
		assert_string_equal(nth(0)->key, "k");
		if (values[i].string != NULL)
			assert_string_equal(nth(0)->string_value,
			    values[i].string);
		else
			assert_true(nth(0)->long_value == values[i].number);
		assert_int_equal(nth(0)->value_case, values[i].string == NULL ?
		    PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_LONG_VALUE :
		    PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_STRING_VALUE);
		teardown(NULL);
	}
	config = NULL;
}

static void
the_last_of_a_key_takes_the_place_of_those_before(void **state)
{
	/* duration_ms 5; trace_attributes { a: "old", b: 3 } */
	static const char in[] = "\x18\x05\x82\x03\x11"
	    "\x0a\x08\x0a\x01" "a\x1a\x03old" "\x0a\x05\x0a\x01" "b\x10\x03";

	attribute("a=1");
	attribute("c=2");
	attribute("a=new");
	put(in, sizeof(in) - 1);
	assert_int_equal(config->duration_ms, 5);
	assert_int_equal(config->trace_attributes->n_attribute, 3);
	assert_string_equal(nth(0)->key, "b");
	assert_true(nth(0)->long_value == 3);
	assert_string_equal(nth(1)->key, "c");
	assert_string_equal(nth(2)->key, "a");
	assert_string_equal(nth(2)->string_value, "new");
}

static void
what_is_not_asked_for_stays_as_it_is(void **state)
{
	/* statsd_metadata { 1: 4 }; field 2047: "odd" */
	static const char in[] = "\x3a\x02\x08\x04\xfa\x7f\x03odd";
	struct pb_writer w;

	assert_false(record_additions_any(&a));
	pb_writer_init(&w);
	assert_int_equal(record_additions_put(&a, (const uint8_t *)in,
	    sizeof(in) - 1, &w), 0);
	assert_int_equal(w.len, sizeof(in) - 1);
	assert_memory_equal(w.data, in, w.len);
	pb_writer_done(&w);
}

static void
numbers_of_statsd_replace_those_of_the_config(void **state)
{
	static const char in[] = "\x3a\x02\x08\x04";

	assert_int_equal(record_additions_statsd(&a, STATSD_CONFIG_UID, "-u",
	    "-1", err, sizeof(err)), 0);
	assert_int_equal(record_additions_statsd(&a, STATSD_SUBSCRIPTION_ID,
	    "-s", "9", err, sizeof(err)), 0);
	assert_true(record_additions_any(&a));
	put(in, sizeof(in) - 1);
	assert_false(config->statsd_metadata->has_triggering_alert_id);
	assert_int_equal(config->statsd_metadata->triggering_config_uid, -1);
	assert_int_equal(config->statsd_metadata->triggering_subscription_id,
	    9);
	assert_false(config->statsd_metadata->has_triggering_config_id);
}

static void
what_makes_no_sense_is_refused(void **state)
{
	size_t i;

	assert_int_equal(record_additions_attribute(&a, "=v", err,
	    sizeof(err)), -1);
	assert_int_equal(record_additions_attribute(&a, "k=\xff", err,
	    sizeof(err)), -1);
	assert_int_equal(record_additions_statsd(&a, STATSD_ALERT_ID, "--a",
	    "4x", err, sizeof(err)), -1);
	assert_non_null(strstr(err, "--a"));
	for (i = 0; i < RECORD_ATTRIBUTES_MAX; i++)
		attribute("k=v");
	assert_int_equal(record_additions_attribute(&a, "k=v", err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "trace_attributes"));
}

static void
a_damaged_config_is_refused(void **state)
{
	/* trace_attributes of 4 bytes, of which the attribute wants 9 */
	static const char in[] = "\x82\x03\x04\x0a\x09\x0a\x01";
	struct pb_writer w;

	attribute("k=v");
	pb_writer_init(&w);
	assert_int_equal(record_additions_put(&a, (const uint8_t *)in,
	    sizeof(in) - 1, &w), -1);
	assert_int_equal(record_additions_put(&a, (const uint8_t *)in, 2, &w),
	    -1);
	pb_writer_done(&w);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(values_are_numbers_where_they_read_as_such),
		T(the_last_of_a_key_takes_the_place_of_those_before),
		T(what_is_not_asked_for_stays_as_it_is),
		T(numbers_of_statsd_replace_those_of_the_config),
		T(what_makes_no_sense_is_refused),
		T(a_damaged_config_is_refused),
	};

	return cmocka_run_group_tests_name("record_additions", tests, NULL,
	    NULL);
}
