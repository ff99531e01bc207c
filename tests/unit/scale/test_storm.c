#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/bench/scale/storm.h"

#define DEVICES 20000
#define TIMES   { \
	.move_after_ms = 30000, .min_retry_ms = 200, .max_retry_ms = 15000 }

static uint32_t
arrived(const struct storm *s, uint32_t from, uint32_t to)
{
	uint32_t i, all = 0;

	for (i = from; i < to; i++)
		all += s->in[i];
	return all;
}

static void
devices_move_evenly_between_their_patience_and_twice_that(void **state)
{
	static const struct storm_rules rules = { TIMES, 0, true };
	struct storm s;
	uint32_t i;

	storm_run(&s, &rules, DEVICES);
	assert_int_equal(s.late, 0);
	assert_int_equal(arrived(&s, 30, 61), DEVICES);
	/* evenly: six standard deviations */
	for (i = 30; i < 60; i++)
		assert_in_range(s.in[i], DEVICES / 30 - 155, DEVICES / 30 + 155);
}

static void
without_jitter_all_come_at_once(void **state)
{
	static const struct storm_rules rules = { TIMES, 0, false };
	struct storm s;

	storm_run(&s, &rules, DEVICES);
	assert_int_equal(s.most_in_100_ms, DEVICES);
}

static void
an_outage_spreads_devices_over_their_pause(void **state)
{
	static const struct storm_rules rules = { TIMES, 5000, true };
	struct storm s;

	storm_run(&s, &rules, DEVICES);
	/* the pauses before 5 s are 3.2 s at most, the next 6.4 s */
	assert_int_equal(arrived(&s, 5, 12), DEVICES);
	assert_in_range(s.most_in_100_ms, 0, DEVICES / 10);
}

static void
an_outage_that_no_time_counts_is_told(void **state)
{
	static const struct storm_rules rules = { TIMES, 3600000, true };
	struct storm s;

	storm_run(&s, &rules, 10);
	assert_int_equal(s.late, 10);
	assert_int_equal(arrived(&s, 0, STORM_SECONDS), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    devices_move_evenly_between_their_patience_and_twice_that),
		cmocka_unit_test(without_jitter_all_come_at_once),
		cmocka_unit_test(an_outage_spreads_devices_over_their_pause),
		cmocka_unit_test(an_outage_that_no_time_counts_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
