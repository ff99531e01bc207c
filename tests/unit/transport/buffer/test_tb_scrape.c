/* Incomplete chunks: scraped while they were written, committed later. */
#include "tests/unit/transport/buffer/tb_fixture.h"

static const struct tb_stats *
stats(struct trace_buffer *tb)
{
	return trace_buffer_stats(tb);
}

static void
the_last_fragment_of_a_scraped_chunk_is_held_back(void **state)
{
	struct trace_buffer *tb = *state;

	assert_true(scrape(tb, 1, 1, 0, 0, "a1 b1 c1", 200));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_end(tb);
}

static void
the_whole_chunk_is_reserved(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 200);
	assert_int_equal(stats(tb)->bytes_written, HEADER + 200);
	/* Grows in place up to the last byte reserved, and not beyond. */
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b195"));
	assert_int_equal(stats(tb)->bytes_written, HEADER + 200);
	assert_int_equal(stats(tb)->chunks_written, 1);
	assert_int_equal(stats(tb)->chunks_rewritten, 1);
	scrape(tb, 1, 1, 1, 0, "a1 b1", 200);
	assert_false(commit(tb, 1, 1, 1, 0, "a1 b197"));
	assert_int_equal(stats(tb)->abi_violations, 1);
}

static void
a_scraped_chunk_stalls_its_sequence_until_its_commit(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 100);
	commit(tb, 1, 1, 1, 0, "c1");
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	commit(tb, 1, 1, 0, 0, "a1 b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_end(tb);
}

static void
a_scraped_chunk_not_yet_read_is_extended_in_place(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, 0, "a1 b1 c1", 100);
	commit(tb, 2, 1, 0, 0, "x1");
	assert_true(commit(tb, 1, 1, 0, TO_NEXT, "a1 b1 c1 d1"));
	commit(tb, 1, 1, 1, FROM_PREV, "e1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1e1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->chunks_rewritten, 1);
	assert_int_equal(stats(tb)->chunks_relocated, 0);
	assert_int_equal(stats(tb)->chunks_written, 3);
	expect_balance(tb, 0, 0, 0);
}

static void
a_scraped_chunk_read_in_part_goes_on_where_it_was(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, 0, "a1 b1 c1", 100);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	commit(tb, 1, 1, 0, 0, "a1 b1 c1 d1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->chunks_rewritten, 1);
}

static void
a_scraped_chunk_fully_read_is_written_anew_at_the_write_position(void **state)
{
	struct trace_buffer *tb = *state;
	uint64_t reserved = HEADER + 200;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 200);
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->chunks_read, 1);
	commit(tb, 2, 1, 1, 0, "y1");
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b1 c1"));
	assert_int_equal(stats(tb)->chunks_relocated, 1);
	assert_int_equal(stats(tb)->chunks_rewritten, 0);
	/* One chunk that moved: written once, its bytes twice. */
	assert_int_equal(stats(tb)->chunks_written, 3);
	assert_int_equal(stats(tb)->bytes_written, reserved + 2 * outer("x1") +
	    outer("a1 b1 c1"));
	assert_int_equal(stats(tb)->bytes_read, reserved + outer("x1"));
	expect_balance(tb, 2, outer("y1") + outer("a1 b1 c1"), 0);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "y1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_end(tb);
	expect_balance(tb, 0, 0, 0);
}

static void
a_discard_buffer_extends_in_place_whatever_was_read(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_DISCARD);

	(void)state;
	scrape(tb, 1, 1, 0, 0, "a1 b1", 200);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b1"));
	assert_int_equal(stats(tb)->chunks_rewritten, 1);
	assert_int_equal(stats(tb)->chunks_relocated, 0);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_end(tb);
	trace_buffer_free(tb);
}

static void
a_chunk_may_be_scraped_more_than_once(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 200);
	/* The same again is no completion. */
	assert_true(scrape(tb, 1, 1, 0, 0, "a1 b1", 200));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	assert_true(scrape(tb, 1, 1, 0, 0, "a1 b1 c1", 200));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_end(tb);
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b1 c1"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->abi_violations, 0);
	assert_int_equal(stats(tb)->chunks_relocated, 2);
}

static void
the_continuation_flags_of_a_held_back_fragment_do_not_count(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 b1", 100);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->readaheads_failed, 0);
}

static void
reassembly_waits_for_a_held_back_continuation(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1");
	scrape(tb, 1, 1, 1, FROM_PREV, "b1", 100);
	commit(tb, 1, 1, 2, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_end(tb);
	commit(tb, 1, 1, 1, FROM_PREV, "b2 c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1b2", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
}

static void
a_recommit_may_not_shrink_or_lose_its_continuations(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 0, FROM_PREV, "a1 b1 c1", 100);
	assert_false(commit(tb, 1, 1, 0, FROM_PREV, "a1"));
	assert_false(commit(tb, 1, 1, 0, 0, "a1 b1 c1"));
	assert_int_equal(stats(tb)->abi_violations, 2);
	assert_true(commit(tb, 1, 1, 0, FROM_PREV, "a1 b1 c1"));
	/* Complete now: the same is harmless, anything else is not. */
	assert_true(commit(tb, 1, 1, 0, FROM_PREV, "a1 b1 c1"));
	assert_false(commit(tb, 1, 1, 0, FROM_PREV, "a1 b1 c1 d1"));
	assert_false(scrape(tb, 1, 1, 0, FROM_PREV, "a1 b1 c1 d1", 50));
	assert_int_equal(stats(tb)->abi_violations, 4);
	assert_int_equal(stats(tb)->chunks_written, 1);
	assert_int_equal(stats(tb)->chunks_rewritten, 1);
}

static void
a_commit_of_a_chunk_that_was_consumed_is_too_late(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 3, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	assert_false(commit(tb, 1, 1, 3, 0, "a1"));
	assert_false(commit(tb, 1, 1, 2, 0, "z1"));
	assert_int_equal(stats(tb)->chunks_discarded, 2);
	assert_int_equal(stats(tb)->abi_violations, 0);
	commit(tb, 1, 1, 4, 0, "b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_end(tb);
}

static void
the_end_of_an_overwritten_scraped_chunk_is_not_lost(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 488);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	for (i = 0; i < 9; i++)
		commit(tb, 2, 1, i, 0, "x486");
	/* Read but for what was not there yet: nothing was overwritten. */
	assert_int_equal(stats(tb)->chunks_read, 1);
	assert_int_equal(stats(tb)->chunks_overwritten, 1);
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b1 c1"));
	commit(tb, 1, 1, 1, 0, "d1");
	trace_buffer_begin_read(tb);
	while (i-- > 2)
		expect_packet(tb, "x486", i == 8 ? TB_LOSS_OVERWRITE : 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
	expect_end(tb);
}

static void
the_end_that_never_comes_is_a_loss(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 488);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	for (i = 0; i < 8; i++)
		commit(tb, 2, 1, i, 0, "x486");
	commit(tb, 1, 1, 1, 0, "d1");
	trace_buffer_begin_read(tb);
	for (i = 1; i < 8; i++)
		expect_packet(tb, "x486", i == 1 ? TB_LOSS_OVERWRITE : 0);
	expect_packet(tb, "d1", TB_LOSS_OVERWRITE);
	/* And then it is too late for it. */
	assert_false(commit(tb, 1, 1, 0, 0, "a1 b1"));
	assert_int_equal(stats(tb)->chunks_discarded, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(the_last_fragment_of_a_scraped_chunk_is_held_back),
		RULE(the_whole_chunk_is_reserved),
		RULE(a_scraped_chunk_stalls_its_sequence_until_its_commit),
		RULE(a_scraped_chunk_not_yet_read_is_extended_in_place),
		RULE(a_scraped_chunk_read_in_part_goes_on_where_it_was),
		RULE(a_scraped_chunk_fully_read_is_written_anew_at_the_write_position),
		RULE(a_discard_buffer_extends_in_place_whatever_was_read),
		RULE(a_chunk_may_be_scraped_more_than_once),
		RULE(the_continuation_flags_of_a_held_back_fragment_do_not_count),
		RULE(reassembly_waits_for_a_held_back_continuation),
		RULE(a_recommit_may_not_shrink_or_lose_its_continuations),
		RULE(a_commit_of_a_chunk_that_was_consumed_is_too_late),
		RULE(the_end_of_an_overwritten_scraped_chunk_is_not_lost),
		RULE(the_end_that_never_comes_is_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
