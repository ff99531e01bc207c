#include "tests/unit/transport/buffer/tb_fixture.h"

static void
an_empty_buffer_has_no_packets(void **state)
{
	struct trace_buffer *tb = *state;

	trace_buffer_begin_read(tb);
	expect_end(tb);
}

static void
packets_of_a_sequence_come_in_order(void **state)
{
	struct trace_buffer *tb = *state;

	assert_true(commit(tb, 1, 1, 0, 0, "a10 b200"));
	assert_true(commit(tb, 1, 1, 1, 0, "c1"));
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a10", 0);
	expect_packet_of(tb, 1, 1, "b200", 0);
	expect_packet_of(tb, 1, 1, "c1", 0);
	expect_end(tb);
}

static void
sequences_come_in_the_order_of_their_commits(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1 b1");
	commit(tb, 2, 1, 0, 0, "c1");
	commit(tb, 1, 2, 0, 0, "d1");
	commit(tb, 1, 1, 1, 0, "e1");
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a1", 0);
	expect_packet_of(tb, 1, 1, "b1", 0);
	expect_packet_of(tb, 2, 1, "c1", 0);
	expect_packet_of(tb, 1, 2, "d1", 0);
	expect_packet_of(tb, 1, 1, "e1", 0);
	expect_end(tb);
}

static void
chunks_committed_out_of_order_are_read_in_order(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 2, 2, 0, 0, "b1");
	commit(tb, 2, 2, 2, 0, "d1");
	commit(tb, 1, 1, 1, 0, "x1");
	commit(tb, 2, 2, 1, 0, "c1");
	assert_int_equal(
	    trace_buffer_stats(tb)->chunks_committed_out_of_order, 1);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
}

static void
the_inner_walk_stops_at_the_chunk_of_the_outer_one(void **state)
{
	struct trace_buffer *tb = *state;

	/* Buffer order B3 A2 B2, as the specification draws it. */
	commit(tb, 2, 1, 3, 0, "z1");
	commit(tb, 1, 1, 2, 0, "a1");
	commit(tb, 2, 1, 2, 0, "y1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "y1", 0);
	expect_packet(tb, "z1", 0);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
}

static void
reading_is_destructive(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1 b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	trace_buffer_begin_read(tb);
	expect_end(tb);
}

static void
empty_packets_are_not_handed_out(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a0 b1 c0");
	commit(tb, 1, 1, 1, TO_NEXT, "d0");
	commit(tb, 1, 1, 2, FROM_PREV, "e0 f1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "f1", 0);
	expect_end(tb);
	expect_balance(tb, 0, 0, 0);
}

static void
reading_goes_on_after_a_write_without_a_new_begin(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1 b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	commit(tb, 2, 1, 0, 0, "c1");
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_end(tb);
	commit(tb, 1, 1, 1, 0, "d1");
	expect_packet(tb, "d1", 0);
	expect_end(tb);
}

static void
the_cursor_moves_when_writes_pass_it(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 8; i++)
		commit(tb, 1, 1, i, 0, "a243 b241");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a243", 0);
	/* The cursor is in chunk 0; 0 to 4 go. */
	for (; i < 13; i++)
		commit(tb, 1, 1, i, 0, "c243 d241");
	expect_packet(tb, "a243", TB_LOSS_OVERWRITE);
	expect_packet(tb, "b241", 0);
	for (i = 6; i < 8; i++) {
		expect_packet(tb, "a243", 0);
		expect_packet(tb, "b241", 0);
	}
	for (i = 8; i < 13; i++) {
		expect_packet(tb, "c243", 0);
		expect_packet(tb, "d241", 0);
	}
	expect_end(tb);
}

static void
whole_lap_of_writes_between_two_reads_is_survived(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 8; i++)
		commit(tb, 1, 1, i, 0, "a486");
	trace_buffer_begin_read(tb);
	for (i = 0; i < 5; i++)
		expect_packet(tb, "a486", 0);
	for (i = 8; i < 29; i++)
		commit(tb, 1, 1, i, 0, "b486");
	expect_packet(tb, "b486", TB_LOSS_OVERWRITE);
	for (i = 1; i < 8; i++)
		expect_packet(tb, "b486", 0);
	expect_end(tb);
}

static void
what_was_read_makes_room_without_loss(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		assert_false(trace_buffer_would_lose(tb, 1000));
		commit(tb, 1, 1, i, 0, "a1000");
		trace_buffer_begin_read(tb);
		expect_packet(tb, "a1000", 0);
		expect_end(tb);
		assert_int_equal(trace_buffer_unread(tb), 0);
	}
	assert_int_equal(trace_buffer_stats(tb)->chunks_overwritten, 0);
	assert_int_equal(trace_buffer_stats(tb)->chunks_read, 1000);
}

static void
unread_counts_chunks_that_hold_something_unread(void **state)
{
	struct trace_buffer *tb = *state;

	assert_int_equal(trace_buffer_unread(tb), 0);
	commit(tb, 1, 1, 0, 0, "a10 b10");
	commit(tb, 2, 1, 0, TO_NEXT, "c10");
	commit(tb, 3, 1, 0, 0, "");
	assert_int_equal(trace_buffer_unread(tb), outer("a10 b10") +
	    outer("c10"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a10", 0);
	assert_int_equal(trace_buffer_unread(tb), outer("a10 b10") +
	    outer("c10"));
	expect_packet(tb, "b10", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_unread(tb), outer("c10"));
}

static void
a_stalled_chunk_is_not_walked_around_chunk_by_chunk(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(8 << 20, TB_RING);
	uint32_t i, passes;

	(void)state;
	commit(tb, 9, 9, 0, TO_NEXT, "s1");
	/*
	 * 60,000 consumed chunks behind a stalled one, drained one by one: if
	 * each pass met them all, this would take minutes.
	 */
	for (passes = 0; passes < 60000; passes++) {
		commit(tb, 1, 1, passes, 0, "a1");
		trace_buffer_begin_read(tb);
		expect_packet(tb, "a1", 0);
		expect_end(tb);
	}
	for (i = 0; i < 60000; i++) {
		trace_buffer_begin_read(tb);
		expect_end(tb);
	}
	commit(tb, 9, 9, 1, FROM_PREV, "t1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "s1t1", 0);
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(an_empty_buffer_has_no_packets),
		RULE(packets_of_a_sequence_come_in_order),
		RULE(sequences_come_in_the_order_of_their_commits),
		RULE(chunks_committed_out_of_order_are_read_in_order),
		RULE(the_inner_walk_stops_at_the_chunk_of_the_outer_one),
		RULE(reading_is_destructive),
		RULE(empty_packets_are_not_handed_out),
		RULE(reading_goes_on_after_a_write_without_a_new_begin),
		RULE(the_cursor_moves_when_writes_pass_it),
		RULE(whole_lap_of_writes_between_two_reads_is_survived),
		RULE(what_was_read_makes_room_without_loss),
		RULE(unread_counts_chunks_that_hold_something_unread),
		RULE(a_stalled_chunk_is_not_walked_around_chunk_by_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
