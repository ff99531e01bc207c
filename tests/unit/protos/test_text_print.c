/*
 * Messages as text, and back.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/probe_config.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "protos/text_print.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_packet.pb-c.h"
#include "protos/unpack.h"
#include "tests/unit/dev_full.h"
#include "tests/unit/protos/print_string.h"

#define CONFIG (&perfetto__protos__trace_config__descriptor)
#define DUMMY  (&perfetto__protos__test_config__dummy_fields__descriptor)
#define PACKET (&perfetto__protos__trace_packet__descriptor)

/* The text of a message that these bytes are; the caller frees it. */
static char *
print(const ProtobufCMessageDescriptor *d, const void *bytes, size_t len)
{
	ProtobufCMessage *m;
	char *s;

	m = unpack_checked(d, NULL, len, bytes);
	assert_non_null(m);
	s = print_string(m);
	assert_non_null(s);
	protobuf_c_message_free_unpacked(m, NULL);
	return s;
}

static void
expect_print(const ProtobufCMessageDescriptor *d, const void *bytes,
    size_t len, const char *expected)
{
	char *s = print(d, bytes, len);

	assert_string_equal(s, expected);
	free(s);
}

/* text is printed as itself. */
static void
expect_same(const ProtobufCMessageDescriptor *d, const char *text)
{
	struct text_error err;
	uint8_t *out;
	size_t n;

	if (text_parse(d, text, strlen(text), &out, &n, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	expect_print(d, out, n, text);
	free(out);
}

static void
an_empty_message_prints_nothing(void **state)
{
	expect_print(CONFIG, NULL, 0, "");
}

static void
every_type_prints_as_it_is_read(void **state)
{
	expect_same(DUMMY,
	    "field_uint32: 4294967295\n"
	    "field_int32: -2147483648\n"
	    "field_uint64: 18446744073709551615\n"
	    "field_int64: -9223372036854775808\n"
	    "field_fixed64: 18446744073709551615\n"
	    "field_sfixed64: -1\n"
	    "field_fixed32: 4294967295\n"
	    "field_sfixed32: -1\n"
	    "field_double: 0.1\n"
	    "field_float: 0.1\n"
	    "field_sint64: -9223372036854775808\n"
	    "field_sint32: -2147483648\n"
	    "field_string: \"\"\n"
	    "field_bytes: \"\"\n");
	expect_same(CONFIG,
	    "buffers {\n"
	    "  size_kb: 0\n"
	    "  fill_policy: UNSPECIFIED\n"
	    "  transfer_on_clone: false\n"
	    "}\n"
	    "buffers {\n"
	    "}\n"
	    "activate_triggers: \"a\"\n"
	    "activate_triggers: \"b\"\n");
}

static void
repeated_fields_print_one_line_each(void **state)
{
	expect_same(PACKET,
	    "for_testing {\n"
	    "  payload {\n"
	    "    str: \"a\"\n"
	    "    str: \"b\"\n"
	    "    nested {\n"
	    "    }\n"
	    "    nested {\n"
	    "      single_int: 1\n"
	    "    }\n"
	    "    repeated_ints: -1\n"
	    "    repeated_ints: 2\n"
	    "  }\n"
	    "}\n");
	expect_same(PACKET,
	    "track_event {\n"
	    "  extra_counter_values: -1\n"
	    "  extra_counter_values: 4294967296\n"
	    "  extra_double_counter_values: 0.5\n"
	    "  extra_double_counter_values: 2\n"
	    "}\n");
	expect_same(PACKET,
	    "interned_data {\n"
	    "  mappings: \"\\010\\001\"\n"
	    "  mappings: \"\"\n"
	    "}\n");
	expect_same(CONFIG,
	    "data_sources {\n"
	    "  config {\n"
	    "    process_stats_config {\n"
	    "      quirks: DISABLE_INITIAL_DUMP\n"
	    "      quirks: DISABLE_ON_DEMAND\n"
	    "    }\n"
	    "  }\n"
	    "}\n");
}

static void
floats_print_with_digits_enough_to_read_back(void **state)
{
	expect_same(DUMMY, "field_double: 1\n");
	expect_same(DUMMY, "field_double: 0.30000000000000004\n");
	expect_same(DUMMY, "field_double: 1.7976931348623157e+308\n");
	expect_same(DUMMY, "field_double: 4.94065645841247e-324\n");
	expect_same(DUMMY, "field_double: -0\n");
	expect_same(DUMMY, "field_double: inf\n");
	expect_same(DUMMY, "field_double: -inf\n");
	expect_same(DUMMY, "field_double: nan\n");
	expect_same(DUMMY, "field_float: 3.4028235e+38\n");
	expect_same(DUMMY, "field_float: 16777216\n");
	expect_same(DUMMY, "field_float: 1.4013e-45\n");
}

static void
a_locale_with_another_decimal_point_changes_nothing(void **state)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8",
	    "de_DE", "fr_FR.UTF-8", "fr_FR.utf8" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (setlocale(LC_NUMERIC, names[i]) != NULL)
			break;
	}
	if (i == sizeof(names) / sizeof(names[0]))
		skip();
	assert_string_equal(localeconv()->decimal_point, ",");
	expect_same(DUMMY, "field_double: 1.5\nfield_float: 2.5e-10\n");
	setlocale(LC_NUMERIC, "C");
}

static void
strings_are_escaped_for_terminals_and_read_back(void **state)
{
	expect_same(DUMMY, "field_string: \"\\\"\\'\\\\\\n\\r\\t\\033[31m\\177\"\n");
	/* Letters stay; C1 controls, bad bytes, turned writing do not. */
	expect_same(DUMMY, "field_string: \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
	    "\\302\\233\\377\\342\\200\\2561\"\n");
	expect_same(DUMMY, "field_bytes: \"a\\000\\303\\251\\377\"\n");
}

static void
unknown_fields_print_by_number(void **state)
{
	static const uint8_t in[] = { 0x08, 5, 0xf8, 0xf0, 0x04, 0x96, 0x01,
	    0xf9, 0xf0, 0x04, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 0xf0, 0x04, 3, 'a',
	    '"', 0xff, 0xfd, 0xf0, 0x04, 9, 8, 7, 6, 0xfa, 0xf0, 0x04, 0 };

	expect_print(DUMMY, in, sizeof(in),
	    "field_uint32: 5\n"
	    "9999: 150\n"
	    "9999: 0x0807060504030201\n"
	    "9999: \"a\\\"\\377\"\n"
	    "9999: 0x06070809\n"
	    "9999: \"\"\n");
}

static void
an_enum_value_without_a_name_prints_as_a_number(void **state)
{
	expect_print(CONFIG, "\x0a\x02\x20\x4d", 4,
	    "buffers {\n  fill_policy: 77\n}\n");
	expect_print(CONFIG,
	    "\x0a\x0b\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13,
	    "buffers {\n  fill_policy: -1\n}\n");
}

static void
of_a_oneof_the_given_member_prints(void **state)
{
	expect_same(PACKET,
	    "timestamp: 7\n"
	    "trusted_packet_sequence_id: 1\n"
	    "service_event {\n"
	    "  tracing_started: true\n"
	    "}\n");
	expect_same(PACKET, "synchronization_marker: \"\\202Gzv\"\n");
	expect_same(PACKET, "track_event {\n  double_counter_value: 0\n}\n");
}

static void
printing_to_a_file_indents_and_reports_its_failure(void **state)
{
	Perfetto__Protos__TraceConfig c = PERFETTO__PROTOS__TRACE_CONFIG__INIT;
	char buf[64] = "";
	FILE *f;

	c.has_duration_ms = 1;
	c.duration_ms = 5;
	assert_non_null(f = fmemopen(buf, sizeof(buf), "w"));
	assert_int_equal(text_print(f, &c.base, 2), 0);
	fclose(f);
	assert_string_equal(buf, "    duration_ms: 5\n");
	assert_non_null(f = fdopen(dev_full_open(), "w"));
	setbuf(f, NULL);
	assert_int_equal(text_print(f, &c.base, 0), -1);
	fclose(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_message_prints_nothing),
		cmocka_unit_test(every_type_prints_as_it_is_read),
		cmocka_unit_test(repeated_fields_print_one_line_each),
		cmocka_unit_test(
		    floats_print_with_digits_enough_to_read_back),
		cmocka_unit_test(
		    a_locale_with_another_decimal_point_changes_nothing),
		cmocka_unit_test(
		    strings_are_escaped_for_terminals_and_read_back),
		cmocka_unit_test(unknown_fields_print_by_number),
		cmocka_unit_test(
		    an_enum_value_without_a_name_prints_as_a_number),
		cmocka_unit_test(of_a_oneof_the_given_member_prints),
		cmocka_unit_test(
		    printing_to_a_file_indents_and_reports_its_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
