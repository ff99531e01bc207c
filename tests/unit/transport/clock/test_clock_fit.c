#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "transport/clock/clock_fit.h"

#define SECOND UINT64_C(1000000000)

static void
nothing_is_known_at_first_and_then_the_middle(void **state)
{
	struct clock_fit f = { .known = false };

	clock_fit_take(&f, 100, 200, SECOND);
	assert_true(f.known);
	assert_int_equal(clock_fit_offset(&f), 150);
	assert_int_equal(clock_fit_uncertainty(&f), 50);
	clock_fit_take(&f, -201, -100, 1000 * SECOND);
	assert_int_equal(clock_fit_offset(&f), -151);
	assert_int_equal(clock_fit_uncertainty(&f), 51);
}

static void
exchanges_at_one_time_narrow_it_from_both_sides(void **state)
{
	struct clock_fit f = { .known = false };

	clock_fit_take(&f, 0, 1000, SECOND);
	clock_fit_take(&f, -5000, 600, SECOND);
	clock_fit_take(&f, 400, 9000, SECOND);
	assert_int_equal(f.low, 400);
	assert_int_equal(f.high, 600);
}

static void
what_is_known_grows_with_the_drift(void **state)
{
	struct clock_fit f = { .known = false };

	clock_fit_take(&f, 0, 1000, SECOND);
	assert_int_equal(clock_fit_uncertainty_at(&f, 31 * SECOND),
	    500 + 30 * 100000);
	/* and into the past */
	assert_int_equal(clock_fit_uncertainty_at(&f, 0), 500 + 100000);
	clock_fit_take(&f, -50000000, 50000000, 31 * SECOND);
	assert_int_equal(f.low, -30 * 100000);
	assert_int_equal(f.high, 1000 + 30 * 100000);
}

static void
the_newer_one_is_right_where_they_exclude_each_other(void **state)
{
	struct clock_fit f = { .known = false };

	clock_fit_take(&f, 0, 1000, SECOND);
	clock_fit_take(&f, 700000000, 900000000, 2 * SECOND);
	assert_int_equal(f.low, 700000000);
	assert_int_equal(f.high, 900000000);
	/* At the edge they still meet. */
	clock_fit_take(&f, 900100000, 990000000, 3 * SECOND);
	assert_int_equal(f.low, 900100000);
	assert_int_equal(f.high, 900100000);
}

static void
no_time_is_too_far_away_to_reckon_with(void **state)
{
	struct clock_fit f = { .known = false };

	clock_fit_take(&f, -CLOCK_FIT_MAX_NS, -CLOCK_FIT_MAX_NS, 0);
	clock_fit_take(&f, CLOCK_FIT_MAX_NS, CLOCK_FIT_MAX_NS, UINT64_MAX);
	assert_int_equal(clock_fit_offset(&f), CLOCK_FIT_MAX_NS);
	f.known = false;
	clock_fit_take(&f, -CLOCK_FIT_MAX_NS, CLOCK_FIT_MAX_NS, 0);
	assert_int_equal(clock_fit_offset(&f), 0);
	assert_int_equal(clock_fit_uncertainty(&f), CLOCK_FIT_MAX_NS);
	assert_true(clock_fit_uncertainty_at(&f, UINT64_MAX) >
	    (uint64_t)CLOCK_FIT_MAX_NS);
	clock_fit_take(&f, -CLOCK_FIT_MAX_NS, CLOCK_FIT_MAX_NS, UINT64_MAX);
	assert_int_equal(clock_fit_uncertainty(&f), CLOCK_FIT_MAX_NS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first_and_then_the_middle),
		cmocka_unit_test(exchanges_at_one_time_narrow_it_from_both_sides),
		cmocka_unit_test(what_is_known_grows_with_the_drift),
		cmocka_unit_test(the_newer_one_is_right_where_they_exclude_each_other),
		cmocka_unit_test(no_time_is_too_far_away_to_reckon_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
