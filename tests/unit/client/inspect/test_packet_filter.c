#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/inspect/packet_filter.h"
#include "client/trace/packet_facts.h"

static struct packet_filter filter;
static struct packet_facts facts;
static char err[256];

static int
setup(void **state)
{
	memset(&filter, 0, sizeof(filter));
	memset(&facts, 0, sizeof(facts));
	return 0;
}

static bool
match(int64_t at)
{
	return packet_filter_match(&filter, &facts, "car-7", at);
}

static void
nothing_said_lets_everything_through(void **state)
{
	assert_false(packet_filter_is_set(&filter));
	assert_true(match(0));
	assert_true(match(INT64_MIN));
}

static void
types_are_names_or_numbers_and_add_up(void **state)
{
	assert_int_equal(packet_filter_type(&filter, "track_event", err,
	    sizeof(err)), 0);
	assert_int_equal(packet_filter_type(&filter, "900", err,
	    sizeof(err)), 0);
	facts.type = 11;
	assert_true(match(0));
	facts.type = 900;
	assert_true(match(0));
	facts.type = 6;
	assert_false(match(0));
	assert_int_equal(packet_filter_type(&filter, "clock_snapshots", err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "mean clock_snapshot?"));
}

static void
more_types_than_fit_are_refused(void **state)
{
	unsigned i;

	for (i = 0; i < PACKET_FILTER_MAX_TYPES; i++)
		assert_int_equal(packet_filter_type(&filter, "6", err,
		    sizeof(err)), 0);
	assert_int_equal(packet_filter_type(&filter, "6", err, sizeof(err)),
	    -1);
}

static void
machines_are_names_patterns_or_ids(void **state)
{
	facts.machine_id = 77;
	filter.machine = "car-*";
	assert_true(match(0));
	filter.machine = "bus";
	assert_false(match(0));
	filter.machine = "77";
	assert_true(match(0));
	filter.machine = "0x4d";
	assert_true(match(0));
	filter.machine = "car-7";
	assert_true(match(0));
	/* A name that is not known yet is not meant. */
	assert_false(packet_filter_match(&filter, &facts, NULL, 0));
	/* No number begins with a space or a sign. */
	assert_false(packet_filter_is_machine(" 77", 77, NULL));
	assert_false(packet_filter_is_machine("+77", 77, NULL));
}

static void
times_are_seconds_with_fractions_both_ends_included(void **state)
{
	assert_int_equal(packet_filter_from(&filter, "1.5", err, sizeof(err)),
	    0);
	assert_int_equal(packet_filter_to(&filter, "2", err, sizeof(err)), 0);
	assert_false(match(1499999999));
	assert_true(match(1500000000));
	assert_true(match(2000000000));
	assert_false(match(2000000001));
	assert_int_equal(packet_filter_from(&filter, "-0.000000001", err,
	    sizeof(err)), 0);
	assert_true(filter.from_ns == -1);
	assert_int_equal(packet_filter_from(&filter, ".25", err, sizeof(err)),
	    0);
	assert_true(filter.from_ns == 250000000);
	/* What is finer than a nanosecond is not there. */
	assert_int_equal(packet_filter_from(&filter, "0.0000000019", err,
	    sizeof(err)), 0);
	assert_true(filter.from_ns == 1);
}

static void
what_are_no_seconds_is_refused(void **state)
{
	static const char *const bad[] = { "", ".", "-", "1.2.3", "1e3", "1:30",
		"99999999999999999999", " 1", "nan" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(packet_filter_to(&filter, bad[i], err,
		    sizeof(err)), -1);
}

static void
a_sequence_is_a_number(void **state)
{
	assert_int_equal(packet_filter_sequence(&filter, "12", err,
	    sizeof(err)), 0);
	facts.sequence_id = 12;
	assert_true(match(0));
	facts.sequence_id = 1;
	assert_false(match(0));
	assert_int_equal(packet_filter_sequence(&filter, "4294967296", err,
	    sizeof(err)), -1);
	assert_int_equal(packet_filter_sequence(&filter, "-1", err,
	    sizeof(err)), -1);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_said_lets_everything_through),
		TEST(types_are_names_or_numbers_and_add_up),
		TEST(more_types_than_fit_are_refused),
		TEST(machines_are_names_patterns_or_ids),
		TEST(times_are_seconds_with_fractions_both_ends_included),
		TEST(what_are_no_seconds_is_refused),
		TEST(a_sequence_is_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
