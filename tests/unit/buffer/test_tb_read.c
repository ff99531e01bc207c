#include "tests/unit/buffer/tb_fixture.h"

static int
setup(void **state)
{
	*state = trace_buffer_new(4096, TB_RING);
	return *state == NULL;
}

static int
teardown(void **state)
{
	trace_buffer_free(*state);
	return 0;
}

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
a_packet_is_reassembled_across_chunks(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a10 b20");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "c30");
	commit(tb, 2, 1, 0, 0, "x1");
	commit(tb, 1, 1, 2, FROM_PREV, "d5 e6");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a10", 0);
	expect_packet(tb, "b20c30d5", 0);
	expect_packet(tb, "x1", 0);
	expect_packet(tb, "e6", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_succeeded, 1);
	assert_int_equal(trace_buffer_stats(tb)->chunks_read, 4);
	assert_int_equal(trace_buffer_unread(tb), 0);
}

static void
a_ring_overwrites_the_oldest_and_says_so(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	/* 8 chunks of 512 bytes fill the page */
	for (i = 0; i < 10; i++)
		commit(tb, 1, 1, i, 0, "a486");
	assert_int_equal(outer("a486"), 512);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a486", TB_LOSS_OVERWRITE);
	for (i = 0; i < 7; i++)
		expect_packet(tb, "a486", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->chunks_overwritten, 2);
	assert_int_equal(trace_buffer_stats(tb)->write_wrap_count, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_buffer_has_no_packets,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(
		    packets_of_a_sequence_come_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    sequences_come_in_the_order_of_their_commits, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    chunks_committed_out_of_order_are_read_in_order, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    a_packet_is_reassembled_across_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_ring_overwrites_the_oldest_and_says_so, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
