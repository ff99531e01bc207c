#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/budget.h"

static void
a_budget_of_zeros_limits_nothing(void **state)
{
	struct budget b = { 0 };

	budget_resize(&b, 0, SIZE_MAX / 2);
	assert_false(budget_is_over(&b));
	assert_int_equal(budget_take(&b, SIZE_MAX / 2, 1), 0);
	assert_int_equal(b.throttled, 0);
}

static void
memory_is_over_only_beyond_its_limit(void **state)
{
	struct budget b = { .memory_max = 1000 };

	budget_resize(&b, 0, 600);
	budget_resize(&b, 0, 400);
	assert_false(budget_is_over(&b));
	budget_resize(&b, 400, 401);
	assert_true(budget_is_over(&b));
	assert_int_equal(b.memory, 1001);
	budget_resize(&b, 600, 0);
	assert_false(budget_is_over(&b));
	budget_resize(&b, 401, 0);
	assert_int_equal(b.memory, 0);
}

static void
a_second_is_there_at_once_and_then_the_rate_holds(void **state)
{
	struct budget b = { .bytes_per_second = 1000 };
	uint64_t now = 5000000;

	assert_int_equal(budget_take(&b, 1000, now), 0);
	assert_int_equal(budget_take(&b, 1, now), 1);
	assert_int_equal(budget_take(&b, 499, now), 500);
	assert_int_equal(b.throttled, 2);
	/* After the rest there is nothing over, and nothing owed. */
	now += 500;
	assert_int_equal(budget_take(&b, 0, now), 0);
	assert_int_equal(b.tokens, 0);
	assert_int_equal(budget_take(&b, 100, now), 100);
}

static void
what_is_not_used_is_kept_for_a_second_only(void **state)
{
	struct budget b = { .bytes_per_second = 1000 };

	assert_int_equal(budget_take(&b, 1000, 1000000), 0);
	assert_int_equal(budget_take(&b, 1001, 9000000), 1);
}

static void
over_a_minute_no_more_than_the_rate_is_taken(void **state)
{
	struct budget b = { .bytes_per_second = 10000 };
	uint64_t now = 77, begin = now, taken = 0, rest;

	while (now < begin + 60000) {
		rest = budget_take(&b, 777, now);
		taken += 777;
		now += rest > 0 ? rest : 1;
	}
	assert_in_range(taken, 590000, 612000);
}

static void
a_rate_under_a_byte_a_millisecond_is_not_lost_by_looking_often(void **state)
{
	struct budget b = { .bytes_per_second = 10 };
	uint64_t now;

	assert_int_equal(budget_take(&b, 10, 100000), 0);
	assert_int_equal(budget_take(&b, 5, 100000), 500);
	for (now = 100000; now < 100500; now++)
		(void)budget_take(&b, 0, now);
	assert_int_equal(budget_take(&b, 0, now), 0);
}

static void
time_that_goes_backwards_or_far_ahead_does_no_harm(void **state)
{
	struct budget b = { .bytes_per_second = UINT64_MAX };

	assert_int_equal(budget_take(&b, 1 << 20, UINT64_MAX - 1), 0);
	assert_int_equal(budget_take(&b, 1 << 20, 1), 0);
	assert_int_equal(budget_take(&b, 1 << 20, UINT64_MAX), 0);
	b.bytes_per_second = 1000;
	assert_true(budget_take(&b, 2000, UINT64_MAX) <= 2000);
}

static void
a_limit_that_is_set_later_begins_with_a_full_second(void **state)
{
	struct budget b = { 0 };

	assert_int_equal(budget_take(&b, 100000, 50000), 0);
	b.bytes_per_second = 1000;
	assert_int_equal(budget_take(&b, 1000, 60000), 0);
	assert_int_equal(budget_take(&b, 10, 60000), 10);
}

static void
a_burst_of_its_own_is_there_after_a_pause(void **state)
{
	struct budget b = { .bytes_per_second = 1000, .burst = 5000 };

	assert_true(budget_full(&b) == 5000);
	assert_true(budget_tokens(&b, 9000000) == 5000);
	assert_int_equal(budget_take(&b, 5000, 9000000), 0);
	assert_true(budget_tokens(&b, 9000000) == 0);
	assert_true(budget_tokens(&b, 9003000) == 3000);
	assert_true(budget_tokens(&b, 9900000) == 5000);
	b.burst = 0;
	assert_true(budget_full(&b) == 1000);
}

static void
it_says_how_long_until_there_are_so_many(void **state)
{
	struct budget b = { .bytes_per_second = 1000 }, none = { 0 };

	assert_int_equal(budget_take(&b, 1500, 9000000), 500);
	assert_true(budget_tokens(&b, 9000000) == -500);
	assert_int_equal(budget_wait_ms(&b, 0), 500);
	assert_int_equal(budget_wait_ms(&b, 1), 501);
	assert_int_equal(budget_wait_ms(&b, 1000), 1500);
	assert_int_equal(budget_wait_ms(&b, -500), 0);
	assert_true(budget_tokens(&none, 1) == INT64_MAX);
	assert_int_equal(budget_wait_ms(&none, 1000), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_budget_of_zeros_limits_nothing),
		cmocka_unit_test(memory_is_over_only_beyond_its_limit),
		cmocka_unit_test(
		    a_second_is_there_at_once_and_then_the_rate_holds),
		cmocka_unit_test(what_is_not_used_is_kept_for_a_second_only),
		cmocka_unit_test(over_a_minute_no_more_than_the_rate_is_taken),
		cmocka_unit_test(
		    a_rate_under_a_byte_a_millisecond_is_not_lost_by_looking_often),
		cmocka_unit_test(
		    time_that_goes_backwards_or_far_ahead_does_no_harm),
		cmocka_unit_test(
		    a_limit_that_is_set_later_begins_with_a_full_second),
		cmocka_unit_test(a_burst_of_its_own_is_there_after_a_pause),
		cmocka_unit_test(it_says_how_long_until_there_are_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
