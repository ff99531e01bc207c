#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "service/machine/machine.h"
#include "service/machine/machine_clock.h"
#include "transport/link/link_clock.h"

#define SECOND   INT64_C(1000000000)
#define REALTIME INT64_C(1795226490000000000)

static struct machine m;
static const char *why;

/* How far the machine's clocks are ahead of ours, by their ids. */
static int64_t ahead[7];

static const uint32_t ids[CLOCK_SNAPSHOT_N] = { 6, 2, 4, 1, 3, 5 };

static int
setup(void **state)
{
	static const int64_t by[7] = { 0, 5 * SECOND + 1, 5 * SECOND + 2,
		-17 * SECOND, -17 * SECOND + 3, 91, 3600 * SECOND };

	memset(&m, 0, sizeof(m));
	m.id = 7;
	memcpy(ahead, by, sizeof(ahead));
	why = NULL;
	return 0;
}

static int
teardown(void **state)
{
	machine_done(&m);
	return 0;
}

/* Our clocks, and the machine's, at the time t. */
static struct clock_snapshot
host_at(int64_t t)
{
	struct clock_snapshot s = { .tsc = (uint64_t)(t + 7 * SECOND) };
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		s.clocks[i].id = ids[i];
		s.clocks[i].ns = (uint64_t)(t + 100 * SECOND +
		    (ids[i] < 3 ? REALTIME : ids[i]));
	}
	return s;
}

static struct clock_snapshot
client_at(int64_t t)
{
	struct clock_snapshot s = host_at(t);
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		s.clocks[i].ns += (uint64_t)ahead[ids[i]];
	return s;
}

/* A link's exchange: sent at t, taken by us `up` later, back after `down`. */
static int
result(int64_t t, int64_t up, int64_t down)
{
	struct link_clock c = {
		.kind = LINK_CLOCK_RESULT,
		.before = client_at(t),
		.host = host_at(t + up),
		.after = client_at(t + up + down),
		.round_trip_ns = (uint64_t)(up + down),
	};
	struct clock_snapshot now = host_at(t + 2 * up + down);

	return machine_clock_take(&m, &c, &now, &why);
}

static struct machine_clock_sample
sample(int64_t client, int64_t host)
{
	struct clock_snapshot c = client_at(client);
	struct machine_clock_sample s;

	s.n_client = clock_snapshot_list(&c, s.client);
	s.host = host_at(host);
	return s;
}

/* A RelayPort's: PING took `ping`, its reply `down`, UPDATE `update`. */
static int
exchange(int64_t t, int64_t ping, int64_t down, int64_t update)
{
	struct machine_clock_sample p = sample(t, t + ping);
	struct machine_clock_sample u = sample(t + ping + down,
	    t + ping + down + update);

	return machine_clock_take_exchange(&m, &p, &u, &why);
}

static uint64_t
find(const Perfetto__Protos__ClockSnapshot *s, uint32_t id)
{
	size_t i;

	for (i = 0; i < s->n_clocks; i++)
		if (s->clocks[i]->clock_id == id)
			return s->clocks[i]->timestamp;
	return 0;
}

/*
 * What a trace importer makes of a packet: client minus host, the mean of what
 * both round trips say.  False: the clock is not in it.  client: the machine's
 * two readings.
 */
static bool
imported_from(const uint8_t *data, size_t len, uint32_t id, int64_t *offset,
    uint64_t client[2])
{
	Perfetto__Protos__RemoteClockSync *sync;
	Perfetto__Protos__TracePacket *p;
	uint64_t c1, h1, c2, h2;

	p = perfetto__protos__trace_packet__unpack(NULL, len, data);
	assert_non_null(p);
	assert_int_equal(p->machine_id, 7);
	sync = p->remote_clock_sync;
	assert_int_equal(sync->n_synced_clocks, 2);
	c1 = find(sync->synced_clocks[0]->client_clocks, id);
	h1 = find(sync->synced_clocks[0]->host_clocks, id);
	c2 = find(sync->synced_clocks[1]->client_clocks, id);
	h2 = find(sync->synced_clocks[1]->host_clocks, id);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
	client[0] = c1;
	client[1] = c2;
	if (c1 == 0 || h1 == 0 || c2 == 0 || h2 == 0)
		return false;
	*offset = ((int64_t)(c1 + c2) / 2 - (int64_t)h1 + (int64_t)c2 -
	    (int64_t)(h1 + h2) / 2) / 2;
	return true;
}

/*
 * As above, of the exchange in traces; where it is repeated, it says the same,
 * and no reading is older than the last.
 */
static bool
imported(uint32_t id, int64_t *offset)
{
	uint64_t first[2], again[2];
	int64_t same;

	if (!imported_from(m.clock_sync, m.clock_sync_len, id, offset, first))
		return false;
	assert_true(imported_from(m.clock_repeat, m.clock_repeat_len, id,
	    &same, again));
	assert_int_equal(same, *offset);
	assert_int_equal(again[0], first[1]);
	assert_int_equal(again[1], first[1]);
	return true;
}

static void
expect_near(int64_t value, int64_t wanted, int64_t by)
{
	if (llabs(value - wanted) > by)
		fail_msg("%lld is not within %lld of %lld", (long long)value,
		    (long long)by, (long long)wanted);
}

/* All clocks of the packet say that the exchange was off by `off`. */
static void
expect_import(int64_t off)
{
	int64_t offset;
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		assert_true(imported(ids[i], &offset));
		expect_near(offset - ahead[ids[i]], off, 2);
	}
	expect_near(m.clock.offset_ns - ahead[CLOCK_ID_BOOTTIME], off, 1);
}

static void
an_importer_reckons_what_people_see(void **state)
{
	assert_int_equal(result(0, 3000, 3000), 0);
	assert_true(m.clock.known);
	assert_int_equal(m.clock.uncertainty_ns, 3000);
	assert_int_equal(m.clock.round_trip_ns, 6000);
	expect_import(0);
	assert_int_equal(m.clock_sync_generation, 1);
}

static void
ticks_of_the_machine_are_told_without_ours_beside_them(void **state)
{
	Perfetto__Protos__TracePacket *p;
	Perfetto__Protos__RemoteClockSync__SyncedClocks *last;
	int64_t offset;

	assert_int_equal(result(0, 3000, 3000), 0);
	assert_false(imported(CLOCK_ID_TSC, &offset));
	p = perfetto__protos__trace_packet__unpack(NULL, m.clock_sync_len,
	    m.clock_sync);
	assert_non_null(p);
	last = p->remote_clock_sync->synced_clocks[1];
	assert_int_equal(find(last->client_clocks, CLOCK_ID_TSC),
	    client_at(6000).tsc);
	assert_int_equal(find(last->host_clocks, CLOCK_ID_TSC), 0);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

static void
an_uneven_way_is_off_by_half_the_difference(void **state)
{
	assert_int_equal(result(0, 20000, 4000), 0);
	assert_int_equal(m.clock.uncertainty_ns, 12000);
	expect_import(-8000);
}

static void
a_clock_far_behind_is_no_matter(void **state)
{
	size_t i;

	for (i = 0; i < 7; i++)
		ahead[i] = i < 3 ? -REALTIME : -99 * SECOND;
	assert_int_equal(result(0, 5000, 5000), 0);
	expect_import(0);
}

static void
a_crowded_network_takes_nothing_away(void **state)
{
	assert_int_equal(result(0, 10000, 10000), 0);
	/* half a second late one way, a second later */
	assert_int_equal(result(SECOND, 500000000, 200000), 0);
	expect_near(m.clock.offset_ns, ahead[6], 10000 + 100000);
	assert_true(m.clock.uncertainty_ns <= 10000 + 200000);
	assert_int_equal(m.clock_sync_generation, 1);
	/* Nor where it comes into the trace again. */
	assert_int_equal(result(30 * SECOND, 500000000, 10000), 0);
	assert_int_equal(m.clock_sync_generation, 2);
	assert_true(m.clock.uncertainty_ns < 4000000);
	expect_import(m.clock.offset_ns - ahead[6]);
	expect_near(m.clock.offset_ns, ahead[6], 3100000);
}

static void
a_better_exchange_is_written_and_a_worse_one_after_a_while(void **state)
{
	assert_int_equal(result(0, 100000, 100000), 0);
	assert_int_equal(result(1000, 100000, 100000), 0);
	assert_int_equal(m.clock_sync_generation, 1);
	assert_int_equal(result(2000, 20000, 20000), 0);
	assert_int_equal(m.clock_sync_generation, 2);
	/* by then the drift is more than that */
	assert_int_equal(result(10 * SECOND, 100000, 100000), 0);
	assert_int_equal(m.clock_sync_generation, 3);
	assert_int_equal(result(15 * SECOND, 5000000, 5000000), 0);
	assert_int_equal(m.clock_sync_generation, 3);
	assert_int_equal(result(31 * SECOND, 5000000, 5000000), 0);
	assert_int_equal(m.clock_sync_generation, 4);
}

static void
a_clock_that_jumped_is_believed_at_once(void **state)
{
	assert_int_equal(result(0, 10000, 10000), 0);
	ahead[6] += 3 * SECOND;
	assert_int_equal(result(SECOND, 40000, 60000), 0);
	assert_int_equal(m.clock_sync_generation, 2);
	expect_import(10000);
	assert_int_equal(m.clock.uncertainty_ns, 50000);
}

static void
clocks_that_were_set_against_each_other_are_written_at_once(void **state)
{
	assert_int_equal(result(0, 10000, 10000), 0);
	assert_int_equal(result(SECOND / 100, 20000, 20000), 0);
	assert_int_equal(m.clock_sync_generation, 1);
	ahead[CLOCK_ID_REALTIME] += 2000000;
	assert_int_equal(result(SECOND / 50, 20000, 20000), 0);
	assert_int_equal(m.clock_sync_generation, 2);
}

static void
after_a_sleep_the_first_exchange_says_how_far_it_may_be_off(void **state)
{
	assert_int_equal(result(0, 10000, 10000), 0);
	ahead[CLOCK_ID_MONOTONIC] -= 2 * SECOND;
	ahead[6] += SECOND / 5;
	/* So slow that it permits what was so before. */
	assert_int_equal(result(SECOND, 600000000, 10000), 0);
	assert_int_equal(m.clock.uncertainty_ns, 300005000);
	assert_int_equal(m.clock_sync_generation, 2);
}

static void
what_was_so_before_a_machine_slept_is_kept(void **state)
{
	uint64_t before;
	int i;

	assert_int_equal(result(0, 10000, 10000), 0);
	assert_int_equal(result(30 * SECOND, 10000, 10000), 0);
	assert_int_equal(m.n_past_clocks, 0);
	for (i = 1; i < 20; i++) {
		before = m.clock_sync_generation;
		ahead[CLOCK_ID_MONOTONIC] -= 60 * SECOND;
		assert_int_equal(result((30 + i) * SECOND, 10000, 10000), 0);
		assert_int_equal(m.clock_sync_generation, before + 1);
		assert_int_equal(m.n_past_clocks, i < 8 ? i : 8);
		assert_int_equal(m.past_clocks[m.n_past_clocks - 1].generation,
		    before);
	}
}

static void
a_realtime_that_was_set_meanwhile_is_left_out_where_it_means_nothing(
    void **state)
{
	struct link_clock c = {
		.kind = LINK_CLOCK_RESULT,
		.before = client_at(0),
		.host = host_at(10),
		.after = client_at(20),
	};
	struct clock_snapshot now = host_at(30);
	int64_t offset;

	c.host.clocks[3].ns = 10; /* the host's was set, to the first of it */
	c.after.clocks[3].ns = 5; /* and the machine's far back */
	assert_int_equal(machine_clock_take(&m, &c, &now, &why), 0);
	assert_false(imported(CLOCK_ID_REALTIME, &offset));
	assert_true(imported(CLOCK_ID_BOOTTIME, &offset));
	expect_near(offset, ahead[6], 1);
}

static void
what_cannot_be_is_refused_with_a_sentence(void **state)
{
	struct link_clock c = {
		.kind = LINK_CLOCK_RESULT,
		.before = client_at(0),
		.host = host_at(10),
		.after = client_at(20),
	};
	struct clock_snapshot now = host_at(9);

	assert_int_equal(machine_clock_take(&m, &c, &now, &why), -1);
	assert_non_null(strstr(why, "future"));
	now = host_at(10 + 60 * SECOND);
	assert_int_equal(machine_clock_take(&m, &c, &now, &why), 0);
	now = host_at(11 + 60 * SECOND);
	assert_int_equal(machine_clock_take(&m, &c, &now, &why), -1);
	assert_non_null(strstr(why, "old"));
	assert_int_equal(m.clock_sync_generation, 1);
	now = host_at(30);
	c.after = client_at(10 * SECOND + 1);
	assert_int_equal(machine_clock_take(&m, &c, &now, &why), -1);
	assert_non_null(strstr(why, "long"));
	c.before.clocks[0].ns = INT64_MAX - 1;
	c.after.clocks[0].ns = INT64_MAX;
	assert_int_equal(machine_clock_take(&m, &c, &now, &why), -1);
	assert_non_null(strstr(why, "absurd"));
	assert_int_equal(m.clock_sync_generation, 1);
}

static void
of_a_relays_two_round_trips_the_shorter_one_counts(void **state)
{
	/* the PING was late */
	assert_int_equal(exchange(0, 30000000, 2000, 2000), 0);
	assert_int_equal(m.clock.uncertainty_ns, 2000);
	assert_int_equal(m.clock.round_trip_ns, 4000);
	expect_import(0);
	/* the UPDATE was, and nothing is known before */
	m.clock.known = m.clock.fit.known = m.clock.written.known = false;
	assert_int_equal(exchange(SECOND, 2000, 4000, 30000000), 0);
	assert_int_equal(m.clock.round_trip_ns, 6000);
	expect_import(1000);
	assert_int_equal(m.clock_sync_generation, 2);
}

static void
the_exchanges_of_a_burst_are_laid_over_each_other(void **state)
{
	/* Each way is short once, but never both. */
	assert_int_equal(exchange(0, 1000, 9000000, 9000000), 0);
	assert_int_equal(exchange(50000000, 9000000, 1000, 9000000), 0);
	assert_true(m.clock.uncertainty_ns <= 1000 + 10000);
	expect_near(m.clock.offset_ns, ahead[6], 11000);
	expect_import(m.clock.offset_ns - ahead[6]);
}

static void
clocks_that_one_side_does_not_have_are_the_machines_own(void **state)
{
	struct machine_clock_sample p = sample(0, 30000000);
	struct machine_clock_sample u = sample(30000100, 30000200);
	Perfetto__Protos__TracePacket *packet;
	int64_t offset;

	p.client[p.n_client++] = (struct clock_reading){ 10, 12345 };
	u.client[u.n_client++] = (struct clock_reading){ 10, 23456 };
	assert_int_equal(machine_clock_take_exchange(&m, &p, &u, &why), 0);
	assert_false(imported(10, &offset));
	packet = perfetto__protos__trace_packet__unpack(NULL, m.clock_sync_len,
	    m.clock_sync);
	assert_non_null(packet);
	/* In the first they would have no time that belongs to the others. */
	assert_int_equal(find(packet->remote_clock_sync->synced_clocks[0]->
	    client_clocks, 10), 0);
	assert_int_equal(find(packet->remote_clock_sync->synced_clocks[1]->
	    client_clocks, 10), 23456);
	perfetto__protos__trace_packet__free_unpacked(packet, NULL);
	expect_import(m.clock.offset_ns - ahead[6]);
}

static void
a_relay_without_boottime_is_taken_at_its_word(void **state)
{
	struct machine_clock_sample p = sample(0, 100);
	struct machine_clock_sample u = sample(200, 300);
	int64_t offset;

	p.client[0] = p.client[4];
	u.client[0] = u.client[4];
	p.n_client = u.n_client = 1;
	assert_int_equal(machine_clock_take_exchange(&m, &p, &u, &why), 0);
	assert_false(m.clock.known);
	assert_true(imported(CLOCK_ID_MONOTONIC, &offset));
	expect_near(offset, ahead[CLOCK_ID_MONOTONIC], 2);
}

/* ---- thousands of schedules ---- */

static uint64_t seed;

static int64_t
chance(int64_t from, int64_t to)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return from + (int64_t)(seed % (uint64_t)(to - from + 1));
}

/* One way of 20 ms +- 10 ms, each on its own. */
static int64_t
delay(void)
{
	return chance(10000000, 30000000);
}

static void
check_truth(int64_t shortest)
{
	int64_t offset;

	expect_near(m.clock.offset_ns, ahead[6],
	    (int64_t)m.clock.uncertainty_ns);
	expect_near(m.clock.offset_ns, ahead[6], shortest / 2 + 1);
	assert_true(imported(CLOCK_ID_BOOTTIME, &offset));
	/* The packet is of the last exchange that was worth it. */
	expect_near(offset, ahead[6], shortest / 2 + shortest / 8);
}

static void
no_schedule_leads_it_astray(void **state)
{
	int64_t t, up, down, update, trip, shortest;
	int i, j, n;

	for (i = 0; i < 5000; i++) {
		seed = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1);
		teardown(NULL);
		setup(NULL);
		for (j = 1; j < 7; j++)
			ahead[j] = chance(-99 * SECOND, 1000000 * SECOND);
		t = 0;
		shortest = INT64_MAX;
		n = (int)chance(1, 16);
		for (j = 0; j < n; j++) {
			up = delay();
			down = delay();
			update = delay();
			trip = up + down;
			if (i % 2 == 0) {
				assert_int_equal(result(t, up, down), 0);
			} else {
				assert_int_equal(exchange(t, up, down,
				    update), 0);
				if (down + update < trip)
					trip = down + update;
			}
			if (trip < shortest)
				shortest = trip;
			check_truth(shortest);
			t += up + down + update;
		}
	}
}

static void
clocks_that_drift_stay_within_what_is_said(void **state)
{
	int64_t t, up, down, start, offset;
	int i, j;

	for (i = 0; i < 500; i++) {
		seed = 0x2545f4914f6cdd1dull * (uint64_t)(i + 1);
		teardown(NULL);
		setup(NULL);
		start = ahead[6];
		for (j = 0, t = 0; j < 100; j++) {
			up = chance(0, 3) == 0 ? chance(0, 400000000) :
			    delay();
			down = delay();
			/* 90 ppm, of both directions */
			ahead[6] = start + t / 1000000 * (i % 2 ? 90 : -90);
			assert_int_equal(result(t, up, down), 0);
			expect_near(m.clock.offset_ns, ahead[6],
			    (int64_t)m.clock.uncertainty_ns);
			expect_near(m.clock.offset_ns, ahead[6],
			    (up + down) / 2 + 1);
			assert_true(imported(CLOCK_ID_BOOTTIME, &offset));
			expect_near(offset, m.clock.offset_ns, 2);
			t += 30 * SECOND + chance(0, SECOND);
		}
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_importer_reckons_what_people_see),
		CASE(
		    ticks_of_the_machine_are_told_without_ours_beside_them),
		CASE(an_uneven_way_is_off_by_half_the_difference),
		CASE(a_clock_far_behind_is_no_matter),
		CASE(a_crowded_network_takes_nothing_away),
		CASE(a_better_exchange_is_written_and_a_worse_one_after_a_while),
		CASE(a_clock_that_jumped_is_believed_at_once),
		CASE(clocks_that_were_set_against_each_other_are_written_at_once),
		CASE(after_a_sleep_the_first_exchange_says_how_far_it_may_be_off),
		CASE(what_was_so_before_a_machine_slept_is_kept),
		CASE(a_realtime_that_was_set_meanwhile_is_left_out_where_it_means_nothing),
		CASE(what_cannot_be_is_refused_with_a_sentence),
		CASE(of_a_relays_two_round_trips_the_shorter_one_counts),
		CASE(the_exchanges_of_a_burst_are_laid_over_each_other),
		CASE(clocks_that_one_side_does_not_have_are_the_machines_own),
		CASE(a_relay_without_boottime_is_taken_at_its_word),
		CASE(no_schedule_leads_it_astray),
		CASE(clocks_that_drift_stay_within_what_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
