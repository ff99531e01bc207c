#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/outbox/outbox_internal.h"
#include "tests/unit/relay/uplink/uplink_world.h"

#define WHY(name) TRIBUTARY__LINK_OPENED__WHY__##name
#define COLLECTOR (&world->collector)

/* ---- a new link ---- */

static void
a_new_link_announces_producers_and_loses_nothing(void **state)
{
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->opens, 1);
	assert_int_equal(COLLECTOR->open->last_sent, 0);
	assert_string_equal(COLLECTOR->open->machine_name, "device-7");
	assert_true(COLLECTOR->has_down);
	assert_true(fakes.clocks_run);
	fakes_expect("recover remove; announce 0; ");
	assert_int_equal(world_view()->reconnects, 0);
	assert_string_equal(world_view()->last_error, "");
}

static void
what_producers_say_goes_up_in_order_and_is_acknowledged(void **state)
{
	struct outbox_state st;

	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_put(1, LINK_UP_REGISTER_SOURCE, "source");
	world_commit(1, 100);
	world_settle();
	world_put(1, LINK_UP_CLOSE, "");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; 1:4 source; 1:commit 100; "
	    "1:3 ; ");
	outbox_state(world->outbox, &st);
	assert_true(st.last_sent >= 2);
	assert_int_equal(st.last_acked, st.last_sent);
	assert_int_equal(COLLECTOR->again, 0);
	assert_true(world_view()->bytes_up > 100);
	assert_int_equal(world_view()->bytes_again, 0);
}

static void
commands_come_down_once_and_are_acknowledged(void **state)
{
	struct outbox_state st;

	world_link();
	collector_say(COLLECTOR, 3, LINK_DOWN_COMMAND, "start");
	collector_say(COLLECTOR, 3, LINK_DOWN_COMMAND, "flush");
	collector_say(COLLECTOR, 4, LINK_DOWN_REFUSED, "too many\n");
	world_settle();
	fakes_expect("command 3 start; command 3 flush; "
	    "refused 4 too many\\x0a; ");
	outbox_state(world->outbox, &st);
	assert_int_equal(st.received, 3);
	assert_int_equal(COLLECTOR->relay_has, 3);
	/* Once more, as after a cut that came before the acknowledgement. */
	collector_say_as(COLLECTOR, 2, 3, LINK_DOWN_COMMAND, "flush");
	world_settle();
	fakes_expect("");
	assert_int_equal(world_view()->state, UPLINK_LINKED);
}

static void
credit_holds_back_what_the_collector_has_no_room_for(void **state)
{
	int i;

	COLLECTOR->window = 4 * LINK_BLOCK_MAX;
	world_link();
	COLLECTOR->acks_nothing = true;
	for (i = 0; i < 6; i++) {
		world_commit(1, 90000);
		world_settle();
	}
	/* Half of what is left stays free for others. */
	collector_expect(COLLECTOR, "1:commit 90000; 1:commit 90000; ");
	world_commit(2, 90000);
	world_settle();
	collector_expect(COLLECTOR, "2:commit 90000; ");
	COLLECTOR->acks_nothing = false;
	world_put(3, LINK_UP_OPEN, "three");
	world_settle();
	collector_expect(COLLECTOR, "3:2 three; 1:commit 90000; "
	    "1:commit 90000; 1:commit 90000; 1:commit 90000; ");
	assert_int_equal(COLLECTOR->again, 0);
}

static void
what_found_no_room_is_told_where_it_would_have_stood(void **state)
{
	struct upstream up = uplink_upward(world->u);
	struct link_loss loss = {
		.writer = 3,
		.buffer = 1,
		.chunks = 1,
		.packets = 4,
		.bytes = 300,
	};
	struct outbox_stats stats;

	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	up.ops->dropped(up.arg, 1, &loss);
	world_put(1, LINK_UP_CLOSE, "");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; 1:loss 1 of 0; 1:3 ; ");
	outbox_stats(world->outbox, &stats);
	assert_int_equal(stats.packets_lost[1], 4);
}

/* ---- cuts ---- */

static void
a_cut_is_resumed_and_nothing_comes_twice(void **state)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	/* It was taken, and the acknowledgement was lost. */
	collector_cut(COLLECTOR);
	world_settle();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_false(fakes.clocks_run);
	world_commit(1, 50);
	COLLECTOR->acks_nothing = false;
	world_pass(200);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(world_view()->reconnects, 1);
	assert_int_equal(COLLECTOR->open->last_sent, 1);
	assert_int_equal(COLLECTOR->open->last_acknowledged, 0);
	collector_expect(COLLECTOR, "1:2 one; 1:commit 50; ");
	assert_int_equal(COLLECTOR->again, 0);
	/* Those that came meanwhile; others do not notice. */
	assert_true(fakes.away > 0);
	fakes_expect("announce 0; ");
}

static void
what_was_lost_on_the_way_is_sent_again(void **state)
{
	struct outbox_block b;

	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_commit(1, 50);
	/* As if a send had been swallowed by the network. */
	assert_true(outbox_next(world->outbox, &b));
	assert_int_equal(b.number, 1);
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->open->last_sent, 1);
	collector_expect(COLLECTOR, "1:2 one; 1:commit 50; ");
	assert_int_equal(world_view()->bytes_again, world_view()->bytes_up);
}

static void
commands_that_were_taken_before_a_cut_are_said(void **state)
{
	world_link();
	collector_say(COLLECTOR, 3, LINK_DOWN_COMMAND, "start");
	world_settle();
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_int_equal(COLLECTOR->open->received, 1);
	collector_say(COLLECTOR, 3, LINK_DOWN_COMMAND, "stop");
	world_settle();
	fakes_expect("command 3 start; announce 0; command 3 stop; ");
}

static void
pauses_between_attempts_grow_and_are_short_again_after_success(void **state)
{
	int i;

	world_start();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_in_range(fake_time_next(), 100, 200);
	for (i = 0; i < 12; i++)
		world_pass(15000);
	assert_true(fake_time_next() <= 15000);
	assert_in_range(world_view()->next_try_ms - world_view()->since_ms, 7500,
	    15000);
	assert_non_null(strstr(world_view()->last_error, "no daemon listens"));
	collector_listen(COLLECTOR, world->path);
	world_pass(15000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_string_equal(world_view()->last_error, "");
	world_put(1, LINK_UP_OPEN, "one");
	COLLECTOR->why = WHY(RESUMED);
	world_settle();
	collector_cut(COLLECTOR);
	collector_deafen(COLLECTOR);
	world_settle();
	assert_in_range(fake_time_next(), 100, 200);
}

static void
a_changed_network_is_tried_at_once_but_not_each_time(void **state)
{
	int i;

	world_start();
	for (i = 0; i < 12; i++)
		world_pass(15000);
	/* When the last attempt was a while ago, and the next one is not yet. */
	while (fake_time_next() < 2000)
		world_pass(1000);
	world_pass(1000);
	uplink_try_now(world->u);
	assert_int_equal(fake_time_next(), 0);
	world_pass(0);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	/* The attempt has failed just now. */
	uplink_try_now(world->u);
	assert_int_equal(fake_time_next(), 1000);
}

/* ---- links that are no more ---- */

static void
begin_anew(Tributary__LinkOpened__Why why, const char *told)
{
	uint8_t link_id[LINK_ID_BYTES];

	world_link();
	COLLECTOR->acks_nothing = true;
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; ");
	memcpy(link_id, COLLECTOR->open->link_id.data, LINK_ID_BYTES);
	collector_cut(COLLECTOR);
	COLLECTOR->acks_nothing = false;
	COLLECTOR->why = why;
	memcpy(COLLECTOR->id, "another-collect", LINK_ID_BYTES);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect(told);
	/* What was for the old one is not for this one. */
	collector_expect(COLLECTOR, "");
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; ");

	/* And this link can be resumed. */
	COLLECTOR->why = WHY(RESUMED);
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_memory_equal(COLLECTOR->open->link_id.data, link_id,
	    LINK_ID_BYTES);
	assert_memory_equal(COLLECTOR->open->collector_id.data, COLLECTOR->id,
	    LINK_ID_BYTES);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("announce 0; ");
}

static void
a_collector_that_was_restarted_is_told_of_producers_anew(void **state)
{
	begin_anew(WHY(COLLECTOR_RESTARTED), "lost 0 5; announce 0; ");
}

static void
a_link_whose_grace_is_over_begins_anew(void **state)
{
	begin_anew(WHY(GRACE_OVER), "lost 0 4; announce 0; ");
}

static void
a_link_that_was_given_up_begins_anew(void **state)
{
	begin_anew(WHY(GIVEN_UP), "lost 0 4; announce 0; ");
}

static void
commit_chunk(uint8_t number)
{
	uint8_t chunk[] = {
		/* CommitDataRequest.chunks_to_move: buffer 1, a chunk's header */
		0x0a, 0x18, 0x18, 0x01, 0x22, 0x14,
		/* this chunk of writer 2, with 2 packets of a byte */
		number, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 1,
		'b',
	};
	struct upstream up = uplink_upward(world->u);
	uint8_t *out;

	assert_int_equal(up.ops->reserve(up.arg, 1, sizeof(chunk), 20, &out),
	    UPSTREAM_ROOM);
	memcpy(out, chunk, sizeof(chunk));
	up.ops->commit(up.arg, 1, sizeof(chunk));
}

static void
what_an_old_link_lost_is_told_the_next_collector(void **state)
{
	struct outbox_stats stats;

	world_link();
	collector_deafen(COLLECTOR);
	collector_cut(COLLECTOR);
	world_settle();
	commit_chunk(0);
	COLLECTOR->why = WHY(COLLECTOR_RESTARTED);
	collector_listen(COLLECTOR, world->path);
	world_pass(5000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	collector_expect(COLLECTOR, "0:loss 5 of 1; ");
	outbox_stats(world->outbox, &stats);
	assert_int_equal(stats.chunks_lost[5], 1);
}

/* Chunks 0 and 1 are sent, each in a block, and the link is cut. */
static uint64_t
chunks_lost_of_two(uint64_t taken_before)
{
	struct outbox_stats stats;

	world_link();
	COLLECTOR->acks_nothing = true;
	commit_chunk(0);
	world_settle();
	commit_chunk(1);
	world_settle();
	assert_int_equal(COLLECTOR->in.received, 2);
	collector_cut(COLLECTOR);
	COLLECTOR->acks_nothing = false;
	COLLECTOR->why = WHY(GRACE_OVER);
	COLLECTOR->taken_before = taken_before;
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	outbox_stats(world->outbox, &stats);
	return stats.chunks_lost[4];
}

static void
what_arrived_without_an_answer_is_not_lost_with_the_old_link(void **state)
{
	assert_int_equal(chunks_lost_of_two(1), 1);
}

static void
what_was_never_sent_cannot_have_arrived(void **state)
{
	assert_int_equal(chunks_lost_of_two(3), 2);
}

static uint8_t old_link_id[LINK_ID_BYTES];

/*
 * Chunks 0 and 1 are sent and taken, though nobody said so; 2 is not sent.
 * Then the link has to end.
 */
static void
overflow(void)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	commit_chunk(0);
	world_settle();
	commit_chunk(1);
	world_settle();
	assert_int_equal(COLLECTOR->in.received, 2);
	memcpy(old_link_id, COLLECTOR->open->link_id.data, LINK_ID_BYTES);
	collector_expect(COLLECTOR, "1:commit 26; 1:commit 26; ");
	commit_chunk(2);
	ob_overflow(world->outbox);
}

/* The link begins anew, and the chunk that was not sent is lost with it. */
static void
expect_anew(void)
{
	struct outbox_stats stats;

	assert_memory_equal(COLLECTOR->open->link_id.data, old_link_id,
	    LINK_ID_BYTES);
	COLLECTOR->acks_nothing = false;
	COLLECTOR->why = WHY(NEW);
	/* Nothing of the old one goes into the new one. */
	world_put(1, LINK_UP_CLOSE, "");
	world_pass(2000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_memory_not_equal(COLLECTOR->open->link_id.data, old_link_id,
	    LINK_ID_BYTES);
	collector_expect(COLLECTOR, "0:loss 1 of 1; ");
	outbox_stats(world->outbox, &stats);
	assert_int_equal(stats.chunks_lost[1], 1);
}

static void
an_outbox_that_overflows_begins_a_new_link(void **state)
{
	overflow();
	loop_run_once(world->loop);
	fakes_expect("lost 0 1; ");
	world_pass(300);
	expect_anew();
	fakes_expect("announce 0; ");
}

static void
so_does_one_whose_relay_was_killed_before(void **state)
{
	overflow();
	world_restart();
	world_pass(300);
	expect_anew();
}

/* ---- a relay that was killed ---- */

static void
a_relay_that_was_killed_goes_on_and_closes_what_it_had(void **state)
{
	struct upstream up;

	world_link();
	assert_int_equal(outbox_new_channel(world->outbox), 1);
	assert_int_equal(outbox_new_channel(world->outbox), 2);
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; ");
	world_restart();
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->open->last_sent, 1);
	fakes_expect("recover keep; announce 0; ");

	/* As producers.c does with what it finds. */
	COLLECTOR->acks_nothing = true;
	world_commit(1, 70);
	world_put(1, LINK_UP_CLOSE, "");
	world_settle();
	fakes.recovered(fakes.recovered_arg);
	world_settle();
	collector_expect(COLLECTOR, "1:commit 70; 1:3 ; ");
	COLLECTOR->acks_nothing = false;
	assert_int_equal(outbox_new_channel(world->outbox), 3);
	up = uplink_upward(world->u);
	up.ops->put(up.arg, 3, LINK_UP_OPEN, "new", 3, 0);
	world_settle();
	/* Only now: all old ones have arrived. */
	collector_expect(COLLECTOR, "3:2 new; 0:13 3; ");
}

static void
a_killed_relay_that_is_not_resumed_forgets_what_it_had(void **state)
{
	world_link();
	assert_int_equal(outbox_new_channel(world->outbox), 1);
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	collector_expect(COLLECTOR, "1:2 one; ");
	COLLECTOR->why = WHY(GRACE_OVER);
	world_restart();
	fakes_expect("recover keep; lost 0 4; announce 0; ");
	fakes.recovered(fakes.recovered_arg);
	world_settle();
	collector_expect(COLLECTOR, "");
}

/* ---- other collectors ---- */

static void
a_collector_without_the_link_is_served_in_perfettos_way(void **state)
{
	struct upstream up = uplink_upward(world->u);
	uint8_t *out;

	COLLECTOR->knows_no_link = true;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_CLASSIC);
	fakes_expect("recover remove; classic; ");
	world_put(1, LINK_UP_OPEN, "one");
	assert_int_equal(up.ops->reserve(up.arg, 1, 10, 5, &out),
	    UPSTREAM_LATER);
	fakes_expect("classic put 1 2; classic reserve 1 10; ");

	/* It was replaced by one of ours. */
	COLLECTOR->knows_no_link = false;
	fakes.classic.down(fakes.classic.arg, "the relay port has gone");
	fakes_expect("classic ends; lost 0 5; ");
	world_put(1, LINK_UP_CLOSE, "");
	assert_int_equal(up.ops->reserve(up.arg, 1, 10, 5, &out),
	    UPSTREAM_DROPPED);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("announce 0; ");
	collector_expect(COLLECTOR, "");
}

static void
perfettos_way_has_its_cause_and_ends_what_was_wrong_before(void **state)
{
	world_start();
	assert_non_null(strstr(world_view()->last_error, "no daemon listens"));
	assert_null(world_view()->why_classic);
	COLLECTOR->knows_no_link = true;
	collector_listen(COLLECTOR, world->path);
	world_pass(15000);
	assert_int_equal(world_view()->state, UPLINK_CLASSIC);
	assert_non_null(strstr(world_view()->why_classic, "does not know"));
	assert_false(world_view()->without_clocks);
	fakes.perfetto_relay_without_clocks = true;
	fakes.classic.up(fakes.classic.arg);
	assert_string_equal(world_view()->last_error, "");
	assert_true(world_view()->without_clocks);
}

static void
a_collector_that_was_replaced_by_perfettos_ends_the_link(void **state)
{
	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_settle();
	COLLECTOR->knows_no_link = true;
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_CLASSIC);
	fakes_expect("lost 0 5; classic; ");
}

static void
who_wants_the_link_alone_goes_on_asking_for_it(void **state)
{
	world->settings.protocol = RELAY_LINK_ONLY;
	COLLECTOR->knows_no_link = true;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_non_null(strstr(world_view()->last_error,
	    "does not know Tributary's link"));
	COLLECTOR->knows_no_link = false;
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
}

static void
who_wants_perfettos_way_never_asks_for_the_link(void **state)
{
	world->settings.protocol = RELAY_CLASSIC_ONLY;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_CLASSIC);
	assert_int_equal(COLLECTOR->connections, 0);
	fakes.classic_fails = true;
	fakes.classic.down(fakes.classic.arg, "gone");
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_string_equal(world_view()->last_error, "no classic today");
	fakes.classic_fails = false;
	world_pass(1000);
	assert_int_equal(world_view()->state, UPLINK_CLASSIC);
}

/* ---- collectors that break the rules ---- */

static void
is_cut_off(const char *text)
{
	world_settle();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_non_null(strstr(world_view()->last_error, text));
	fakes_expect("");
	/* And tried again, with growing pauses. */
	world_pass(2000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	fakes_expect("announce 0; ");
}

static void
who_acknowledges_what_was_not_sent_is_cut_off(void **state)
{
	struct link_frame f = { .has_received = true, .received = 1 };

	world_link();
	collector_send(COLLECTOR, &f);
	is_cut_off("acknowledged a block that was not sent");
}

static void
who_consumes_what_was_not_sent_is_cut_off(void **state)
{
	struct link_frame f = {
		.has_consumed_in_all = true,
		.consumed_in_all = 1,
	};

	world_link();
	collector_send(COLLECTOR, &f);
	is_cut_off("consumed more than was sent");
}

static void
who_leaves_out_a_block_is_cut_off(void **state)
{
	world_link();
	collector_say_as(COLLECTOR, 2, 1, LINK_DOWN_COMMAND, "start");
	is_cut_off("left out a block");
}

static void
who_sends_what_cannot_be_parsed_is_cut_off(void **state)
{
	struct link_frame f = {
		.number = 1,
		.block = (const uint8_t *)"\x0a\x7f",
		.len = 2,
	};

	world_link();
	rpc_reply(COLLECTOR->down, "\xff", 1, true, -1);
	is_cut_off("frame that cannot be parsed");
	collector_send(COLLECTOR, &f);
	is_cut_off("block that cannot be parsed");
	f.compressed = true;
	f.raw_size = 2;
	collector_send(COLLECTOR, &f);
	is_cut_off("cannot be decompressed");
}

static void
who_resumes_what_cannot_be_is_not_believed(void **state)
{
	world_link();
	COLLECTOR->says_received = true;
	COLLECTOR->received = 5;
	collector_cut(COLLECTOR);
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_non_null(strstr(world_view()->last_error, "where it cannot be"));
}

static void
who_rejects_open_is_asked_again_later(void **state)
{
	COLLECTOR->rejects_open = true;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_string_equal(world_view()->last_error,
	    "the collector refuses the link");
	COLLECTOR->rejects_open = false;
	world_pass(300);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
}

/* ---- silence ---- */

static void
a_silent_collector_is_given_up_and_tried_again(void **state)
{
	world_link();
	COLLECTOR->keeps_quiet = true;
	world_put(1, LINK_UP_OPEN, "one");
	world_pass(5900);
	assert_int_equal(COLLECTOR->pings, 0);
	world_pass(200);
	assert_int_equal(COLLECTOR->pings, 1);
	world_pass(5700);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	COLLECTOR->keeps_quiet = false;
	world_pass(600);
	assert_int_equal(COLLECTOR->opens, 2);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	collector_expect(COLLECTOR, "1:2 one; ");
	fakes_expect("announce 0; "); /* its own PONGs are not the clocks' */
}

static void
a_slow_collector_that_answers_is_left_alone(void **state)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	world_put(1, LINK_UP_OPEN, "one");
	world_pass(120000);
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->opens, 1);
	assert_in_range(COLLECTOR->pings, 15, 21);
	fakes_expect("");
}

static void
an_unanswered_ping_of_the_clocks_ends_the_connection(void **state)
{
	static const uint8_t ping[] = { 0x08, 0x01, 0x10, 0x07 };

	world_link();
	fakes.clocks.send(fakes.clocks_arg, ping, sizeof(ping));
	world_pass(60000);
	assert_int_equal(COLLECTOR->opens, 1);
	fakes_expect("clock 4; ");
	COLLECTOR->keeps_quiet = true;
	fakes.clocks.send(fakes.clocks_arg, ping, sizeof(ping));
	world_pass(11900);
	assert_int_equal(COLLECTOR->opens, 1);
	world_pass(400);
	assert_int_equal(COLLECTOR->opens, 2);
}

static void
an_idle_link_wakes_nobody(void **state)
{
	world_link();
	world_put(1, LINK_UP_OPEN, "one");
	world_pass(30000);
	assert_true(COLLECTOR->statuses >= 1);
	assert_true(fake_time_next() == UINT64_MAX);
}

static void
a_collector_that_does_not_answer_open_is_given_up(void **state)
{
	int sv;

	/* A listener that nobody serves. */
	sv = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sv, (struct sockaddr *)&world->to.sa,
	    world->to.sa_len), 0);
	assert_int_equal(listen(sv, 5), 0);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_CONNECTING);
	world_pass(39999);
	assert_int_equal(world_view()->state, UPLINK_CONNECTING);
	world_pass(1);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_non_null(strstr(world_view()->last_error, "no link within"));
	close(sv);
}

/* ---- compression ---- */

static void
blocks_are_compressed_both_ways_and_anew_on_each_connection(void **state)
{
	int i;

	world->settings.compression_level = 3;
	COLLECTOR->zstd = true;
	world_link();
	assert_true(world_view()->compressed);
	for (i = 0; i < 3; i++)
		world_commit(1, 20000);
	world_settle();
	collector_expect(COLLECTOR, "1:commit 20000; 1:commit 20000; "
	    "1:commit 20000; ");
	assert_true(COLLECTOR->blocks_were_compressed);
	assert_true(world_view()->bytes_sent < world_view()->bytes_up / 10);
	collector_say(COLLECTOR, 1, LINK_DOWN_COMMAND, "start");
	world_settle();
	collector_cut(COLLECTOR);
	world_pass(300);
	world_commit(1, 20000);
	collector_say(COLLECTOR, 1, LINK_DOWN_COMMAND, "stop");
	/* The stream goes through blocks that are no news, too. */
	collector_say_as(COLLECTOR, 2, 1, LINK_DOWN_COMMAND, "stop");
	collector_say(COLLECTOR, 1, LINK_DOWN_COMMAND, "again");
	world_settle();
	collector_expect(COLLECTOR, "1:commit 20000; ");
	fakes_expect("command 1 start; announce 0; command 1 stop; "
	    "command 1 again; ");
}

static void
compression_that_was_not_offered_is_refused(void **state)
{
	COLLECTOR->zstd = true;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_non_null(strstr(world_view()->last_error, "was not offered"));
}

/* ---- the end ---- */

static void
a_relay_that_stops_waits_until_all_has_arrived(void **state)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	world_put(1, LINK_UP_CLOSE, "");
	world_stop(2000);
	world_pass(1000);
	assert_int_equal(world->stopped, 0);
	COLLECTOR->acks_nothing = false;
	world_put(2, LINK_UP_CLOSE, "");
	world_settle();
	assert_int_equal(world->stopped, 1);
	assert_int_equal(world_view()->state, UPLINK_STOPPED);
	collector_expect(COLLECTOR, "1:3 ; 2:3 ; ");
	world_pass(5000);
	assert_int_equal(world->stopped, 1);
}

static void
a_relay_that_stops_waits_no_longer_than_it_may(void **state)
{
	world_link();
	COLLECTOR->acks_nothing = true;
	world_put(1, LINK_UP_CLOSE, "");
	world_stop(2000);
	world_pass(1999);
	assert_int_equal(world->stopped, 0);
	world_pass(1);
	assert_int_equal(world->stopped, 1);
	world_pass(60000);
	assert_int_equal(COLLECTOR->opens, 1);
}

static void
a_relay_without_a_collector_stops_at_once(void **state)
{
	world_start();
	world_stop(2000);
	world_settle();
	assert_int_equal(world->stopped, 1);
	uplink_try_now(world->u);
	world_pass(60000);
	assert_int_equal(world_view()->state, UPLINK_STOPPED);
}

static void
a_relay_in_perfettos_way_stops_at_once(void **state)
{
	COLLECTOR->knows_no_link = true;
	collector_listen(COLLECTOR, world->path);
	world_start();
	assert_int_equal(fakes.classics, 1);
	world_stop(2000);
	world_settle();
	assert_int_equal(world->stopped, 1);
	assert_int_equal(fakes.classics, 0);
	/* Producers that say goodbye now speak to nobody. */
	world_put(1, LINK_UP_CLOSE, "");
}

/* ---- connections that are given ---- */

static void
a_connection_from_outside_is_taken_and_replaced(void **state)
{
	struct uplink_setup setup = {
		.state_dirfd = -1,
		.loop = world->loop,
		.settings = &world->settings,
		.outbox = world->outbox,
	};
	char err[256];

	uplink_free(world->u);
	world->u = uplink_new(&setup, err, sizeof(err));
	assert_non_null(world->u);
	world_start();
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_true(fake_time_next() == UINT64_MAX);
	uplink_take(world->u, collector_socket(COLLECTOR));
	world_settle();
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	COLLECTOR->why = WHY(RESUMED);
	uplink_take(world->u, collector_socket(COLLECTOR));
	world_settle();
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_int_equal(COLLECTOR->opens, 2);
	collector_cut(COLLECTOR);
	world_pass(60000);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_int_equal(COLLECTOR->opens, 2);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_link_announces_producers_and_loses_nothing),
		TEST(what_producers_say_goes_up_in_order_and_is_acknowledged),
		TEST(commands_come_down_once_and_are_acknowledged),
		TEST(credit_holds_back_what_the_collector_has_no_room_for),
		TEST(what_found_no_room_is_told_where_it_would_have_stood),
		TEST(a_cut_is_resumed_and_nothing_comes_twice),
		TEST(what_was_lost_on_the_way_is_sent_again),
		TEST(commands_that_were_taken_before_a_cut_are_said),
		TEST(pauses_between_attempts_grow_and_are_short_again_after_success),
		TEST(a_changed_network_is_tried_at_once_but_not_each_time),
		TEST(a_collector_that_was_restarted_is_told_of_producers_anew),
		TEST(a_link_whose_grace_is_over_begins_anew),
		TEST(a_link_that_was_given_up_begins_anew),
		TEST(an_outbox_that_overflows_begins_a_new_link),
		TEST(so_does_one_whose_relay_was_killed_before),
		TEST(what_an_old_link_lost_is_told_the_next_collector),
		TEST(what_arrived_without_an_answer_is_not_lost_with_the_old_link),
		TEST(what_was_never_sent_cannot_have_arrived),
		TEST(a_relay_that_was_killed_goes_on_and_closes_what_it_had),
		TEST(a_killed_relay_that_is_not_resumed_forgets_what_it_had),
		TEST(a_collector_without_the_link_is_served_in_perfettos_way),
		TEST(perfettos_way_has_its_cause_and_ends_what_was_wrong_before),
		TEST(a_collector_that_was_replaced_by_perfettos_ends_the_link),
		TEST(who_wants_the_link_alone_goes_on_asking_for_it),
		TEST(who_wants_perfettos_way_never_asks_for_the_link),
		TEST(who_acknowledges_what_was_not_sent_is_cut_off),
		TEST(who_consumes_what_was_not_sent_is_cut_off),
		TEST(who_leaves_out_a_block_is_cut_off),
		TEST(who_sends_what_cannot_be_parsed_is_cut_off),
		TEST(who_resumes_what_cannot_be_is_not_believed),
		TEST(who_rejects_open_is_asked_again_later),
		TEST(a_silent_collector_is_given_up_and_tried_again),
		TEST(a_slow_collector_that_answers_is_left_alone),
		TEST(an_unanswered_ping_of_the_clocks_ends_the_connection),
		TEST(an_idle_link_wakes_nobody),
		TEST(a_collector_that_does_not_answer_open_is_given_up),
		TEST(blocks_are_compressed_both_ways_and_anew_on_each_connection),
		TEST(compression_that_was_not_offered_is_refused),
		TEST(a_relay_that_stops_waits_until_all_has_arrived),
		TEST(a_relay_that_stops_waits_no_longer_than_it_may),
		TEST(a_relay_without_a_collector_stops_at_once),
		TEST(a_relay_in_perfettos_way_stops_at_once),
		TEST(a_connection_from_outside_is_taken_and_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
