#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/backoff.h"

static void
a_pause_doubles_until_the_longest(void **state)
{
	assert_int_equal(backoff_ms(1, 200, 15000, 0), 200);
	assert_int_equal(backoff_ms(2, 200, 15000, 0), 400);
	assert_int_equal(backoff_ms(3, 200, 15000, 0), 800);
	assert_int_equal(backoff_ms(7, 200, 15000, 0), 12800);
	assert_int_equal(backoff_ms(8, 200, 15000, 0), 15000);
	assert_int_equal(backoff_ms(UINT32_MAX, 200, 15000, 0), 15000);
}

static void
chance_takes_away_up_to_a_half(void **state)
{
	uint64_t ms;

	assert_int_equal(backoff_ms(1, 200, 15000, UINT32_MAX), 100);
	assert_int_equal(backoff_ms(9, 200, 15000, UINT32_MAX), 7500);
	ms = backoff_ms(9, 200, 15000, UINT32_MAX / 2);
	assert_in_range(ms, 11200, 11300);
}

static void
odd_limits_are_no_endless_loop(void **state)
{
	assert_int_equal(backoff_ms(5, 0, 4, 0), 4);
	assert_int_equal(backoff_ms(1, 0, 4, 0), 1);
	assert_int_equal(backoff_ms(3, 500, 100, 0), 100);
	assert_int_equal(backoff_ms(0, 200, 15000, 0), 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_doubles_until_the_longest),
		cmocka_unit_test(chance_takes_away_up_to_a_half),
		cmocka_unit_test(odd_limits_are_no_endless_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
