/*
 * A collector and a network without sockets: both clocks are those of a
 * simulated time, which only passes while a message is on its way, so that the
 * truth is known to the nanosecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <cmocka.h>

#include "relay/clocks/link_clocks.h"
#include "tests/unit/transport/link/link_clock_estimate.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/link/link_clock.h"
#include "transport/loop/loop.h"

#define SECOND    INT64_C(1000000000)
#define PERIOD_MS 30
#define WAIT_MS   10000

/* Linked instead of the real one (--wrap). */
void __wrap_clock_snapshot_take(struct clock_snapshot *s);

static struct {
	struct loop *loop;
	struct link_clocks *clocks;
	int64_t now;    /* true time, ns */
	int64_t ahead;  /* our BOOTTIME, of true time */
	int64_t there;  /* the collector's */
	int64_t (*up)(void);
	int64_t (*down)(void);
	bool deaf;      /* the collector answers nothing */
	bool answering; /* now */
	bool hold;      /* PONGs are kept in `held` */
	uint8_t held[LINK_CLOCK_MAX];
	size_t held_len;
	bool pinged;    /* and waits for its answer */
	struct link_clock ping;
	unsigned pings;
	unsigned results;
	struct link_clock result;
	int64_t shortest; /* round trip of this burst */
} f;

static uint64_t seed;

static int64_t
chance(int64_t from, int64_t to)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return from + (int64_t)(seed % (uint64_t)(to - from + 1));
}

static void
read_clocks(struct clock_snapshot *s, int64_t boottime)
{
	static const uint32_t ids[CLOCK_SNAPSHOT_N] = { 6, 2, 4, 1, 3, 5 };
	size_t i;

	s->tsc = 1;
	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		s->clocks[i] = (struct clock_reading){ ids[i],
			(uint64_t)boottime };
}

void
__wrap_clock_snapshot_take(struct clock_snapshot *s)
{
	read_clocks(s, f.now + f.ahead);
}

static void
send_cb(void *arg, const uint8_t *clock, size_t len)
{
	struct link_clock c;

	assert_true(len <= LINK_CLOCK_MAX);
	assert_int_equal(link_clock_parse(&c, clock, len), 0);
	switch (c.kind) {
	case LINK_CLOCK_PING:
		f.pings++;
		f.ping = c;
		f.pinged = true;
		break;
	case LINK_CLOCK_PONG:
		fail();
		break;
	case LINK_CLOCK_RESULT:
		f.results++;
		f.result = c;
		break;
	}
}

static const struct link_clocks_ops ops = { send_cb };

/* The PING travels, is answered, and its PONG comes back. */
static void
answer(void)
{
	struct link_clock pong = { .kind = LINK_CLOCK_PONG, .id = f.ping.id };
	uint8_t out[LINK_CLOCK_MAX];
	int64_t up = f.up(), down = f.down();
	size_t len;

	f.pinged = false;
	f.now += up;
	read_clocks(&pong.host, f.now + f.there);
	f.now += down;
	if (up + down < f.shortest)
		f.shortest = up + down;
	len = link_clock_put(out, &pong);
	if (f.hold) {
		memcpy(f.held, out, len);
		f.held_len = len;
		return;
	}
	link_clocks_take(f.clocks, out, len);
}

static void
answer_all(void)
{
	while (f.pinged && !f.deaf)
		answer();
}

static bool
has_pinged(void)
{
	return f.pinged;
}

static void
wait_until(bool (*cond)(void))
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	while (!cond()) {
		assert_true(loop_now_ms() < end);
		loop_run_once(f.loop);
	}
}

static int64_t
ten_ms(void)
{
	return 10000000;
}

static int64_t
jittery(void)
{
	return chance(10000000, 30000000);
}

static int
setup(void **state)
{
	memset(&f, 0, sizeof(f));
	seed = 88172645463325252ull;
	f.now = 1000 * SECOND;
	f.ahead = 77 * SECOND;
	f.there = 5 * SECOND;
	f.up = f.down = ten_ms;
	f.shortest = INT64_MAX;
	if ((f.loop = loop_new()) == NULL)
		return -1;
	f.clocks = link_clocks_new(f.loop, PERIOD_MS, &ops, NULL);
	return f.clocks == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	link_clocks_free(f.clocks);
	loop_free(f.loop);
	return 0;
}

static struct link_clocks_view
view(void)
{
	struct link_clocks_view v;

	link_clocks_view(f.clocks, &v);
	return v;
}

static void
expect_within(int64_t value, int64_t wanted, int64_t by)
{
	if (llabs(value - wanted) > by)
		fail_msg("%lld is not within %lld of %lld", (long long)value,
		    (long long)by, (long long)wanted);
}

/* What a RESULT alone says of the truth. */
static void
check_result(void)
{
	uint64_t uncertainty;
	int64_t offset;

	link_clock_estimate(&f.result.before, &f.result.host, &f.result.after,
	    &offset, &uncertainty);
	expect_within(offset, f.there - f.ahead, (int64_t)uncertainty);
	assert_int_equal((uncertainty * 2 + 1) / 2,
	    ((uint64_t)f.shortest + 1) / 2);
	assert_int_equal(f.result.round_trip_ns, f.shortest);
}

static void
a_burst_begins_with_the_connection_and_ends_when_trips_are_alike(void **state)
{
	assert_false(view().known);
	link_clocks_start(f.clocks);
	assert_int_equal(f.pings, 1);
	answer_all();
	assert_int_equal(f.pings, 8);
	assert_true(view().known);
	assert_int_equal(view().offset_ns, f.there - f.ahead);
	assert_int_equal(view().round_trip_ns, 20000000);
	check_result();
}

static void
the_first_round_trip_is_told_at_once_and_a_better_one_at_the_end(void **state)
{
	f.up = f.down = jittery;
	link_clocks_start(f.clocks);
	answer();
	assert_int_equal(f.results, 1);
	check_result();
	answer();
	assert_int_equal(f.results, 1);
	answer_all();
	assert_true(f.pings > 2);
	assert_int_equal(f.results, 2);
	check_result();
}

static void
the_best_is_not_told_twice(void **state)
{
	link_clocks_start(f.clocks);
	answer_all();
	assert_int_equal(f.results, 1);
}

static void
every_period_has_a_burst_and_a_result(void **state)
{
	unsigned i;

	link_clocks_start(f.clocks);
	for (i = 1; i < 5; i++) {
		f.shortest = INT64_MAX;
		answer_all();
		assert_int_equal(f.results, i);
		check_result();
		f.now += PERIOD_MS * 1000000;
		f.up = f.down = i % 2 ? jittery : ten_ms;
		wait_until(has_pinged);
	}
}

static int64_t
a_second(void)
{
	return SECOND;
}

static void
a_crowded_network_is_given_more_chances_and_takes_nothing_away(void **state)
{
	link_clocks_start(f.clocks);
	answer_all();
	f.up = a_second;
	f.pings = 0;
	f.shortest = INT64_MAX;
	wait_until(has_pinged);
	answer_all();
	assert_int_equal(f.pings, 32);
	assert_int_equal(f.results, 2);
	check_result();
	expect_within(view().offset_ns, f.there - f.ahead, 14000000);
	assert_true(view().uncertainty_ns < 20000000);
}

static void
an_answer_to_anything_but_the_last_ping_is_ignored(void **state)
{
	uint8_t late[LINK_CLOCK_MAX];
	size_t len;

	link_clocks_start(f.clocks);
	f.hold = true;
	answer();
	memcpy(late, f.held, f.held_len);
	len = f.held_len;
	link_clocks_start(f.clocks); /* connected anew */
	link_clocks_take(f.clocks, late, len);
	assert_false(view().known);
	assert_int_equal(f.results, 0);
	answer();
	link_clocks_take(f.clocks, f.held, f.held_len);
	assert_true(view().known);
	link_clocks_take(f.clocks, f.held, f.held_len);
	assert_int_equal(f.pings, 3);
}

static void
nonsense_from_the_collector_is_ignored(void **state)
{
	struct link_clock c = { .kind = LINK_CLOCK_RESULT };
	uint8_t out[LINK_CLOCK_MAX];
	size_t len;

	link_clocks_take(f.clocks, NULL, 0);
	link_clocks_start(f.clocks);
	link_clocks_take(f.clocks, (const uint8_t *)"\xff\xff", 2);
	c.id = f.ping.id;
	read_clocks(&c.before, 1);
	read_clocks(&c.after, 1);
	read_clocks(&c.host, 1);
	len = link_clock_put(out, &c);
	link_clocks_take(f.clocks, out, len);
	c.kind = LINK_CLOCK_PONG;
	read_clocks(&c.host, INT64_MAX);
	len = link_clock_put(out, &c);
	link_clocks_take(f.clocks, out, len);
	assert_false(view().known);
	assert_int_equal(f.pings, 1);
	answer_all();
	assert_true(view().known);
}

static void
after_a_stop_nothing_is_sent(void **state)
{
	uint64_t end = loop_now_ms() + 2 * PERIOD_MS;

	link_clocks_start(f.clocks);
	f.hold = true;
	answer();
	link_clocks_stop(f.clocks);
	link_clocks_take(f.clocks, f.held, f.held_len);
	while (loop_now_ms() < end)
		loop_run_once(f.loop);
	assert_int_equal(f.pings, 1);
	assert_int_equal(f.results, 0);
	link_clocks_start(f.clocks);
	assert_int_equal(f.pings, 2);
}

static void
stop_from_send(void *arg, const uint8_t *clock, size_t len)
{
	f.pings++;
	if (f.pings == 2)
		link_clocks_stop(f.clocks);
}

static void
sending_may_end_the_connection(void **state)
{
	static const struct link_clocks_ops ending = { stop_from_send };
	struct link_clock pong = { .kind = LINK_CLOCK_PONG, .id = 1 };
	uint8_t out[LINK_CLOCK_MAX];
	size_t len;

	link_clocks_free(f.clocks);
	f.clocks = link_clocks_new(f.loop, PERIOD_MS, &ending, NULL);
	link_clocks_start(f.clocks);
	read_clocks(&pong.host, f.now + f.there);
	len = link_clock_put(out, &pong);
	link_clocks_take(f.clocks, out, len); /* stopped by its first RESULT */
	assert_int_equal(f.pings, 2);
}

static void
another_collector_is_measured_afresh(void **state)
{
	link_clocks_start(f.clocks);
	answer_all();
	link_clocks_stop(f.clocks);
	f.there += 3600 * SECOND;
	link_clocks_start(f.clocks);
	assert_false(view().known);
	answer_all();
	expect_within(view().offset_ns, f.there - f.ahead, 1);
}

/* By a nanosecond, which the kernel announces like anything else. */
static bool
set_the_clock(void)
{
	struct timex t = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	t.time.tv_usec = 1;
	return adjtimex(&t) >= 0;
}

static void
clocks_that_were_set_are_measured_at_once(void **state)
{
	struct link_clocks *c;

	/* An hour: no burst would come by itself. */
	c = link_clocks_new(f.loop, 3600000, &ops, NULL);
	assert_non_null(c);
	link_clocks_free(f.clocks);
	f.clocks = c;
	link_clocks_start(c);
	answer_all();
	assert_int_equal(f.results, 1);
	if (!set_the_clock())
		skip();
	f.ahead += 9 * SECOND;
	wait_until(has_pinged);
	assert_false(view().known);
	answer_all();
	assert_int_equal(f.results, 2);
	expect_within(view().offset_ns, f.there - f.ahead, 1);
}

/* ---- thousands of schedules, each of a connection and some periods ---- */

static void
no_schedule_leads_it_astray(void **state)
{
	struct link_clocks_view v;
	int i;

	f.up = f.down = jittery;
	for (i = 0; i < 5000; i++) {
		seed = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1);
		f.ahead = chance(0, 1000000) * SECOND + chance(0, SECOND);
		f.there = chance(0, 1000000) * SECOND + chance(0, SECOND);
		f.results = f.pings = 0;
		f.shortest = INT64_MAX;
		link_clocks_start(f.clocks);
		answer_all();
		if (f.pings < 8 || f.pings > 16 || f.results == 0 ||
		    f.results > 2)
			fail_msg("seed %d: %u pings, %u results", i, f.pings,
			    f.results);
		check_result();
		v = view();
		expect_within(v.offset_ns, f.there - f.ahead,
		    f.shortest / 2 + 1);
		expect_within(v.offset_ns, f.there - f.ahead,
		    (int64_t)v.uncertainty_ns);
		f.now += SECOND;
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_burst_begins_with_the_connection_and_ends_when_trips_are_alike),
		CASE(the_first_round_trip_is_told_at_once_and_a_better_one_at_the_end),
		CASE(the_best_is_not_told_twice),
		CASE(every_period_has_a_burst_and_a_result),
		CASE(a_crowded_network_is_given_more_chances_and_takes_nothing_away),
		CASE(an_answer_to_anything_but_the_last_ping_is_ignored),
		CASE(nonsense_from_the_collector_is_ignored),
		CASE(after_a_stop_nothing_is_sent),
		CASE(sending_may_end_the_connection),
		CASE(another_collector_is_measured_afresh),
		CASE(clocks_that_were_set_are_measured_at_once),
		CASE(no_schedule_leads_it_astray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
