#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "relay/uplink/choice.h"

#define MOVE_AFTER 30000u
#define MIN_RETRY  200u
#define MAX_RETRY  15000u
/* No jitter of the backoff, all of it for a move; and the other way round. */
#define NO_CHANCE  0u
#define ALL_CHANCE UINT32_MAX

static const char *const names[] = { "tls://c1:7443", "tls://c2:7443",
	"tls://c3:7443", "tls://c4:7443", "tls://c5:7443" };
static struct choice c;
static uint64_t now;

static void
begin(struct choice *of, const char *machine, size_t n)
{
	const struct choice_times times = { MOVE_AFTER, MIN_RETRY, MAX_RETRY };
	char err[256];

	if (choice_init(of, machine, names, n, &times, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static int
setup(void **state)
{
	now = 1000000;
	begin(&c, "kiosk-7", 3);
	return 0;
}

/* An attempt has ended; the rank that is next, and the pause before it. */
static void
fails(size_t next, uint64_t pause)
{
	uint64_t ms = choice_ended(&c, false, now, NO_CHANCE);

	assert_int_equal(ms, pause);
	assert_int_equal(c.at, next);
	now += ms;
}

static void
links(size_t rank)
{
	assert_int_equal(c.at, rank);
	choice_linked(&c, now);
	assert_int_equal(c.own, rank);
}

/* A link that was of use is cut; it is tried again after the first pause. */
static void
is_cut(uint32_t random)
{
	size_t at = c.at;
	uint64_t ms = choice_ended(&c, true, now, random);

	assert_int_equal(ms, random == NO_CHANCE ? MIN_RETRY : MIN_RETRY / 2);
	assert_int_equal(c.at, at);
	now += ms;
}

/* All attempts fail until the collector has been gone for too long. */
static void
fails_until(uint64_t when, size_t next)
{
	size_t own = c.at;

	while (now < when) {
		now += choice_ended(&c, false, now, NO_CHANCE);
		assert_int_equal(c.at, own);
	}
	assert_int_equal(now, when);
	fails(next, 0);
}

/* Linked to its third choice, as the first two did not answer at the start. */
static void
link_to_the_last(void)
{
	fails(1, 0);
	fails(2, 0);
	links(2);
}

/* ---- placement ---- */

static void
home_is_where_placement_says(void **state)
{
	size_t order[3], i;
	char err[256];

	assert_int_equal(placement_order("kiosk-7", names, 3, order, err,
	    sizeof(err)), 0);
	assert_int_equal(choice_home(&c), order[0]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(choice_place(&c), order[i]);
		(void)choice_ended(&c, false, now, NO_CHANCE);
	}
	assert_int_equal(choice_place(&c), order[0]);
}

static void
a_list_that_cannot_be_is_refused(void **state)
{
	const char *const twice[] = { "/a", "/a" };
	char err[256];

	assert_int_equal(choice_init(&c, "m", twice, 2, &c.times, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "/a is named twice"));
}

/* ---- the start ---- */

static void
at_the_start_each_is_tried_once_and_then_it_waits(void **state)
{
	int round;

	for (round = 0; round < 4; round++) {
		fails(1, 0);
		fails(2, 0);
		fails(0, MIN_RETRY << round);
	}
	links(0);
	assert_int_equal(c.why, CHOICE_HOME);
	assert_int_equal(c.moves, 0);
}

static void
who_answers_at_the_start_is_its_collector(void **state)
{
	link_to_the_last();
	assert_int_equal(c.why, CHOICE_HOME_DOWN);
	assert_int_equal(c.moves, 0);
	assert_false(choice_wants_home(&c));
}

static void
an_attempt_takes_less_time_while_there_are_others(void **state)
{
	size_t i;

	assert_int_equal(choice_patience_ms(&c), 10000);
	for (i = 0; i < 3; i++)
		(void)choice_ended(&c, false, now, NO_CHANCE);
	assert_int_equal(choice_patience_ms(&c), 20000);
	for (i = 0; i < 30; i++)
		(void)choice_ended(&c, false, now, NO_CHANCE);
	assert_int_equal(choice_patience_ms(&c), 40000);
	links(0);
	assert_int_equal(choice_patience_ms(&c), 10000);
	begin(&c, "kiosk-7", 1);
	assert_int_equal(choice_patience_ms(&c), 40000);
}

/* ---- cuts ---- */

static void
after_a_cut_its_own_collector_is_tried_until_it_is_gone(void **state)
{
	uint64_t cut_ms;

	links(0);
	cut_ms = now;
	is_cut(NO_CHANCE);
	fails(0, 400);
	fails(0, 800);
	fails_until(cut_ms + MOVE_AFTER, 1);
	links(1);
	assert_int_equal(c.why, CHOICE_GONE);
	assert_int_equal(c.moves, 1);
	assert_int_equal(c.moved_ms, now);
	/* It has just seen that nobody is at home. */
	assert_false(choice_wants_home(&c));
}

static void
chance_doubles_that_time_at_most(void **state)
{
	uint64_t cut_ms;

	links(0);
	cut_ms = now;
	is_cut(ALL_CHANCE);
	fails_until(cut_ms + 2 * MOVE_AFTER, 1);
}

static void
a_collector_that_comes_back_in_time_keeps_it(void **state)
{
	int i;

	links(0);
	for (i = 0; i < 10; i++) {
		is_cut(NO_CHANCE);
		now += MOVE_AFTER - MIN_RETRY - 1;
		fails(0, 1); /* its last chance */
		links(0);
	}
	assert_int_equal(c.moves, 0);
}

static void
rounds_begin_with_its_own_and_pauses_grow_once_per_round(void **state)
{
	link_to_the_last();
	is_cut(NO_CHANCE);
	now += MOVE_AFTER;
	fails(0, 0);
	fails(1, 0);
	fails(2, 2 * MIN_RETRY);
	fails(0, 0);
	fails(1, 0);
	fails(2, 4 * MIN_RETRY);
	fails(0, 0);
	links(0);
	assert_int_equal(c.why, CHOICE_GONE);
}

static void
links_of_no_use_do_not_shorten_the_pauses(void **state)
{
	uint64_t pause = MIN_RETRY;
	int i;

	links(0);
	for (i = 0; i < 12; i++) {
		fails(0, pause < MAX_RETRY ? pause : MAX_RETRY);
		links(0);
		pause *= 2;
	}
}

static void
a_single_collector_is_tried_for_ever(void **state)
{
	uint64_t pause = MIN_RETRY;
	int i;

	begin(&c, "kiosk-7", 1);
	links(0);
	is_cut(NO_CHANCE);
	for (i = 0; i < 100; i++) {
		pause = pause * 2 < MAX_RETRY ? pause * 2 : MAX_RETRY;
		fails(0, pause);
	}
	assert_int_equal(c.moves, 0);
	links(0);
	assert_false(choice_leave(&c, CHOICE_ASKED));
	assert_true(c.linked);
}

/* ---- leaving ---- */

static void
who_is_asked_to_leave_goes_to_the_first_that_answers(void **state)
{
	links(0);
	assert_true(choice_leave(&c, CHOICE_ASKED));
	assert_int_equal(c.at, 1);
	fails(2, 0);
	links(2);
	assert_int_equal(c.why, CHOICE_ASKED);
	assert_int_equal(c.moves, 1);
	/* The way back begins with home. */
	assert_true(choice_leave(&c, CHOICE_ASKED));
	links(0);
	/* It is over: a cut is a cut. */
	is_cut(NO_CHANCE);
	fails(0, 2 * MIN_RETRY);
}

static void
who_finds_no_other_comes_back_and_stays(void **state)
{
	uint64_t back_ms;

	links(0);
	assert_true(choice_leave(&c, CHOICE_ASKED));
	fails(1 + 1, 0);
	back_ms = now;
	fails(0, 0);
	/* It answers no more either: then it is as after a cut. */
	fails_until(back_ms + MOVE_AFTER, 1);
	fails(2, 0);
	assert_int_equal(choice_ended(&c, false, now, ALL_CHANCE) > 0, 1);
	links(0);
	assert_int_equal(c.moves, 0);
	assert_false(choice_wants_home(&c));
}

static void
only_who_is_linked_can_leave(void **state)
{
	assert_false(choice_leave(&c, CHOICE_ASKED));
	links(0);
	is_cut(NO_CHANCE);
	assert_false(choice_leave(&c, CHOICE_ASKED));
	links(0);
	assert_true(choice_leave(&c, CHOICE_ASKED));
	assert_false(choice_leave(&c, CHOICE_ASKED));
}

/* ---- home ---- */

static void
it_wants_home_when_it_is_linked_again_elsewhere(void **state)
{
	link_to_the_last();
	assert_false(choice_wants_home(&c));
	is_cut(NO_CHANCE);
	assert_false(choice_wants_home(&c));
	links(2);
	assert_true(choice_wants_home(&c));
	assert_true(choice_leave(&c, CHOICE_HOMEWARD));
	links(0);
	assert_int_equal(c.why, CHOICE_HOMEWARD);
	is_cut(NO_CHANCE);
	links(0);
	assert_false(choice_wants_home(&c));
	assert_false(choice_leave(&c, CHOICE_HOMEWARD));
}

static void
it_does_not_go_further_away_to_be_nearer_to_home(void **state)
{
	fails(1, 0);
	links(1);
	is_cut(NO_CHANCE);
	links(1);
	assert_true(choice_leave(&c, CHOICE_HOMEWARD));
	assert_int_equal(c.at, 0);
	/* Not to the third, which would answer. */
	fails(1, 0);
	links(1);
	assert_int_equal(c.moves, 0);
}

static void
it_tries_once_for_each_cut(void **state)
{
	link_to_the_last();
	is_cut(NO_CHANCE);
	links(2);
	assert_true(choice_leave(&c, CHOICE_HOMEWARD));
	fails(1, 0);
	fails(2, 0);
	links(2);
	assert_false(choice_wants_home(&c));
	is_cut(NO_CHANCE);
	links(2);
	assert_true(choice_wants_home(&c));
	assert_true(choice_leave(&c, CHOICE_HOMEWARD));
	fails(1, 0);
	links(1);
	assert_int_equal(c.why, CHOICE_HOMEWARD);
}

/* ---- a fleet ---- */

#define DEVICES    1000
#define COLLECTORS 5u
#define SECOND     1000u

struct device {
	struct choice choice;
	bool linked;
	uint64_t next_ms; /* the next attempt */
};

static struct device fleet[DEVICES];
static bool alive[COLLECTORS];
static uint32_t dice = 1;

static uint32_t
chance(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 17;
	dice ^= dice << 5;
	return dice;
}

static void
device_cut(struct device *d)
{
	d->linked = false;
	d->next_ms = now + choice_ended(&d->choice, true, now, chance());
}

/* Every attempt that is due until then: refused or taken at once. */
static void
fleet_until(uint64_t end)
{
	struct device *d;
	size_t i;

	for (; now < end; now += 10) {
		for (i = 0; i < DEVICES; i++) {
			d = &fleet[i];
			while (!d->linked && d->next_ms <= now) {
				d->linked = alive[choice_place(&d->choice)];
				if (d->linked)
					choice_linked(&d->choice, now);
				else
					d->next_ms = now + choice_ended(
					    &d->choice, false, now, chance());
			}
		}
	}
}

static void
fleet_begin(void)
{
	char name[32];
	size_t i;

	memset(fleet, 0, sizeof(fleet));
	for (i = 0; i < COLLECTORS; i++)
		alive[i] = true;
	for (i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "device-%zu", i);
		begin(&fleet[i].choice, name, COLLECTORS);
	}
	now = SECOND;
	fleet_until(2 * SECOND);
}

static uint64_t
fleet_moves(void)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < DEVICES; i++)
		n += fleet[i].choice.moves;
	return n;
}

/* The first of its order that lives. */
static size_t
best(const struct device *d)
{
	size_t rank = 0;

	while (!alive[d->choice.order[rank]])
		rank++;
	return rank;
}

/* Kills one: its devices are cut at once. */
static size_t
end_collector(size_t which)
{
	size_t i, n = 0;

	alive[which] = false;
	for (i = 0; i < DEVICES; i++)
		if (fleet[i].linked &&
		    choice_place(&fleet[i].choice) == which) {
			device_cut(&fleet[i]);
			n++;
		}
	return n;
}

static void
nobody_moves_while_its_collector_lives(void **state)
{
	size_t i;

	fleet_begin();
	while (now < 600 * SECOND) {
		for (i = 0; i < DEVICES; i++)
			if (fleet[i].linked && chance() % 100 == 0)
				device_cut(&fleet[i]);
		/* Also one that starts anew, in less than the time to move. */
		i = chance() % COLLECTORS;
		(void)end_collector(i);
		fleet_until(now + chance() % (MOVE_AFTER - 2 * SECOND));
		alive[i] = true;
		fleet_until(now + MAX_RETRY + SECOND);
	}
	for (i = 0; i < DEVICES; i++) {
		assert_true(fleet[i].linked);
		assert_int_equal(fleet[i].choice.at, 0);
	}
	assert_int_equal(fleet_moves(), 0);
}

static void
a_dead_ones_devices_spread_over_others_and_over_time(void **state)
{
	size_t arrived[30] = { 0 }, i, n;
	uint64_t end_ms, at;

	fleet_begin();
	end_ms = now;
	n = end_collector(2);
	assert_in_range(n, DEVICES / COLLECTORS / 2, DEVICES / COLLECTORS * 2);
	fleet_until(end_ms + MOVE_AFTER);
	assert_int_equal(fleet_moves(), 0);
	fleet_until(end_ms + 2 * MOVE_AFTER + SECOND);
	assert_int_equal(fleet_moves(), n);
	for (i = 0; i < DEVICES; i++) {
		assert_true(fleet[i].linked);
		assert_int_equal(fleet[i].choice.at, best(&fleet[i]));
		if (fleet[i].choice.moves == 0)
			continue;
		at = fleet[i].choice.moved_ms - end_ms - MOVE_AFTER;
		arrived[at / SECOND < 30 ? at / SECOND : 29]++;
	}
	/* Seven in each second, on average. */
	for (i = 0; i < 30; i++)
		assert_in_range(arrived[i], 0, 22);
	/* One that comes back gets nobody back by that. */
	alive[2] = true;
	fleet_until(now + 600 * SECOND);
	assert_int_equal(fleet_moves(), n);
}

static void
wherever_collectors_die_all_land_by_placement(void **state)
{
	size_t i, round;

	for (round = 0; round < 10; round++) {
		fleet_begin();
		(void)end_collector(round % COLLECTORS);
		fleet_until(now + chance() % (3 * MOVE_AFTER));
		(void)end_collector((round + 1 + round / COLLECTORS) %
		    COLLECTORS);
		fleet_until(now + 3 * MOVE_AFTER);
		for (i = 0; i < DEVICES; i++) {
			assert_true(fleet[i].linked);
			assert_int_equal(fleet[i].choice.at, best(&fleet[i]));
		}
	}
}

static void
when_all_were_gone_all_are_found_again(void **state)
{
	size_t i;

	fleet_begin();
	for (i = 0; i < COLLECTORS; i++)
		(void)end_collector(i);
	fleet_until(now + 600 * SECOND);
	for (i = 0; i < DEVICES; i++)
		assert_false(fleet[i].linked);
	for (i = 0; i < COLLECTORS; i++)
		alive[i] = true;
	fleet_until(now + MAX_RETRY + SECOND);
	/* Rounds begin with the own collector: nobody had a reason to move. */
	for (i = 0; i < DEVICES; i++)
		assert_true(fleet[i].linked);
	assert_int_equal(fleet_moves(), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(home_is_where_placement_says),
		TEST(a_list_that_cannot_be_is_refused),
		TEST(at_the_start_each_is_tried_once_and_then_it_waits),
		TEST(who_answers_at_the_start_is_its_collector),
		TEST(an_attempt_takes_less_time_while_there_are_others),
		TEST(after_a_cut_its_own_collector_is_tried_until_it_is_gone),
		TEST(chance_doubles_that_time_at_most),
		TEST(a_collector_that_comes_back_in_time_keeps_it),
		TEST(rounds_begin_with_its_own_and_pauses_grow_once_per_round),
		TEST(links_of_no_use_do_not_shorten_the_pauses),
		TEST(a_single_collector_is_tried_for_ever),
		TEST(who_is_asked_to_leave_goes_to_the_first_that_answers),
		TEST(who_finds_no_other_comes_back_and_stays),
		TEST(only_who_is_linked_can_leave),
		TEST(it_wants_home_when_it_is_linked_again_elsewhere),
		TEST(it_does_not_go_further_away_to_be_nearer_to_home),
		TEST(it_tries_once_for_each_cut),
		TEST(nobody_moves_while_its_collector_lives),
		TEST(a_dead_ones_devices_spread_over_others_and_over_time),
		TEST(wherever_collectors_die_all_land_by_placement),
		TEST(when_all_were_gone_all_are_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
