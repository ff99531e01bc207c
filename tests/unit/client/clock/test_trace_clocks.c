/* trace_clocks: packets as their writers and the service write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/clock/trace_clocks.h"
#include "client/trace/packet_facts.h"
#include "transport/wire/pb_writer.h"

enum { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6 };
/* Fields of TracePacket. */
enum {
	F_SNAPSHOT = 6, F_TIMESTAMP = 8, F_SEQUENCE = 10, F_FLAGS = 13,
	F_DROPPED = 42, F_CLOCK = 58, F_DEFAULTS = 59, F_MACHINE = 98,
	F_REMOTE = 107, F_TESTING = 900,
};

struct reading {
	uint32_t id;
	uint64_t ns;
	bool incremental;
	uint64_t unit;
};

#define AT(id, ns) { (id), (ns), false, 0 }

static struct trace_clocks *clocks;
static struct packet_types types;
static struct pb_writer w;
static struct trace_moment moment;

static int
setup(void **state)
{
	packet_types_init(&types);
	pb_writer_init(&w);
	return (clocks = trace_clocks_new()) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	trace_clocks_free(clocks);
	return 0;
}

static void
begin(uint32_t machine, uint32_t sequence)
{
	pb_writer_reset(&w);
	if (sequence != 0)
		pb_put_uint(&w, F_SEQUENCE, sequence);
	if (machine != 0)
		pb_put_uint(&w, F_MACHINE, machine);
}

static enum trace_time
take(void)
{
	struct packet_facts f;

	assert_false(w.failed);
	assert_true(packet_facts_read(&f, &types, w.data, w.len));
	assert_int_equal(trace_clocks_take(clocks, &f, &moment), 0);
	return moment.result;
}

static void
put_snapshot(uint32_t field, const struct reading *r, size_t n,
    uint32_t primary)
{
	size_t snapshot = pb_nest_begin(&w, field), clock;

	for (; n > 0; r++, n--) {
		clock = pb_nest_begin(&w, 1);
		pb_put_uint(&w, 1, r->id);
		pb_put_uint(&w, 2, r->ns);
		if (r->incremental)
			pb_put_uint(&w, 3, 1);
		if (r->unit != 0)
			pb_put_uint(&w, 4, r->unit);
		pb_nest_end(&w, clock);
	}
	if (primary != 0)
		pb_put_uint(&w, 2, primary);
	pb_nest_end(&w, snapshot);
}

static enum trace_time
snapshot(uint32_t machine, uint32_t sequence, const struct reading *r, size_t n)
{
	begin(machine, sequence);
	put_snapshot(F_SNAPSHOT, r, n, 0);
	return take();
}

/* A packet of the sequence; clock 0: not said. */
static enum trace_time
packet(uint32_t machine, uint32_t sequence, uint32_t clock, uint64_t ns)
{
	begin(machine, sequence);
	pb_put_uint(&w, F_TIMESTAMP, ns);
	if (clock != 0)
		pb_put_uint(&w, F_CLOCK, clock);
	return take();
}

static void
put_default_clock(uint32_t clock)
{
	size_t mark = pb_nest_begin(&w, F_DEFAULTS);

	pb_put_uint(&w, F_CLOCK, clock);
	pb_nest_end(&w, mark);
}

static const struct reading at_start[] = {
	AT(REALTIME, 5000000), AT(MONOTONIC, 1000), AT(BOOTTIME, 2000),
};

static void
times_are_boottime_where_nothing_is_said(void **state)
{
	assert_int_equal(packet(0, 7, 0, 4711), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 4711);
	assert_int_equal(packet(0, 7, MONOTONIC, 1), TRACE_TIME_UNKNOWN);
	begin(0, 7);
	assert_int_equal(take(), TRACE_TIME_NONE);
}

static void
a_snapshot_joins_the_clocks_and_has_a_time_itself(void **state)
{
	assert_int_equal(snapshot(0, 1, at_start, 3), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 2000);
	assert_int_equal(packet(0, 7, MONOTONIC, 1104), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 2104);
	assert_int_equal(packet(0, 7, REALTIME, 5000007), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 2007);
	assert_int_equal(moment.at.clock.id, REALTIME);
	assert_int_equal(moment.at.ns, 5000007);
}

static void
the_primary_clock_is_the_trace_clock(void **state)
{
	begin(0, 1);
	put_snapshot(F_SNAPSHOT, at_start, 3, MONOTONIC);
	assert_int_equal(take(), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 1000);
	assert_int_equal(trace_clocks_trace_clock(clocks).id, MONOTONIC);
	/* Packets that say no clock mean it, too. */
	packet(0, 7, 0, 1500);
	assert_int_equal(moment.at.clock.id, MONOTONIC);
	assert_int_equal(moment.ns, 1500);
	packet(0, 7, BOOTTIME, 2500);
	assert_int_equal(moment.ns, 1500);
	/* It stays. */
	begin(0, 1);
	put_snapshot(F_SNAPSHOT, at_start, 3, BOOTTIME);
	take();
	assert_int_equal(trace_clocks_trace_clock(clocks).id, MONOTONIC);
}

static void
a_default_clock_holds_until_the_state_is_cleared(void **state)
{
	snapshot(0, 1, at_start, 3);
	begin(0, 7);
	put_default_clock(MONOTONIC);
	pb_put_uint(&w, F_TIMESTAMP, 1100);
	assert_int_equal(take(), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 2100);
	packet(0, 7, 0, 1200);
	assert_int_equal(moment.ns, 2200);
	/* Another sequence, and a packet that says otherwise, are not meant. */
	packet(0, 8, 0, 1200);
	assert_int_equal(moment.ns, 1200);
	packet(0, 7, BOOTTIME, 1200);
	assert_int_equal(moment.ns, 1200);
	begin(0, 7);
	pb_put_uint(&w, F_FLAGS, 1);
	pb_put_uint(&w, F_TIMESTAMP, 1200);
	take();
	assert_int_equal(moment.ns, 1200);
	packet(0, 7, 0, 1300);
	assert_int_equal(moment.ns, 1300);
}

static void
clearing_and_setting_the_default_in_one_packet_sets_it(void **state)
{
	snapshot(0, 1, at_start, 3);
	begin(0, 7);
	pb_put_uint(&w, F_FLAGS, 1);
	put_default_clock(MONOTONIC);
	take();
	packet(0, 7, 0, 1200);
	assert_int_equal(moment.ns, 2200);
}

/* As the SDK writes: 64 counts microseconds from the packet before. */
static void
incremental_clocks_add_up_from_their_snapshot(void **state)
{
	const struct reading own[] = { { 64, 50, true, 1000 },
		AT(MONOTONIC, 1000000) };
	const struct reading service[] = { AT(MONOTONIC, 1000),
		AT(BOOTTIME, 3000000) };

	snapshot(0, 1, service, 2);
	assert_int_equal(snapshot(0, 7, own, 2), TRACE_TIME_OK);
	assert_int_equal(packet(0, 7, 64, 0), TRACE_TIME_OK);
	assert_int_equal(moment.at.ns, 50000);
	assert_int_equal(moment.ns, 3000000 + 999000);
	packet(0, 7, 64, 5);
	assert_int_equal(moment.ns, 3999000 + 5000);
	packet(0, 7, 64, 2);
	assert_int_equal(moment.ns, 3999000 + 7000);
	/* A snapshot begins anew. */
	snapshot(0, 7, own, 2);
	packet(0, 7, 64, 1);
	assert_int_equal(moment.ns, 3999000 + 1000);
	/* Another sequence's 64 is another clock. */
	assert_int_equal(packet(0, 8, 64, 1), TRACE_TIME_UNKNOWN);
}

static void
a_snapshot_with_an_incremental_time_of_its_own_does_not_count_it(void **state)
{
	const struct reading own[] = { { 64, 50, true, 1000 },
		AT(BOOTTIME, 1000000) };

	begin(0, 7);
	put_default_clock(64);
	put_snapshot(F_SNAPSHOT, own, 2, 0);
	pb_put_uint(&w, F_TIMESTAMP, 9);
	assert_int_equal(take(), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 1000000);
	packet(0, 7, 0, 1);
	assert_int_equal(moment.ns, 1001000);
}

static void
what_needs_a_default_that_nobody_said_has_no_time(void **state)
{
	const struct reading host[] = { AT(BOOTTIME, 1000000) };

	snapshot(0, 1, host, 1);
	begin(0, 7);
	pb_put_uint(&w, F_TIMESTAMP, 9);
	pb_put_uint(&w, F_FLAGS, PACKET_NEEDS_STATE);
	assert_int_equal(take(), TRACE_TIME_LOST);
	/* A clock of its own is enough. */
	begin(0, 7);
	pb_put_uint(&w, F_TIMESTAMP, 1000009);
	pb_put_uint(&w, F_FLAGS, PACKET_NEEDS_STATE);
	pb_put_uint(&w, F_CLOCK, BOOTTIME);
	assert_int_equal(take(), TRACE_TIME_OK);
	/* So is a beginning that says no default: it is the trace clock. */
	begin(0, 7);
	pb_put_uint(&w, F_FLAGS, PACKET_STATE_CLEARED);
	(void)take();
	begin(0, 7);
	pb_put_uint(&w, F_TIMESTAMP, 1000009);
	pb_put_uint(&w, F_FLAGS, PACKET_NEEDS_STATE);
	assert_int_equal(take(), TRACE_TIME_OK);
}

static void
after_a_loss_incremental_times_are_not_believed(void **state)
{
	const struct reading own[] = { { 64, 0, true, 1 }, AT(BOOTTIME, 1000) };

	snapshot(0, 7, own, 2);
	assert_int_equal(packet(0, 7, 64, 5), TRACE_TIME_OK);
	begin(0, 7);
	pb_put_uint(&w, F_DROPPED, 1);
	pb_put_uint(&w, F_TIMESTAMP, 5);
	pb_put_uint(&w, F_CLOCK, 64);
	assert_int_equal(take(), TRACE_TIME_LOST);
	assert_int_equal(packet(0, 7, 64, 5), TRACE_TIME_LOST);
	/* Other clocks are, and it is after its next snapshot. */
	assert_int_equal(packet(0, 7, BOOTTIME, 5), TRACE_TIME_OK);
	snapshot(0, 7, own, 2);
	assert_int_equal(packet(0, 7, 64, 5), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 1005);
}

static void
units_are_multiplied(void **state)
{
	const struct reading own[] = { { 200, 3, false, 1000000 },
		AT(BOOTTIME, 9000000) };

	snapshot(0, 7, own, 2);
	assert_int_equal(packet(0, 9, 200, 4), TRACE_TIME_OK);
	assert_int_equal(moment.at.ns, 4000000);
	assert_int_equal(moment.ns, 10000000);
}

static void
what_cannot_be_is_counted_and_changes_nothing(void **state)
{
	const struct reading global[] = { { 200, 3, true, 0 },
		AT(BOOTTIME, 10) };
	const struct reading trace[] = { { BOOTTIME, 3, false, 1000 },
		AT(300, 10) };
	const struct reading good[] = { { 64, 3, false, 5 }, AT(BOOTTIME, 10) };
	const struct reading other[] = { { 64, 3, false, 6 }, AT(BOOTTIME, 99) };

	snapshot(0, 7, global, 2);
	assert_int_equal(trace_clocks_bad(clocks), 1);
	assert_int_equal(packet(0, 7, 200, 1), TRACE_TIME_UNKNOWN);
	snapshot(0, 7, trace, 2);
	assert_int_equal(trace_clocks_bad(clocks), 2);
	snapshot(0, 7, good, 2);
	assert_int_equal(trace_clocks_bad(clocks), 2);
	snapshot(0, 7, other, 2);
	assert_int_equal(trace_clocks_bad(clocks), 3);
	packet(0, 7, 64, 4);
	assert_int_equal(moment.ns, 15);
	/* A sequence's clock without a sequence. */
	snapshot(0, 0, good, 2);
	assert_int_equal(trace_clocks_bad(clocks), 4);
}

static void
put_round(const struct reading *client, const struct reading *host, size_t n)
{
	size_t round = pb_nest_begin(&w, 1);

	put_snapshot(2, client, n, 0);
	put_snapshot(3, host, n, 0);
	pb_nest_end(&w, round);
}

static void
begin_remote(uint32_t machine, size_t *mark)
{
	begin(machine, 1);
	*mark = pb_nest_begin(&w, F_REMOTE);
}

/* Client, host, client, host: 90000, 1000, 90400, 1300. */
static void
a_remote_machine_is_placed_by_the_importers_formula(void **state)
{
	const struct reading c1[] = { AT(BOOTTIME, 90000), AT(MONOTONIC, 50000) };
	const struct reading h1[] = { AT(BOOTTIME, 1000), AT(MONOTONIC, 700) };
	const struct reading c2[] = { AT(BOOTTIME, 90400), AT(MONOTONIC, 50400) };
	const struct reading h2[] = { AT(BOOTTIME, 1300), AT(MONOTONIC, 1000) };
	const struct reading h0[] = { AT(BOOTTIME, 1000), AT(MONOTONIC, 700) };
	size_t mark;

	snapshot(0, 1, h0, 2);
	assert_int_equal(packet(5, 20, BOOTTIME, 90000), TRACE_TIME_UNKNOWN);
	begin_remote(5, &mark);
	put_round(c1, h1, 2);
	put_round(c2, h2, 2);
	pb_nest_end(&w, mark);
	assert_int_equal(take(), TRACE_TIME_NONE);
	/*
	 * (90000 + 90400) / 2 - 1000 = 89200; 90400 - (1000 + 1300) / 2 = 89250:
	 * 89225 between them.
	 */
	assert_int_equal(packet(5, 20, BOOTTIME, 90225), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 1000);
	/* No clock said: the trace's, of that machine. */
	assert_int_equal(packet(5, 20, 0, 91225), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 2000);
	/* 50000 and 50400 with 700 and 1000: 49525. */
	assert_int_equal(packet(5, 20, MONOTONIC, 50525), TRACE_TIME_OK);
	assert_int_equal(moment.ns, 1300);
	/* Another machine is as unknown as before. */
	assert_int_equal(packet(6, 21, BOOTTIME, 90225), TRACE_TIME_UNKNOWN);
}

static void
readings_of_two_exchanges_are_not_put_together(void **state)
{
	const uint64_t s = 1000000000;
	struct reading c = AT(BOOTTIME, 100 * s);
	struct reading h = AT(BOOTTIME, 10 * s);
	size_t mark;

	begin_remote(5, &mark);
	put_round(&c, &h, 1);
	c.ns += 30 * s;
	h.ns += 30 * s;
	put_round(&c, &h, 1);
	pb_nest_end(&w, mark);
	take();
	assert_int_equal(packet(5, 20, BOOTTIME, 100 * s), TRACE_TIME_NO_WAY);
}

static void
a_machine_is_not_remote_to_itself(void **state)
{
	struct reading r = AT(BOOTTIME, 5);
	size_t mark;

	begin_remote(0, &mark);
	put_round(&r, &r, 1);
	put_round(&r, &r, 1);
	pb_nest_end(&w, mark);
	take();
	assert_int_equal(trace_clocks_bad(clocks), 1);
}

/* A file of one relay's data alone, as a remote machine's own clock tells. */
static void
the_trace_clock_is_the_hosts_as_soon_as_it_speaks(void **state)
{
	snapshot(5, 1, at_start, 3);
	assert_int_equal(trace_clocks_trace_clock(clocks).machine, 5);
	packet(5, 20, MONOTONIC, 1500);
	assert_int_equal(moment.ns, 2500);
	snapshot(0, 1, at_start, 3);
	assert_int_equal(trace_clocks_trace_clock(clocks).machine, 0);
	snapshot(5, 1, at_start, 3);
	assert_int_equal(trace_clocks_trace_clock(clocks).machine, 0);
	assert_int_equal(packet(5, 20, MONOTONIC, 1500), TRACE_TIME_NO_WAY);
}

static void
a_producers_own_snapshot_does_not_choose_the_trace_clock(void **state)
{
	const struct reading own[] = { AT(64, 0), AT(MONOTONIC, 10) };

	snapshot(5, 20, own, 2);
	assert_int_equal(trace_clocks_trace_clock(clocks).machine, 0);
	assert_int_equal(packet(5, 20, 64, 4), TRACE_TIME_NO_WAY);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(times_are_boottime_where_nothing_is_said),
		TEST(a_snapshot_joins_the_clocks_and_has_a_time_itself),
		TEST(the_primary_clock_is_the_trace_clock),
		TEST(a_default_clock_holds_until_the_state_is_cleared),
		TEST(clearing_and_setting_the_default_in_one_packet_sets_it),
		TEST(incremental_clocks_add_up_from_their_snapshot),
		TEST(a_snapshot_with_an_incremental_time_of_its_own_does_not_count_it),
		TEST(what_needs_a_default_that_nobody_said_has_no_time),
		TEST(after_a_loss_incremental_times_are_not_believed),
		TEST(units_are_multiplied),
		TEST(what_cannot_be_is_counted_and_changes_nothing),
		TEST(a_remote_machine_is_placed_by_the_importers_formula),
		TEST(readings_of_two_exchanges_are_not_put_together),
		TEST(a_machine_is_not_remote_to_itself),
		TEST(the_trace_clock_is_the_hosts_as_soon_as_it_speaks),
		TEST(a_producers_own_snapshot_does_not_choose_the_trace_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
