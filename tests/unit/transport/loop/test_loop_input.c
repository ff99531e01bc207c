#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/still_loop.h"
#include "transport/loop/loop.h"
#include "transport/stream/stream.h"

/* Time passes when a test says so, and with each read. */
#define READ_NS 1000000u
#define TURN_READS LOOP_READ_MS /* reads that a turn has time for */

/* The kernel tells the loop of no more at once, to begin with. */
#define PEERS 30

static struct {
	struct loop *loop;
	uint64_t now_ns;
	struct loop_call calls[4096];
	unsigned order[4096];
	unsigned ran;
	unsigned told;
	struct stream *streams[PEERS];
	int far_ends[PEERS];
	unsigned reads[PEERS];
	unsigned urgent_reads;
	size_t largest;
	size_t unit; /* what streams bring is made of; 0: of anything */
} t;

static uint64_t
test_clock(void *arg)
{
	return t.now_ns;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.now_ns = 1;
	if ((t.loop = loop_new()) == NULL)
		return -1;
	loop_set_clock(t.loop, test_clock, NULL);
	return 0;
}

static int
teardown(void **state)
{
	size_t i;

	for (i = 0; i < PEERS; i++) {
		if (t.streams[i] != NULL) {
			stream_close(t.streams[i], false);
			close(t.far_ends[i]);
		}
	}
	loop_call_cancel(&t.calls[0]);
	loop_free(t.loop);
	return 0;
}

static void
read_something(void *arg)
{
	t.order[t.ran++] = (unsigned)(uintptr_t)arg;
	t.now_ns += READ_NS;
}

static void
count_told(void *arg)
{
	t.told++;
}

static void
defer(unsigned i)
{
	loop_defer_read(t.loop, &t.calls[i], read_something,
	    (void *)(uintptr_t)i);
}

static void
a_turn_has_time_for_a_few_reads(void **state)
{
	unsigned n = 0;

	while (loop_may_read(t.loop, false)) {
		t.now_ns += READ_NS;
		n++;
	}
	assert_int_equal(n, TURN_READS);
	/* Those that are urgent have their own time, and then none either. */
	for (n = 0; loop_may_read(t.loop, true); n++)
		t.now_ns += READ_NS;
	assert_int_equal(n, TURN_READS);
	assert_false(loop_may_read(t.loop, false));
	loop_run_once(t.loop);
	assert_true(loop_may_read(t.loop, false));
}

static void
who_waits_is_read_in_order_some_in_each_turn(void **state)
{
	unsigned i, turns = 0;

	for (i = 0; i < 10; i++)
		defer(i);
	assert_int_equal(t.ran, 0);
	while (t.ran < 10) {
		loop_run_once(t.loop);
		turns++;
		assert_true(t.ran <= turns * TURN_READS);
	}
	assert_int_equal(turns, (10 + TURN_READS - 1) / TURN_READS);
	for (i = 0; i < 10; i++)
		assert_int_equal(t.order[i], i);
}

static void
nobody_is_read_before_those_who_wait(void **state)
{
	defer(0);
	assert_false(loop_may_read(t.loop, false));
	assert_true(loop_may_read(t.loop, true));
	loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_true(loop_may_read(t.loop, false));
}

static void
even_without_time_one_is_read_in_each_turn(void **state)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		defer(i);
	for (i = 1; i <= 3; i++) {
		assert_true(loop_may_read(t.loop, true));
		/* A turn that others have used up before. */
		loop_run_once(t.loop);
		assert_true(t.ran >= i || t.ran == 3);
	}
}

static void
read_again(void *arg)
{
	t.ran++;
	loop_defer_read(t.loop, &t.calls[0], read_again, NULL);
}

static void
a_read_that_has_more_to_come_waits_for_the_next_turn(void **state)
{
	loop_defer_read(t.loop, &t.calls[0], read_again, NULL);
	loop_run_once(t.loop);
	assert_int_equal(t.ran, 1);
	loop_run_once(t.loop);
	assert_int_equal(t.ran, 2);
	loop_call_cancel(&t.calls[0]);
}

static void
a_cancelled_read_does_not_run(void **state)
{
	defer(0);
	defer(1);
	loop_call_cancel(&t.calls[0]);
	loop_run_once(t.loop);
	assert_int_equal(t.ran, 1);
	assert_int_equal(t.order[0], 1);
}

static void
reads_get_shorter_the_more_there_are_that_wait(void **state)
{
	size_t few, many;
	unsigned i;

	assert_int_equal(loop_read_bytes(t.loop), LOOP_SCRATCH_BYTES);
	for (i = 0; i < 100; i++)
		defer(i);
	loop_run_once(t.loop);
	few = loop_read_bytes(t.loop);
	assert_int_equal(few, LOOP_SCRATCH_BYTES);
	for (; i < 3000; i++)
		defer(i);
	while (t.ran < 2900)
		loop_run_once(t.loop);
	many = loop_read_bytes(t.loop);
	assert_true(many < few);
	assert_true(many >= 16 * 1024);
	while (t.ran < 3000)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(loop_read_bytes(t.loop), LOOP_SCRATCH_BYTES);
}

static void
how_long_input_waits_is_known(void **state)
{
	unsigned i;

	assert_int_equal(loop_lag_ms(t.loop), 0);
	for (i = 0; i < 100; i++)
		defer(i);
	while (t.ran < 60)
		loop_run_once(t.loop);
	/* A read takes a millisecond here, and the last waits for all. */
	assert_in_range(loop_lag_ms(t.loop), 50, 100);
	while (t.ran < 100)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(loop_lag_ms(t.loop), 0);
}

static void
a_round_that_takes_too_long_is_told(void **state)
{
	unsigned i;

	loop_on_lag(t.loop, 20, count_told, NULL);
	for (i = 0; i < 15; i++)
		defer(i);
	while (t.ran < 15)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(t.told, 0);
	for (i = 0; i < 50; i++)
		defer(i);
	while (t.ran < 65)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_true(t.told > 0);
}

static void
held_back_it_reads_less_and_shakes_fewer_hands(void **state)
{
	static struct loop_call slow[10];
	unsigned i;

	for (i = 0; i < 100; i++)
		defer(i);
	loop_run_once(t.loop);
	loop_hold_back(t.loop, LOOP_HOLD_READS);
	assert_int_equal(loop_read_bytes(t.loop), LOOP_SCRATCH_BYTES / 4);
	while (t.ran < 100)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	/* Nobody waits: nobody is held back. */
	assert_int_equal(loop_read_bytes(t.loop), LOOP_SCRATCH_BYTES);
	for (i = 0; i < 10; i++)
		loop_defer_slow(t.loop, &slow[i], false, count_told, NULL);
	loop_run_once(t.loop);
	assert_int_equal(t.told, 1);
	loop_hold_back(t.loop, LOOP_HOLD_NOTHING);
	loop_run_once(t.loop);
	assert_int_equal(t.told, 10);
}

static void
input_that_is_held_waits_in_its_order_and_the_time_is_known(void **state)
{
	unsigned i;

	loop_hold_input(t.loop, true);
	assert_false(loop_may_read(t.loop, false));
	assert_true(loop_may_read(t.loop, true));
	for (i = 0; i < 10; i++)
		defer(i);
	for (i = 0; i < 10; i++) {
		loop_run_once(t.loop);
		t.now_ns += 10 * READ_NS;
	}
	assert_int_equal(t.ran, 0);
	assert_int_equal(loop_lag_ms(t.loop), 100);
	loop_hold_input(t.loop, false);
	while (t.ran < 10)
		loop_run_once(t.loop);
	for (i = 0; i < 10; i++)
		assert_int_equal(t.order[i], i);
	loop_run_once(t.loop);
	assert_int_equal(loop_lag_ms(t.loop), 0);
}

static void
hold_input(void *arg)
{
	read_something(arg);
	loop_hold_input(t.loop, true);
}

static void
a_read_may_hold_those_that_follow(void **state)
{
	loop_defer_read(t.loop, &t.calls[0], hold_input, NULL);
	defer(1);
	loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(t.ran, 1);
	loop_hold_input(t.loop, false);
	loop_run_once(t.loop);
	assert_int_equal(t.ran, 2);
}

/* ---- streams ---- */

static size_t
on_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	unsigned *reads = arg;

	if (len < t.unit) {
		stream_want(s, t.unit);
		return 0;
	}
	(*reads)++;
	t.now_ns += READ_NS;
	if (len > t.largest)
		t.largest = len;
	return t.unit > 0 ? t.unit : len;
}

static void
on_closed(struct stream *s, enum stream_end why, void *arg)
{
	fail();
}

static const struct stream_ops ops = { .data = on_data, .closed = on_closed };

static void
open_peers(size_t n)
{
	int fds[2];
	size_t i;

	for (i = 0; i < n; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		t.far_ends[i] = fds[1];
		t.streams[i] = stream_new(t.loop, fds[0], &ops, &t.reads[i]);
		assert_non_null(t.streams[i]);
	}
}

static void
say_something(size_t from, size_t upto)
{
	for (; from < upto; from++)
		assert_int_equal(write(t.far_ends[from], "x", 1), 1);
}

static unsigned
reads_of(size_t from, size_t upto)
{
	unsigned n = 0;

	for (; from < upto; from++)
		n += t.reads[from];
	return n;
}

static void
an_urgent_stream_is_read_in_the_turn_in_which_it_has_something(void **state)
{
	unsigned turn;

	open_peers(PEERS);
	stream_set_urgent(t.streams[PEERS - 1]);
	for (turn = 1; turn <= 5; turn++) {
		/* All of them, again and again: more than there is time for. */
		say_something(0, PEERS);
		loop_run_once(t.loop);
		assert_int_equal(t.reads[PEERS - 1], turn);
		assert_true(reads_of(0, PEERS - 1) <= turn * TURN_READS + 1);
	}
}

static void
all_peers_get_their_turn(void **state)
{
	unsigned turn;
	size_t i;

	open_peers(PEERS);
	for (turn = 0; turn < 3 * PEERS / TURN_READS; turn++) {
		say_something(0, PEERS);
		loop_run_once(t.loop);
	}
	for (i = 0; i < PEERS; i++)
		assert_in_range(t.reads[i], 2, 4);
}

/* There is always one that waits, so that a read takes a quarter. */
#define SHORT_READ (LOOP_SCRATCH_BYTES / 4)

static void
hold_reads_short(void)
{
	loop_hold_back(t.loop, LOOP_HOLD_READS);
	loop_defer_read(t.loop, &t.calls[0], read_again, NULL);
	assert_int_equal(loop_read_bytes(t.loop), SHORT_READ);
}

static void
send_bytes(size_t to, size_t n)
{
	static const uint8_t bytes[2 * LOOP_SCRATCH_BYTES];
	int room = LOOP_SCRATCH_BYTES;

	/* The kernel doubles it. */
	assert_int_equal(setsockopt(t.far_ends[to], SOL_SOCKET, SO_SNDBUF,
	    &room, sizeof(room)), 0);
	assert_int_equal(send(t.far_ends[to], bytes, n, MSG_DONTWAIT), n);
}

static void
a_unit_that_is_there_is_not_kept_half_until_the_next_turn(void **state)
{
	size_t i;

	t.unit = SHORT_READ + 10000;
	open_peers(PEERS);
	hold_reads_short();
	for (i = 0; i < PEERS; i++)
		send_bytes(i, t.unit);
	while (reads_of(0, PEERS) < PEERS) {
		loop_run_once(t.loop);
		for (i = 0; i < PEERS; i++)
			assert_int_equal(stream_memory(t.streams[i]), 0);
	}
}

static void
a_unit_of_which_nothing_more_is_there_is_kept(void **state)
{
	t.unit = SHORT_READ + 10000;
	open_peers(1);
	hold_reads_short();
	send_bytes(0, SHORT_READ + 1);
	while (stream_memory(t.streams[0]) < t.unit)
		loop_run_once(t.loop);
	assert_int_equal(t.reads[0], 0);
	send_bytes(0, t.unit - SHORT_READ - 1);
	while (t.reads[0] == 0)
		loop_run_once(t.loop);
	assert_int_equal(stream_memory(t.streams[0]), 0);
}

static void
in_one_turn_a_stream_does_not_finish_two_long_units(void **state)
{
	/* Two are more than a long unit and a read. */
	t.unit = (LOOP_SCRATCH_BYTES + SHORT_READ) / 2 + 10000;
	open_peers(1);
	hold_reads_short();
	send_bytes(0, 1);
	while (stream_memory(t.streams[0]) == 0)
		loop_run_once(t.loop);
	send_bytes(0, 2 * t.unit - 1);
	while (t.reads[0] == 0)
		loop_run_once(t.loop);
	assert_int_equal(t.reads[0], 1);
	assert_int_equal(stream_memory(t.streams[0]), t.unit);
	while (t.reads[0] == 1)
		loop_run_once(t.loop);
}

static void
a_peer_that_is_paused_while_it_waits_is_not_read(void **state)
{
	size_t i;

	open_peers(PEERS);
	say_something(0, PEERS);
	loop_run_once(t.loop);
	for (i = 0; i < PEERS && t.reads[i] > 0; i++)
		;
	assert_true(i < PEERS);
	stream_pause(t.streams[i]);
	while (reads_of(0, PEERS) < PEERS - 1)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(t.reads[i], 0);
	stream_resume(t.streams[i]);
	while (t.reads[i] == 0)
		loop_run_once(t.loop);
}

static void
a_peer_that_is_closed_while_it_waits_is_not_read(void **state)
{
	size_t i;

	open_peers(PEERS);
	say_something(0, PEERS);
	loop_run_once(t.loop);
	for (i = 0; i < PEERS && t.reads[i] > 0; i++)
		;
	assert_true(i < PEERS);
	stream_close(t.streams[i], false);
	t.streams[i] = NULL;
	close(t.far_ends[i]);
	while (reads_of(0, PEERS) < PEERS - 1)
		loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(t.reads[i], 0);
}

static void
let_go(void *arg)
{
	loop_hold_input(t.loop, false);
}

/* A real turn: it sleeps until there is something to do. */
static unsigned
turns_until_read(size_t n)
{
	unsigned turns = 0;

	while (reads_of(0, n) < n) {
		event_base_loop(loop_base(t.loop), EVLOOP_ONCE);
		turns++;
	}
	return turns;
}

static void
while_input_is_held_the_loop_sleeps(void **state)
{
	struct loop_timer *timer = loop_timer_new(t.loop, let_go, NULL);

	assert_non_null(timer);
	loop_set_clock(t.loop, still_clock_ns, NULL);
	open_peers(PEERS);
	loop_hold_input(t.loop, true);
	say_something(0, PEERS);
	loop_timer_set(timer, 50, 0);
	/* They become ready, their call's turn, the timer, and they are read. */
	assert_true(turns_until_read(PEERS) < 10);
	/* They are watched again. */
	say_something(0, PEERS);
	while (reads_of(0, PEERS) < 2 * PEERS)
		event_base_loop(loop_base(t.loop), EVLOOP_ONCE);
	loop_timer_free(timer);
}

static void
a_peer_may_be_paused_and_resumed_while_input_is_held(void **state)
{
	open_peers(3);
	loop_hold_input(t.loop, true);
	say_something(0, 3);
	loop_run_once(t.loop);
	stream_pause(t.streams[0]);
	stream_pause(t.streams[1]);
	stream_resume(t.streams[1]);
	loop_run_once(t.loop);
	loop_run_once(t.loop);
	assert_int_equal(reads_of(0, 3), 0);
	loop_hold_input(t.loop, false);
	while (reads_of(0, 3) < 2)
		loop_run_once(t.loop);
	assert_int_equal(t.reads[0], 0);
	stream_resume(t.streams[0]);
	while (t.reads[0] == 0)
		loop_run_once(t.loop);
	assert_int_equal(reads_of(0, 3), 3);
}

static void
what_is_urgent_is_read_while_input_is_held(void **state)
{
	open_peers(3);
	stream_set_urgent(t.streams[2]);
	loop_hold_input(t.loop, true);
	say_something(0, 3);
	while (t.reads[2] == 0)
		loop_run_once(t.loop);
	assert_int_equal(reads_of(0, 2), 0);
	/* One that waits already. */
	stream_set_urgent(t.streams[1]);
	while (t.reads[1] == 0)
		loop_run_once(t.loop);
	assert_int_equal(reads_of(0, 1), 0);
}

static void
more_that_is_urgent_than_a_turn_has_time_for_is_read_while_held(void **state)
{
	size_t i;

	open_peers(PEERS);
	for (i = 0; i < PEERS; i++)
		stream_set_urgent(t.streams[i]);
	loop_hold_input(t.loop, true);
	say_something(0, PEERS);
	for (i = 0; i < PEERS; i++)
		loop_run_once(t.loop);
	assert_int_equal(reads_of(0, PEERS), PEERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_turn_has_time_for_a_few_reads),
		TEST(who_waits_is_read_in_order_some_in_each_turn),
		TEST(nobody_is_read_before_those_who_wait),
		TEST(even_without_time_one_is_read_in_each_turn),
		TEST(a_read_that_has_more_to_come_waits_for_the_next_turn),
		TEST(a_cancelled_read_does_not_run),
		TEST(reads_get_shorter_the_more_there_are_that_wait),
		TEST(how_long_input_waits_is_known),
		TEST(a_round_that_takes_too_long_is_told),
		TEST(held_back_it_reads_less_and_shakes_fewer_hands),
		TEST(input_that_is_held_waits_in_its_order_and_the_time_is_known),
		TEST(a_read_may_hold_those_that_follow),
		TEST(an_urgent_stream_is_read_in_the_turn_in_which_it_has_something),
		TEST(all_peers_get_their_turn),
		TEST(a_unit_that_is_there_is_not_kept_half_until_the_next_turn),
		TEST(a_unit_of_which_nothing_more_is_there_is_kept),
		TEST(in_one_turn_a_stream_does_not_finish_two_long_units),
		TEST(a_peer_that_is_paused_while_it_waits_is_not_read),
		TEST(a_peer_that_is_closed_while_it_waits_is_not_read),
		TEST(while_input_is_held_the_loop_sleeps),
		TEST(a_peer_may_be_paused_and_resumed_while_input_is_held),
		TEST(what_is_urgent_is_read_while_input_is_held),
		TEST(more_that_is_urgent_than_a_turn_has_time_for_is_read_while_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
