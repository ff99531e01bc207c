/* A link that goes on at another collector, and the way there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/relay/uplink/uplink_world.h"

#define WHY(name) TRIBUTARY__LINK_OPENED__WHY__##name
#define COLLECTOR (&world->collector)

static void
another_collector(void)
{
	memcpy(COLLECTOR->id, "another-collect", LINK_ID_BYTES);
	COLLECTOR->why = WHY(MOVED);
	COLLECTOR->wants_moves = true;
}

static void
commit_block(void)
{
	world_commit(1, 50);
	world_settle();
}

/* One block was acknowledged, another taken only; then it is gone. */
static void
lose_collector(void)
{
	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	COLLECTOR->acks_nothing = true;
	commit_block();
	collector_expect(COLLECTOR, "1:2 one; 1:commit 50; ");
	collector_cut(COLLECTOR);
	COLLECTOR->acks_nothing = false;
	another_collector();
	fakes.moves = 2;
}

/* ---- the second Open ---- */

static void
a_link_goes_on_at_another_collector(void **state)
{
	struct outbox_state st;

	lose_collector();
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->opens, 3);
	assert_true(COLLECTOR->open->moves);
	assert_false(COLLECTOR->open->can_move);
	assert_int_equal(COLLECTOR->open->buffer_tag, 1);
	assert_int_equal(COLLECTOR->open->last_acknowledged, 1);
	assert_int_equal(COLLECTOR->open->consumed_in_all, 5);
	/* Channel 0 first; what was not acknowledged comes once more. */
	collector_expect(COLLECTOR, "move 0 0; move 1 5; move 1 5; "
	    "1:commit 50; ");
	fakes_expect("announce 0; ");
	assert_int_equal(fakes.buffer_tag, 1);
	outbox_state(world->outbox, &st);
	assert_memory_equal(st.collector_id, COLLECTOR->id, LINK_ID_BYTES);
	assert_int_equal(st.received, 0);
	assert_int_equal(st.last_acked, 2);
	/* Down begins with 1; up goes on. */
	collector_say(COLLECTOR, 1, LINK_DOWN_ORIGIN, "origin");
	collector_say(COLLECTOR, 1, LINK_DOWN_COMMAND, "start");
	commit_block();
	fakes_expect("origin 1 origin; command 1 start; ");
	collector_expect(COLLECTOR, "1:commit 50; ");
	assert_int_equal(COLLECTOR->again, 0);
	/* The next one gets another tag. */
	collector_cut(COLLECTOR);
	memcpy(COLLECTOR->id, "a third collect", LINK_ID_BYTES);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(fakes.buffer_tag, 2);
}

static void
expect_new_link(void)
{
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_false(COLLECTOR->open->moves);
	assert_false(COLLECTOR->open->can_move);
	assert_int_equal(fakes.buffer_tag, 0);
	fakes_expect("lost 0 5; announce 0; ");
}

static void
producers_that_cannot_be_told_begin_anew(void **state)
{
	lose_collector();
	fakes.moves_fail = true;
	COLLECTOR->why = WHY(COLLECTOR_RESTARTED);
	expect_new_link();
}

static void
more_than_a_collector_takes_is_not_told(void **state)
{
	lose_collector();
	fakes.moves = 100;
	fakes.moves_are_long = true;
	COLLECTOR->why = WHY(COLLECTOR_RESTARTED);
	expect_new_link();
	assert_in_range(COLLECTOR->move_bytes, LINK_MOVES_MAX / 2,
	    LINK_MOVES_MAX);
}

static void
what_does_not_fit_the_window_begins_anew(void **state)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	world_commit(1, 60000);
	world_settle();
	world_commit(2, 60000);
	world_settle();
	collector_cut(COLLECTOR);
	another_collector();
	COLLECTOR->window = LINK_BLOCK_MAX;
	COLLECTOR->why = WHY(COLLECTOR_RESTARTED);
	fakes.log[0] = '\0';
	expect_new_link();
}

static void
a_killed_relay_does_not_offer_to_move(void **state)
{
	lose_collector();
	world_settle();
	COLLECTOR->wants_moves = false;
	COLLECTOR->why = WHY(COLLECTOR_RESTARTED);
	fakes.log[0] = '\0';
	world_restart();
	assert_false(COLLECTOR->open->can_move);
}

/* ---- hostile collectors ---- */

static void
expect_failure(const char *why)
{
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	if (strstr(world_view()->last_error, why) == NULL)
		fail_msg("%s", world_view()->last_error);
}

static void
a_collector_that_is_never_told_enough_is_left(void **state)
{
	lose_collector();
	COLLECTOR->why = WHY(MOVES);
	expect_failure("asks for what it was not offered");
}

static void
a_collector_that_was_not_told_cannot_go_on(void **state)
{
	lose_collector();
	COLLECTOR->wants_moves = false;
	expect_failure("was not told");
}

static void
another_tag_than_the_relay_s_is_refused(void **state)
{
	lose_collector();
	COLLECTOR->says_tag = 7;
	expect_failure("was not told");
}

static void
a_move_to_another_block_is_refused(void **state)
{
	lose_collector();
	COLLECTOR->says_received = true;
	COLLECTOR->received = 2;
	expect_failure("where it cannot be");
}

/* ---- leaving ---- */

static void
asked_to_leave(uint32_t settles)
{
	world->settings.move_after_ms = 30000;
	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; ");
	fakes.settles = settles;
	collector_say(COLLECTOR, 0, LINK_DOWN_DRAIN, "");
	world_settle();
	fakes_expect(settles != 0 ? "settle; " : "settle; settle ends; ");
}

static void
expect_at_another(const char *log)
{
	another_collector();
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	collector_expect(COLLECTOR, log);
}

static void
what_producers_flush_arrives_and_the_rest_is_the_next_one_s(void **state)
{
	asked_to_leave(1);
	commit_block();
	world_put(2, LINK_UP_OPEN, "two");
	world_settle();
	/* The channel that flushes goes on, others wait. */
	collector_expect(COLLECTOR, "1:commit 50; ");
	fakes.settle.settled(fakes.settle.arg, 1);
	commit_block();
	collector_expect(COLLECTOR, "0:14 ; ");
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	fakes_expect("settle ends; ");
	expect_at_another("move 0 2; 1:commit 50; 2:2 two; ");
}

static void
without_producers_it_leaves_at_once(void **state)
{
	asked_to_leave(0);
	collector_expect(COLLECTOR, "0:14 ; ");
	assert_int_equal(world_view()->state, UPLINK_WAITING);
}

static void
a_collector_that_was_left_just_now_is_not_left_again(void **state)
{
	asked_to_leave(0);
	collector_expect(COLLECTOR, "0:14 ; ");
	world_pass(300); /* none but it answers */
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("announce 0; ");
	collector_say(COLLECTOR, 0, LINK_DOWN_DRAIN, "");
	world_settle();
	fakes_expect("");
	world_pass(30000);
	collector_say(COLLECTOR, 0, LINK_DOWN_DRAIN, "");
	world_settle();
	fakes_expect("settle; settle ends; ");
}

/* All of a fleet drain, and each has just taken the relay in. */
static void
a_relay_does_not_go_round_for_ever(void **state)
{
	int i;

	asked_to_leave(0);
	another_collector();
	for (i = 0; i < 10; i++) {
		COLLECTOR->id[0] = (char)('a' + i);
		world_pass(300);
		assert_int_equal(world_view()->state, UPLINK_LINKED);
		collector_say(COLLECTOR, 0, LINK_DOWN_DRAIN, "");
		world_settle();
		if (world_view()->state == UPLINK_LINKED)
			break;
	}
	assert_int_equal(i, 3);
	fakes.log[0] = '\0';
	world_pass(30000);
	collector_say(COLLECTOR, 0, LINK_DOWN_DRAIN, "");
	world_settle();
	fakes_expect("settle; settle ends; ");
}

static void
who_does_not_flush_is_not_waited_for_long(void **state)
{
	asked_to_leave(1);
	world_pass(4000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	world_pass(1000);
	collector_expect(COLLECTOR, "0:14 ; ");
	assert_int_equal(world_view()->state, UPLINK_WAITING);
}

static void
a_cut_ends_it_and_what_was_held_goes_on(void **state)
{
	asked_to_leave(1);
	world_put(2, LINK_UP_OPEN, "two");
	world_settle();
	collector_expect(COLLECTOR, "");
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("settle ends; announce 0; ");
	collector_expect(COLLECTOR, "2:2 two; ");
}

static void
a_relay_that_stops_meanwhile_sends_what_it_held(void **state)
{
	asked_to_leave(1);
	world_put(2, LINK_UP_OPEN, "two");
	world_settle();
	world_stop(60000);
	world_settle();
	collector_expect(COLLECTOR, "2:2 two; ");
	assert_int_equal(world->stopped, 1);
	fakes_expect("settle ends; ");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
		T(a_link_goes_on_at_another_collector),
		T(producers_that_cannot_be_told_begin_anew),
		T(more_than_a_collector_takes_is_not_told),
		T(what_does_not_fit_the_window_begins_anew),
		T(a_killed_relay_does_not_offer_to_move),
		T(a_collector_that_is_never_told_enough_is_left),
		T(a_collector_that_was_not_told_cannot_go_on),
		T(another_tag_than_the_relay_s_is_refused),
		T(a_move_to_another_block_is_refused),
		T(what_producers_flush_arrives_and_the_rest_is_the_next_one_s),
		T(without_producers_it_leaves_at_once),
		T(a_collector_that_was_left_just_now_is_not_left_again),
		T(a_relay_does_not_go_round_for_ever),
		T(who_does_not_flush_is_not_waited_for_long),
		T(a_cut_ends_it_and_what_was_held_goes_on),
		T(a_relay_that_stops_meanwhile_sends_what_it_held),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
