#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "service/limits/overload.h"

#define LIMIT 50u

static struct overload o;
static uint64_t now;

static int
setup(void **state)
{
	memset(&o, 0, sizeof(o));
	now = 1000000;
	return 0;
}

/* A look every tenth of a second, n times; how often it changed. */
static unsigned
look(uint64_t lag_ms, unsigned n)
{
	unsigned changes = 0;

	for (; n > 0; n--) {
		changes += overload_note(&o, lag_ms, LIMIT, now);
		now += 100;
	}
	return changes;
}

static void
short_waits_are_none(void **state)
{
	assert_int_equal(look(0, 5), 0);
	assert_int_equal(look(LIMIT - 1, 50), 0);
	assert_int_equal(o.level, OVERLOAD_NONE);
	assert_int_equal(o.lag_ms, LIMIT - 1);
}

static void
what_is_left_undone_has_its_order_however_bad_it_is(void **state)
{
	assert_int_equal(look(60000, 1), 1);
	assert_int_equal(o.level, OVERLOAD_DOORS);
	assert_int_equal(look(60000, 1), 1);
	assert_int_equal(o.level, OVERLOAD_EXTRAS);
	assert_int_equal(look(60000, 1), 1);
	assert_int_equal(o.level, OVERLOAD_INPUT);
	assert_int_equal(look(60000, 20), 0);
	assert_int_equal(o.times[OVERLOAD_DOORS], 1);
	assert_int_equal(o.times[OVERLOAD_EXTRAS], 1);
	assert_int_equal(o.times[OVERLOAD_INPUT], 1);
}

static void
each_level_needs_twice_the_wait_of_the_one_before(void **state)
{
	look(LIMIT, 10);
	assert_int_equal(o.level, OVERLOAD_DOORS);
	look(2 * LIMIT - 1, 10);
	assert_int_equal(o.level, OVERLOAD_DOORS);
	look(2 * LIMIT, 10);
	assert_int_equal(o.level, OVERLOAD_EXTRAS);
	look(4 * LIMIT - 1, 10);
	assert_int_equal(o.level, OVERLOAD_EXTRAS);
	look(4 * LIMIT, 10);
	assert_int_equal(o.level, OVERLOAD_INPUT);
}

static void
it_goes_down_in_the_same_order_a_calm_second_for_each(void **state)
{
	look(1000, 3);
	assert_int_equal(look(0, 10), 0);
	assert_int_equal(look(0, 1), 1);
	assert_int_equal(o.level, OVERLOAD_EXTRAS);
	assert_int_equal(look(0, 10), 1);
	assert_int_equal(o.level, OVERLOAD_DOORS);
	assert_int_equal(look(0, 10), 1);
	assert_int_equal(o.level, OVERLOAD_NONE);
	assert_int_equal(look(0, 100), 0);
}

static void
the_least_limit_has_an_end_too(void **state)
{
	assert_true(overload_note(&o, 1, 1, now));
	assert_false(overload_note(&o, 0, 1, now += 100));
	assert_true(overload_note(&o, 0, 1, now += OVERLOAD_CALM_MS));
	assert_int_equal(o.level, OVERLOAD_NONE);
}

static void
what_comes_and_goes_does_not_flap(void **state)
{
	unsigned i;

	look(LIMIT, 1);
	/* Calm for half a second, then not, then what is neither. */
	for (i = 0; i < 10; i++) {
		assert_int_equal(look(0, 5), 0);
		assert_int_equal(look(LIMIT, 1), 0);
		assert_int_equal(look(LIMIT - 5, 5), 0);
	}
	assert_int_equal(o.level, OVERLOAD_DOORS);
	assert_int_equal(o.times[OVERLOAD_DOORS], 1);
}

static void
a_quarter_of_the_extras_is_left_from_the_second_level_on(void **state)
{
	unsigned i, kept = 0;

	look(LIMIT, 1);
	for (i = 0; i < 40; i++)
		assert_false(overload_skip_extra(&o));
	look(1000, 1);
	for (i = 0; i < 40; i++)
		kept += !overload_skip_extra(&o);
	assert_int_equal(kept, 10);
	assert_int_equal(o.left_out, 30);
}

static void
a_limit_of_zero_means_never(void **state)
{
	assert_false(overload_note(&o, 100000, 0, now));
	assert_int_equal(o.level, OVERLOAD_NONE);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(short_waits_are_none),
		T(what_is_left_undone_has_its_order_however_bad_it_is),
		T(each_level_needs_twice_the_wait_of_the_one_before),
		T(it_goes_down_in_the_same_order_a_calm_second_for_each),
		T(the_least_limit_has_an_end_too),
		T(what_comes_and_goes_does_not_flap),
		T(a_quarter_of_the_extras_is_left_from_the_second_level_on),
		T(a_limit_of_zero_means_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
