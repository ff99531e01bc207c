#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "service/session/trigger_history.h"

#define HOUR (3600ull * 1000000000)

static void
each_name_is_counted_for_itself(void **state)
{
	struct trigger_history *h = trigger_history_new();

	assert_non_null(h);
	assert_int_equal(trigger_history_count(h, "a", HOUR), 0);
	trigger_history_add(h, "a", HOUR);
	trigger_history_add(h, "a", HOUR);
	trigger_history_add(h, "b", 2 * HOUR);
	trigger_history_add(h, "", 2 * HOUR);
	assert_int_equal(trigger_history_count(h, "a", 2 * HOUR), 2);
	assert_int_equal(trigger_history_count(h, "b", 2 * HOUR), 1);
	assert_int_equal(trigger_history_count(h, "", 2 * HOUR), 1);
	assert_int_equal(trigger_history_count(h, "ab", 2 * HOUR), 0);
	trigger_history_free(h);
	trigger_history_free(NULL);
}

static void
a_hit_counts_for_a_day_to_the_nanosecond(void **state)
{
	struct trigger_history *h = trigger_history_new();

	assert_non_null(h);
	trigger_history_add(h, "a", HOUR);
	trigger_history_add(h, "a", 3 * HOUR);
	assert_int_equal(trigger_history_count(h, "a", 25 * HOUR), 2);
	assert_int_equal(trigger_history_count(h, "a", 25 * HOUR + 1), 1);
	assert_int_equal(trigger_history_count(h, "a", 27 * HOUR), 1);
	assert_int_equal(trigger_history_count(h, "a", 27 * HOUR + 1), 0);
	trigger_history_add(h, "a", 50 * HOUR);
	assert_int_equal(trigger_history_count(h, "a", 50 * HOUR), 1);
	trigger_history_free(h);
}

static void
the_newest_hits_of_a_name_are_kept(void **state)
{
	struct trigger_history *h = trigger_history_new();
	uint64_t i;

	assert_non_null(h);
	for (i = 1; i <= 3 * TRIGGER_HISTORY_HITS_MAX; i++) {
		trigger_history_add(h, "a", i);
		assert_int_equal(trigger_history_count(h, "a", i),
		    i < TRIGGER_HISTORY_HITS_MAX ? i :
		    TRIGGER_HISTORY_HITS_MAX);
	}
	/* All but the last ten have expired. */
	assert_int_equal(trigger_history_count(h, "a",
	    i - 10 + TRIGGER_HISTORY_DAY_NS), 10);
	trigger_history_free(h);
}

static void
the_name_that_was_hit_longest_ago_gives_way(void **state)
{
	struct trigger_history *h = trigger_history_new();
	char name[16];
	unsigned i;

	assert_non_null(h);
	for (i = 0; i < TRIGGER_HISTORY_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		trigger_history_add(h, name, i + 1);
	}
	trigger_history_add(h, "n0", 1000); /* not the oldest any more */
	trigger_history_add(h, "new", 1001);
	assert_int_equal(trigger_history_count(h, "new", 1001), 1);
	assert_int_equal(trigger_history_count(h, "n0", 1001), 2);
	assert_int_equal(trigger_history_count(h, "n1", 1001), 0);
	assert_int_equal(trigger_history_count(h, "n2", 1001), 1);
	trigger_history_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_counted_for_itself),
		cmocka_unit_test(a_hit_counts_for_a_day_to_the_nanosecond),
		cmocka_unit_test(the_newest_hits_of_a_name_are_kept),
		cmocka_unit_test(the_name_that_was_hit_longest_ago_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
