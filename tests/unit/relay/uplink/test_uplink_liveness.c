#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "relay/uplink/liveness.h"

static uint64_t again;

static enum uplink_liveness_verdict
look(struct uplink_liveness *w, uint64_t now)
{
	again = 0;
	return uplink_liveness_look(w, now, &again);
}

static void
who_owes_nothing_may_be_silent(void **state)
{
	struct uplink_liveness w = { 0 };

	assert_int_equal(look(&w, 1000000), WATCH_IDLE);
	uplink_liveness_heard(&w, 1000000);
	assert_int_equal(look(&w, 9000000), WATCH_IDLE);
}

static void
silence_counts_from_the_first_block_that_is_owed(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_heard(&w, 1000);
	uplink_liveness_sent_block(&w, 100000);
	assert_int_equal(look(&w, 100001), WATCH_WAIT);
	assert_int_equal(again, WATCH_PROBE_MS - 1);
	/* More of the same is no news. */
	uplink_liveness_sent_block(&w, 104000);
	assert_int_equal(look(&w, 100000 + WATCH_PROBE_MS - 1), WATCH_WAIT);
	assert_int_equal(again, 1);
	assert_int_equal(look(&w, 100000 + WATCH_PROBE_MS), WATCH_PROBE);
	assert_int_equal(again, WATCH_DEAD_MS);
}

static void
an_end_that_does_not_answer_a_probe_is_dead(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_sent_block(&w, 1000);
	assert_int_equal(look(&w, 1000 + WATCH_PROBE_MS), WATCH_PROBE);
	uplink_liveness_sent_ping(&w, 1000 + WATCH_PROBE_MS);
	assert_int_equal(look(&w, 1000 + WATCH_PROBE_MS + 1), WATCH_WAIT);
	assert_int_equal(again, WATCH_DEAD_MS - 1);
	assert_int_equal(look(&w, 1000 + WATCH_PROBE_MS + WATCH_DEAD_MS),
	    WATCH_DEAD);
}

static void
any_sign_of_life_is_one(void **state)
{
	struct uplink_liveness w = { 0 };
	uint64_t t = 1000;

	uplink_liveness_sent_block(&w, t);
	t += WATCH_PROBE_MS;
	assert_int_equal(look(&w, t), WATCH_PROBE);
	t += WATCH_DEAD_MS - 1;
	uplink_liveness_heard(&w, t);
	assert_int_equal(look(&w, t + 1), WATCH_WAIT);
	assert_int_equal(again, WATCH_PROBE_MS - 1);
	/* The block is owed all the same. */
	assert_int_equal(look(&w, t + WATCH_PROBE_MS), WATCH_PROBE);
}

static void
a_ping_without_its_pong_is_owed_too(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_sent_ping(&w, 5000);
	assert_int_equal(look(&w, 5000 + WATCH_PROBE_MS), WATCH_PROBE);
	uplink_liveness_ponged(&w);
	assert_int_equal(look(&w, 90000), WATCH_IDLE);
	uplink_liveness_sent_block(&w, 90000);
	uplink_liveness_sent_ping(&w, 90001);
	uplink_liveness_all_acked(&w);
	assert_int_equal(look(&w, 90002), WATCH_WAIT);
	uplink_liveness_ponged(&w);
	assert_int_equal(look(&w, 90002), WATCH_IDLE);
}

static void
who_slept_asks_first_and_does_not_hang_up_at_once(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_sent_block(&w, 1000);
	assert_int_equal(look(&w, 1000000), WATCH_PROBE);
	assert_int_equal(look(&w, 1000001), WATCH_WAIT);
}

static void
a_network_that_came_back_makes_it_impatient(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_heard(&w, 1000);
	assert_false(uplink_liveness_hurry(&w, 9000)); /* owes nothing */
	uplink_liveness_sent_block(&w, 10000);
	assert_false(uplink_liveness_hurry(&w,
	    10000 + WATCH_HURRY_PROBE_MS - 1));
	assert_true(uplink_liveness_hurry(&w, 12000));
	/* The kernel tells of one change in many words. */
	assert_false(uplink_liveness_hurry(&w, 12500));
	assert_int_equal(look(&w, 12000 + WATCH_HURRY_DEAD_MS - 1), WATCH_WAIT);
	assert_int_equal(look(&w, 12000 + WATCH_HURRY_DEAD_MS), WATCH_DEAD);
}

static void
who_answers_in_a_hurry_has_all_its_time_again(void **state)
{
	struct uplink_liveness w = { 0 };

	uplink_liveness_sent_block(&w, 10000);
	assert_true(uplink_liveness_hurry(&w, 12000));
	uplink_liveness_heard(&w, 12100);
	assert_int_equal(look(&w, 12100 + WATCH_PROBE_MS - 1), WATCH_WAIT);
	assert_int_equal(look(&w, 12100 + WATCH_PROBE_MS), WATCH_PROBE);
	assert_int_equal(look(&w, 12100 + WATCH_PROBE_MS + WATCH_DEAD_MS - 1),
	    WATCH_WAIT);
	/* Also one that was asked already is given less time. */
	assert_true(uplink_liveness_hurry(&w, 12100 + WATCH_PROBE_MS + 100));
	assert_int_equal(look(&w, 12100 + WATCH_PROBE_MS + 100 +
	    WATCH_HURRY_DEAD_MS), WATCH_DEAD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_owes_nothing_may_be_silent),
		cmocka_unit_test(
		    silence_counts_from_the_first_block_that_is_owed),
		cmocka_unit_test(an_end_that_does_not_answer_a_probe_is_dead),
		cmocka_unit_test(any_sign_of_life_is_one),
		cmocka_unit_test(a_ping_without_its_pong_is_owed_too),
		cmocka_unit_test(
		    who_slept_asks_first_and_does_not_hang_up_at_once),
		cmocka_unit_test(a_network_that_came_back_makes_it_impatient),
		cmocka_unit_test(who_answers_in_a_hurry_has_all_its_time_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
