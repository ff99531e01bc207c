/* Sequences: ids, gaps, and what is remembered of writers that are gone. */
#include "tests/unit/transport/buffer/tb_fixture.h"
#include "tests/unit/transport/buffer/tb_overhead.h"

static void
the_first_packet_of_a_sequence_reports_no_loss(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 77, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
}

static void
a_gap_in_chunk_ids_is_a_loss(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 2, 0, "b1 c1");
	commit(tb, 1, 1, 3, 0, "d1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", TB_LOSS_READ_GAP);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
}

static void
a_gap_across_drains_is_seen(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	commit(tb, 1, 1, 5, 0, "b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", TB_LOSS_READ_GAP);
}

static void
ids_wrap_around(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i, id = UINT32_MAX - 3;

	for (i = 0; i < 8; i++)
		assert_true(commit(tb, 1, 1, id++, i % 2 == 0 ? TO_NEXT :
		    FROM_PREV, "a1"));
	commit(tb, 2, 1, 0, 0, "x1");
	commit(tb, 2, 1, UINT32_MAX, 0, "w1");
	trace_buffer_begin_read(tb);
	for (i = 0; i < 4; i++)
		expect_packet(tb, "a2", 0);
	expect_packet(tb, "w1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	assert_int_equal(
	    trace_buffer_stats(tb)->chunks_committed_out_of_order, 1);
}

static void
keys_are_64_and_32_bits_wide(void **state)
{
	struct trace_buffer *tb = *state;
	uint64_t p = UINT64_C(0x123456789abcdef0);

	commit(tb, p, 0x80000001, 0, 0, "a1");
	commit(tb, p & UINT32_MAX, 0x80000001, 0, 0, "b1");
	commit(tb, p, 1, 0, 0, "c1");
	assert_int_equal(trace_buffer_sequences(tb), 3);
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, p, 0x80000001, "a1", 0);
	expect_packet_of(tb, p & UINT32_MAX, 0x80000001, "b1", 0);
	expect_packet_of(tb, p, 1, "c1", 0);
}

static void
loss_of_one_sequence_is_not_reported_by_another(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 2, 0, 0, "b1");
	commit(tb, 1, 1, 2, 0, "c1");
	commit(tb, 1, 2, 1, 0, "d1");
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a1", 0);
	expect_packet_of(tb, 1, 2, "b1", 0);
	expect_packet_of(tb, 1, 1, "c1", TB_LOSS_READ_GAP);
	expect_packet_of(tb, 1, 2, "d1", 0);
}

static void
the_last_1024_empty_sequences_are_remembered(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	/* Writers 0 to 1151 come, write once, are read: kept so far. */
	for (i = 0; i < 1152; i++) {
		commit(tb, 1, i, 0, 0, "a1");
		trace_buffer_begin_read(tb);
		expect_packet(tb, "a1", 0);
		expect_end(tb);
	}
	assert_int_equal(trace_buffer_sequences(tb), 1152);
	/* One more empty one is too many, seen with the next write. */
	commit(tb, 2, 0, 0, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	commit(tb, 2, 1, 0, 0, "a1");
	assert_int_equal(trace_buffer_sequences(tb), 1025);
	/* Writer 128 is forgotten, 129 is not: it has a gap. */
	commit(tb, 1, 128, 2, 0, "b1");
	commit(tb, 1, 129, 2, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet_of(tb, 1, 128, "b1", 0);
	expect_packet_of(tb, 1, 129, "c1", TB_LOSS_READ_GAP);
}

static void
a_writer_s_number_that_is_used_again_begins_another_sequence(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, 0, "b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	trace_buffer_writer_gone(tb, 1, 1);
	/* What its writer committed before it ended may come after that. */
	assert_true(commit(tb, 1, 1, 2, 0, "c1"));
	assert_true(commit(tb, 1, 1, 0, 0, "d1"));
	assert_true(commit(tb, 1, 1, 1, 0, "e1"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
	expect_packet(tb, "e1", 0);
	expect_end(tb);
	/* Only the next one's end lets another begin. */
	assert_false(commit(tb, 1, 1, 0, 0, "f1"));
	assert_int_equal(trace_buffer_stats(tb)->chunks_discarded, 1);
}

static void
a_number_used_again_hides_nothing_of_the_one_before(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, TO_NEXT | PATCH, "b1 c9");
	commit(tb, 1, 1, 2, FROM_PREV, "d9 e1");
	trace_buffer_writer_gone(tb, 1, 1);
	assert_true(commit(tb, 1, 1, 0, TO_NEXT | PATCH, "f9"));
	assert_true(commit(tb, 1, 1, 1, FROM_PREV, "g9"));
	/* A patch is for the newest. */
	assert_true(patch(tb, 1, 1, 0, 1, "zzzz", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "e1", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "z4f5g9", 0);
	expect_end(tb);
	/* Both are forgotten like others. */
	for (i = 0; i < 3000; i++)
		commit(tb, 2, i, 0, 0, "x1");
	assert_true(trace_buffer_sequences(tb) < 1152 + 4096 / 24 + 1);
	assert_true(commit(tb, 1, 1, 7, 0, "h1"));
}

static void
a_million_short_lived_threads_do_not_grow_it(void **state)
{
	struct trace_buffer *tb = *state;
	size_t overhead = 0;
	uint32_t i;

	for (i = 0; i < 1000000; i++) {
		commit(tb, i / 100, i, 0, 0, "a1");
		if (i == 10000)
			overhead = tb_overhead(tb);
	}
	assert_int_equal(tb_overhead(tb), overhead);
	assert_true(trace_buffer_sequences(tb) < 1152 + 4096 / 24 + 1);
}

/* One writer is enough for it: it ends and begins again with each chunk. */
static void
a_number_used_again_and_again_does_not_grow_it(void **state)
{
	enum tb_policy policies[] = { TB_RING, TB_DISCARD };
	struct trace_buffer *tb, *copy;
	uint32_t i, k, stored;

	(void)state;
	for (k = 0; k < 2; k++) {
		tb = trace_buffer_new(16 << 20, policies[k]);
		for (stored = 0, i = 0; i < 200000; i++) {
			stored += commit(tb, 1, 1, 0, 0, "");
			trace_buffer_writer_gone(tb, 1, 1);
		}
		assert_true(stored > 16000);
		assert_true(trace_buffer_sequences(tb) < 16384 + 1152);
		assert_true(tb_overhead(tb) < 5 << 20);
		assert_int_equal(stored, k == 0 ? (int)i :
		    (int)trace_buffer_stats(tb)->chunks_written);
		assert_non_null(copy = trace_buffer_clone(tb));
		while (trace_buffer_fill(copy, 4096) == TB_FILL_MORE)
			continue;
		assert_true(tb_overhead(copy) < 5 << 20);
		trace_buffer_free(copy);
		trace_buffer_free(tb);
	}
}

static void
bookkeeping_is_below_2_percent_for_4_kib_chunks(void **state)
{
	uint64_t size = 16 << 20;
	struct trace_buffer *tb = trace_buffer_new(size, TB_RING);
	uint32_t i;

	(void)state;
	for (i = 0; i < 20000; i++)
		commit(tb, i % 100, 1, i / 100, 0, "a4070");
	assert_true((tb_overhead(tb) + (size >> 12) * HEADER) * 50 <
	    size);
	trace_buffer_free(tb);
}

static void
nothing_is_allocated_once_warm(void **state)
{
	struct trace_buffer *tb = *state;
	size_t warm = 0;
	uint32_t i, round;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < 60; i++)
			commit(tb, i % 10, 1, round * 6 + i / 10,
			    i % 20 < 10 ? TO_NEXT : FROM_PREV, "a20");
		trace_buffer_begin_read(tb);
		for (i = 0; i < 30; i++)
			expect_packet(tb, "a40", 0);
		expect_end(tb);
		if (round == 1)
			warm = tb_overhead(tb);
	}
	assert_int_equal(tb_overhead(tb), warm);
}

static void
a_descending_or_random_row_of_ids_is_sorted(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(1 << 20, TB_RING);
	uint32_t i;

	(void)state;
	for (i = 0; i < 10000; i++)
		commit(tb, 1, 1, 10000 - i, 0, "a1");
	for (i = 0; i < 10000; i++)
		/* 7919 is prime to 10000 */
		commit(tb, 2, 1, i * 7919 % 10000, 0, "b1");
	assert_int_equal(trace_buffer_stats(tb)->chunks_written, 20000);
	trace_buffer_begin_read(tb);
	for (i = 0; i < 10000; i++)
		expect_packet_of(tb, 1, 1, "a1", 0);
	for (i = 0; i < 10000; i++)
		expect_packet_of(tb, 2, 1, "b1", 0);
	expect_end(tb);
	trace_buffer_free(tb);
}

static void
a_commit_far_out_of_order_in_a_huge_sequence_is_not_stored(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(32 << 20, TB_RING);
	uint32_t i, n = 600000;

	(void)state;
	for (i = 0; i < n; i++)
		commit(tb, 1, 1, i * 2, 0, "");
	/* Moving half of 600,000 places for each would hold others up. */
	assert_false(commit(tb, 1, 1, n + 1, 0, "a1"));
	assert_int_equal(trace_buffer_stats(tb)->chunks_discarded, 1);
	/* Near either end it is as good as any. */
	assert_true(commit(tb, 1, 1, 1, 0, "b1"));
	assert_true(commit(tb, 1, 1, 2 * n - 3, 0, "c1"));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", TB_LOSS_READ_GAP);
	expect_end(tb);
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(the_first_packet_of_a_sequence_reports_no_loss),
		RULE(a_gap_in_chunk_ids_is_a_loss),
		RULE(a_gap_across_drains_is_seen),
		RULE(ids_wrap_around),
		RULE(keys_are_64_and_32_bits_wide),
		RULE(loss_of_one_sequence_is_not_reported_by_another),
		RULE(the_last_1024_empty_sequences_are_remembered),
		RULE(a_writer_s_number_that_is_used_again_begins_another_sequence),
		RULE(a_number_used_again_hides_nothing_of_the_one_before),
		RULE(a_million_short_lived_threads_do_not_grow_it),
		RULE(a_number_used_again_and_again_does_not_grow_it),
		RULE(bookkeeping_is_below_2_percent_for_4_kib_chunks),
		RULE(nothing_is_allocated_once_warm),
		RULE(a_commit_far_out_of_order_in_a_huge_sequence_is_not_stored),
		RULE(a_descending_or_random_row_of_ids_is_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
