#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/text/sparkline.h"

#define LOW  "\xe2\x96\x81"
#define HIGH "\xe2\x96\x88"

static void
the_largest_value_has_the_highest_bar(void **state)
{
	const double values[] = { 0, 700, 350, 100, 1 };
	char out[32];

	(void)state;
	assert_string_equal(sparkline(out, sizeof(out), values, 5),
	    LOW HIGH "\xe2\x96\x85" "\xe2\x96\x82" "\xe2\x96\x82");
}

static void
what_is_not_known_is_blank(void **state)
{
	const double values[] = { -1, -1, 5, 0 };
	char out[32];

	(void)state;
	assert_string_equal(sparkline(out, sizeof(out), values, 4),
	    "  " HIGH LOW);
}

static void
nothing_at_all_is_the_lowest_bar(void **state)
{
	const double values[] = { 0, 0 };
	char out[32];

	(void)state;
	assert_string_equal(sparkline(out, sizeof(out), values, 2), LOW LOW);
	assert_string_equal(sparkline(out, sizeof(out), values, 0), "");
}

static void
extreme_rates_have_bars_too(void **state)
{
	const double values[] = { 1.7e308, 5e-324, 1e300 };
	char out[32];

	(void)state;
	assert_string_equal(sparkline(out, sizeof(out), values, 3),
	    HIGH "\xe2\x96\x82" "\xe2\x96\x82");
}

static void
what_does_not_fit_is_left_out_whole(void **state)
{
	const double values[] = { 1, 1, 1 };
	char out[9] = "xxxxxxxx";

	(void)state;
	assert_string_equal(sparkline(out, 8, values, 3), HIGH HIGH);
	assert_string_equal(sparkline(out, 3, values, 3), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_value_has_the_highest_bar),
		cmocka_unit_test(what_is_not_known_is_blank),
		cmocka_unit_test(nothing_at_all_is_the_lowest_bar),
		cmocka_unit_test(extreme_rates_have_bars_too),
		cmocka_unit_test(what_does_not_fit_is_left_out_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
