#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/bench/scale/census.h"

#define NAMES 30000
/* Standard deviations: names are fixed, so that chance cannot fail a test. */
#define FAIR  5

static struct census
taken(uint32_t n)
{
	struct census c;
	char err[256];

	assert_int_equal(census_take(&c, NAMES, n, err, sizeof(err)), 0);
	return c;
}

static uint32_t
sum(const uint32_t *counts, uint32_t n)
{
	uint32_t i, all = 0;

	for (i = 0; i < n; i++)
		all += counts[i];
	return all;
}

/* count is binomial: of `of` names each is in it with probability 1/n. */
static void
assert_fair(uint32_t count, uint32_t of, uint32_t n)
{
	double off = (double)count - (double)of / n;

	assert_true(off * off <= FAIR * FAIR * ((double)of / n) * (1 - 1.0 / n));
}

static void
each_name_has_one_collector_and_shares_are_fair(void **state)
{
	static const uint32_t sizes[] = { 3, 10, 40 };
	struct census c;
	uint32_t i, k;

	for (i = 0; i < 3; i++) {
		c = taken(sizes[i]);
		assert_int_equal(sum(c.at, c.n), NAMES);
		for (k = 0; k < c.n; k++)
			assert_fair(c.at[k], NAMES, c.n);
		assert_true(census_spread(c.at, c.n).sigmas <= FAIR);
	}
}

static void
what_moves_when_one_is_added_comes_to_it(void **state)
{
	struct census c = taken(10);

	assert_int_equal(c.moved_otherwise, 0);
	assert_fair(c.moved_to_added, NAMES, c.n + 1);
}

static void
what_moves_when_one_is_removed_was_on_it(void **state)
{
	struct census c = taken(10);

	assert_int_equal(c.moved_otherwise, 0);
	assert_int_equal(c.moved_from_removed, c.at[9]);
}

static void
all_others_share_what_a_dead_one_had(void **state)
{
	struct census c = taken(10);
	uint32_t i;

	assert_int_equal(c.heirs[9], 0);
	assert_int_equal(sum(c.heirs, 9), c.at[9]);
	for (i = 0; i < 9; i++)
		assert_fair(c.heirs[i], c.at[9], 9);
}

static void
a_spread_is_told_of_its_mean(void **state)
{
	static const uint32_t counts[] = { 80, 100, 120 };
	struct spread s = census_spread(counts, 3);

	assert_true(s.least == 0.8 && s.most == 1.2);
	/* 20 of sqrt(100 * 2 / 3), which is 8.165 */
	assert_true(s.sigmas > 2.449 && s.sigmas < 2.450);
}

static void
fleets_that_cannot_be_counted_are_refused(void **state)
{
	struct census c;
	char err[256];

	assert_int_equal(census_take(&c, 1, 2, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "2 collectors: there may be 3 to 255"));
	assert_int_equal(census_take(&c, 1, PLACEMENT_MAX, err, sizeof(err)),
	    -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_has_one_collector_and_shares_are_fair),
		cmocka_unit_test(what_moves_when_one_is_added_comes_to_it),
		cmocka_unit_test(what_moves_when_one_is_removed_was_on_it),
		cmocka_unit_test(all_others_share_what_a_dead_one_had),
		cmocka_unit_test(a_spread_is_told_of_its_mean),
		cmocka_unit_test(fleets_that_cannot_be_counted_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
