#include "tests/unit/buffer/tb_fixture.h"

static void
a_clone_has_all_and_leaves_the_source_alone(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	uint32_t i;

	for (i = 0; i < 10; i++)
		commit(tb, 1, 1, i, 0, "a486");
	commit(tb, 2, 1, 0, TO_NEXT | PATCH, "b1 c10");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a486", TB_LOSS_OVERWRITE);
	copy = trace_buffer_clone(tb);
	assert_non_null(copy);
	assert_int_equal(trace_buffer_unread(copy), trace_buffer_unread(tb));
	/* The clone begins where the source was. */
	trace_buffer_begin_read(copy);
	for (i = 0; i < 6; i++)
		expect_packet_of(copy, 1, 1, "a486", 0);
	expect_packet_of(copy, 2, 1, "b1", 0);
	expect_end(copy);
	for (i = 0; i < 6; i++)
		expect_packet_of(tb, 1, 1, "a486", 0);
	expect_packet_of(tb, 2, 1, "b1", 0);
	expect_end(tb);
	trace_buffer_free(copy);
}

static void
a_clone_outlives_its_source(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_RING), *copy;

	(void)state;
	commit(tb, 1, 1, 0, 0, "a1");
	copy = trace_buffer_clone(tb);
	trace_buffer_free(tb);
	trace_buffer_begin_read(copy);
	expect_packet_of(copy, 1, 1, "a1", 0);
	trace_buffer_free(copy);
}

static void
a_clone_can_only_be_read(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a4");
	copy = trace_buffer_clone(tb);
	assert_false(commit(copy, 1, 1, 1, 0, "b1"));
	assert_false(patch(copy, 1, 1, 0, 1, "z", false));
	assert_int_equal(trace_buffer_stats(copy)->patches_failed, 0);
	assert_int_equal(trace_buffer_stats(copy)->chunks_discarded, 0);
	trace_buffer_free(copy);
}

static void
a_clone_counts_its_own_reads(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, 0, "b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	copy = trace_buffer_clone(tb);
	assert_int_equal(trace_buffer_stats(copy)->chunks_written, 2);
	assert_int_equal(trace_buffer_stats(copy)->chunks_read, 0);
	assert_int_equal(trace_buffer_stats(copy)->bytes_read, 0);
	trace_buffer_begin_read(copy);
	expect_packet(copy, "b1", 0);
	assert_int_equal(trace_buffer_stats(copy)->chunks_read, 1);
	assert_int_equal(trace_buffer_stats(tb)->chunks_read, 1);
	trace_buffer_free(copy);
}

static void
take_moves_the_contents(void **state)
{
	struct trace_buffer *tb = *state, *taken;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, TO_NEXT, "b1");
	taken = trace_buffer_take(tb);
	assert_non_null(taken);
	assert_int_equal(trace_buffer_unread(tb), 0);
	trace_buffer_begin_read(tb);
	expect_end(tb);
	trace_buffer_begin_read(taken);
	expect_packet(taken, "a1", 0);
	expect_end(taken);
	trace_buffer_free(taken);
	/* The source goes on, without a gap. */
	commit(tb, 1, 1, 2, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c1", 0);
}

static void
clear_forgets_chunks_and_keeps_sequences(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 10; i++)
		commit(tb, 1, 1, i, 0, "a486");
	scrape(tb, 2, 1, 0, 0, "x1 y1", 100);
	trace_buffer_clear(tb);
	assert_int_equal(trace_buffer_unread(tb), 0);
	assert_int_equal(trace_buffer_sequences(tb), 2);
	trace_buffer_begin_read(tb);
	expect_end(tb);
	commit(tb, 1, 1, 10, 0, "b1");
	/* x1 is forgotten, what came after the scrape is not. */
	assert_true(commit(tb, 2, 1, 0, 0, "x1 y1"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "y1", 0);
	expect_end(tb);
}

static void
clear_opens_a_full_discard_buffer_again(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_DISCARD);

	(void)state;
	commit(tb, 1, 1, 0, 0, "a4000");
	assert_false(commit(tb, 1, 1, 1, 0, "b4000"));
	trace_buffer_clear(tb);
	assert_true(commit(tb, 1, 1, 2, 0, "c4000"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c4000", TB_LOSS_READ_GAP);
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_clone_has_all_and_leaves_the_source_alone),
		RULE(a_clone_outlives_its_source),
		RULE(a_clone_can_only_be_read),
		RULE(a_clone_counts_its_own_reads),
		RULE(take_moves_the_contents),
		RULE(clear_forgets_chunks_and_keeps_sequences),
		RULE(clear_opens_a_full_discard_buffer_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
