#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/bench/load/histogram.h"

static int
setup(void **state)
{
	*state = calloc(1, sizeof(struct histogram));
	return 0;
}

static int
teardown(void **state)
{
	free(*state);
	return 0;
}

static void
nothing_seen_is_zero(void **state)
{
	assert_int_equal(histogram_at(*state, 990), 0);
}

static void
small_values_are_exact(void **state)
{
	struct histogram *h = *state;
	uint64_t v;

	for (v = 1; v <= 20; v++)
		histogram_add(h, v);
	assert_int_equal(histogram_at(h, 500), 10);
	assert_int_equal(histogram_at(h, 1000), 20);
	assert_int_equal(h->sum, 210);
}

static void
any_value_is_right_to_a_sixteenth(void **state)
{
	struct histogram *h;
	uint64_t v, at;

	for (v = 1; v < UINT64_C(1) << 50; v = v * 3 / 2 + 1) {
		h = calloc(1, sizeof(*h));
		histogram_add(h, v);
		histogram_add(h, UINT64_C(1) << 55);
		at = histogram_at(h, 500);
		assert_true(at >= v);
		assert_true(at - v <= v / 16);
		free(h);
	}
}

static void
the_tail_is_found(void **state)
{
	struct histogram *h = *state;
	int i;

	for (i = 0; i < 989; i++)
		histogram_add(h, 10);
	for (i = 0; i < 11; i++)
		histogram_add(h, 5000);
	assert_int_equal(histogram_at(h, 900), 10);
	assert_int_equal(histogram_at(h, 989), 10);
	assert_int_equal(histogram_at(h, 990), 5000);
	assert_int_equal(h->max, 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_seen_is_zero, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(small_values_are_exact, setup,
		    teardown),
		cmocka_unit_test(any_value_is_right_to_a_sixteenth),
		cmocka_unit_test_setup_teardown(the_tail_is_found, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
