#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/clock/clock_graph.h"
#include "client/clock/clock_name.h"

static char err[256];

static struct clock_key
parse(const char *text)
{
	struct clock_key k = { 9, 9, 9 };

	assert_int_equal(clock_name_parse(&k, text, strlen(text), err,
	    sizeof(err)), 0);
	assert_int_equal(k.machine, 0);
	return k;
}

static void
assert_refused(const char *text, const char *why)
{
	struct clock_key k = { 9, 9, 9 };

	assert_int_equal(clock_name_parse(&k, text, strlen(text), err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, why));
	assert_int_equal(k.id, 9);
}

static void
what_is_written_reads_back(void **state)
{
	static const struct clock_key keys[] = { { 0, 0, 1 }, { 0, 0, 3 },
		{ 0, 0, 6 }, { 0, 0, 8 }, { 0, 0, 9 }, { 0, 7, 64 },
		{ 0, 4294967295u, 127 }, { 0, 0, 128 }, { 0, 0, 4294967295u } };
	char text[CLOCK_NAME_MAX];
	struct clock_key k;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		k = parse(clock_name(text, &keys[i]));
		assert_int_equal(k.id, keys[i].id);
		assert_int_equal(k.sequence, keys[i].sequence);
	}
	assert_string_equal(clock_name(text, &keys[2]), "BOOTTIME");
	assert_string_equal(clock_name(text, &keys[5]), "64@7");
}

static void
names_are_read_in_any_case(void **state)
{
	assert_int_equal(parse("monotonic_raw").id, 5);
	assert_int_equal(parse("Realtime_Coarse").id, 2);
	assert_int_equal(parse("6").id, 6);
}

static void
what_is_no_clock_is_refused(void **state)
{
	assert_refused("", "no clock");
	assert_refused("0", "no clock");
	assert_refused("UNKNOWN", "no clock");
	assert_refused("MAX_ID", "no clock");
	assert_refused("BOOT", "no clock");
	assert_refused("4294967296", "no clock");
	assert_refused("64@", "no clock");
	assert_refused("@7", "no clock");
	assert_refused("64@0", "no clock");
	assert_refused("-6", "no clock");
	assert_refused("64", "of which?");
	assert_refused("63@7", "64 to 127");
	assert_refused("\x1b[2J", "\\x1b");
}

static void
seconds_have_all_their_digits(void **state)
{
	char text[CLOCK_NAME_MAX];

	assert_string_equal(clock_seconds(text, 0), "0.000000000");
	assert_string_equal(clock_seconds(text, 12000000345), "12.000000345");
	assert_string_equal(clock_seconds(text, -1), "-0.000000001");
	assert_string_equal(clock_seconds(text, INT64_MIN),
	    "-9223372036.854775808");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(names_are_read_in_any_case),
		cmocka_unit_test(what_is_no_clock_is_refused),
		cmocka_unit_test(seconds_have_all_their_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
