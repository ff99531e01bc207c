#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/clock/clock_burst.h"

static unsigned
length(uint64_t first, uint64_t step, uint64_t known)
{
	struct clock_burst b = { 0 };

	while (!clock_burst_is_over(&b, known)) {
		clock_burst_add(&b, first);
		first -= step;
	}
	return b.n;
}

static void
round_trips_that_are_alike_end_it_early(void **state)
{
	assert_int_equal(length(1000, 0, UINT64_MAX), CLOCK_BURST_MIN);
	assert_int_equal(length(100000, 1, UINT64_MAX), CLOCK_BURST_MIN);
}

static void
round_trips_that_get_shorter_make_it_longer(void **state)
{
	assert_int_equal(length(100000, 6000, UINT64_MAX), CLOCK_BURST_MAX);
}

static void
it_goes_on_as_long_as_it_is_worse_than_what_is_known(void **state)
{
	assert_int_equal(length(1000, 0, 999), CLOCK_BURST_AT_ALL);
	assert_int_equal(length(1000, 0, 1000), CLOCK_BURST_MIN);
}

static void
the_shortest_is_the_best(void **state)
{
	struct clock_burst b = { 0 };

	assert_true(clock_burst_add(&b, 500));
	assert_false(clock_burst_add(&b, 500));
	assert_false(clock_burst_add(&b, 501));
	assert_true(clock_burst_add(&b, 499));
	assert_int_equal(b.best_ns, 499);
	assert_int_equal(b.n, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips_that_are_alike_end_it_early),
		cmocka_unit_test(round_trips_that_get_shorter_make_it_longer),
		cmocka_unit_test(it_goes_on_as_long_as_it_is_worse_than_what_is_known),
		cmocka_unit_test(the_shortest_is_the_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
