/* Fragmentation, and the losses it can end in. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport/buffer/tb_fixture.h"

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
	/* The rest of the last chunk waits for its turn. */
	expect_packet(tb, "x1", 0);
	expect_packet(tb, "e6", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_succeeded, 1);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_failed, 0);
	expect_balance(tb, 0, 0, 0);
	assert_int_equal(trace_buffer_unread(tb), 0);
}

static void
one_chunk_ends_a_packet_and_begins_the_next(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "b1 c1");
	commit(tb, 1, 1, 2, FROM_PREV, "d1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1b1", 0);
	expect_packet(tb, "c1d1", 0);
	expect_end(tb);
}

static void
an_empty_chunk_in_the_middle_is_skipped(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1");
	commit(tb, 1, 1, 1, 0, "");
	commit(tb, 1, 1, 2, FROM_PREV, "b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1b1", 0);
	expect_end(tb);
	expect_balance(tb, 0, 0, 0);
}

static void
a_packet_that_is_not_finished_stalls_only_its_sequence(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1 b1");
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	commit(tb, 1, 1, 1, FROM_PREV, "c1");
	/* Not in this pass any more. */
	expect_end(tb);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1c1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_failed, 1);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_succeeded, 1);
}

static void
a_gap_within_a_packet_loses_it_and_nothing_else(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1 b1");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "c1");
	/* 2 is missing */
	commit(tb, 1, 1, 3, FROM_PREV, "d1 e1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "e1", TB_LOSS_REASSEMBLY_GAP | TB_LOSS_READ_GAP |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->readaheads_failed, 1);
}

static void
a_packet_that_is_not_continued_is_a_broken_chain(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1 b1");
	commit(tb, 1, 1, 1, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "c1", TB_LOSS_REASSEMBLY_BROKEN_CHAIN);
	expect_end(tb);
}

static void
a_continuation_that_nobody_began_is_an_orphan(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, FROM_PREV, "a1 b1");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "c1");
	commit(tb, 1, 1, 2, 0, "d1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "d1", TB_LOSS_ORPHAN_CONTINUATION);
	expect_end(tb);
}

static void
the_drop_marker_ends_a_packet_with_writer_abort(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a1 b1");
	commit(tb, 1, 1, 1, FROM_PREV, "!");
	commit(tb, 1, 1, 2, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "c1", TB_LOSS_WRITER_ABORT);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->trace_writer_packet_loss, 1);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 0);
}

static void
the_drop_marker_is_reported_after_what_came_before_it(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1 b1 !");
	commit(tb, 1, 1, 1, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", TB_LOSS_WRITER_ABORT);
	expect_end(tb);
}

static void
a_corrupt_chunk_keeps_its_good_fragments(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1 b1 ? x1");
	commit(tb, 1, 1, 1, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", TB_LOSS_CHUNK_CORRUPTED);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 1);
}

static void
fewer_fragments_than_the_header_says_is_a_violation(void **state)
{
	struct trace_buffer *tb = *state;

	commit_bytes(tb, 0, 3, 0, "\1a\1b", 4);
	commit(tb, 1, 1, 1, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", TB_LOSS_CHUNK_CORRUPTED);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 1);
}

static void
bytes_after_the_last_fragment_are_not_kept(void **state)
{
	struct trace_buffer *tb = *state;

	commit_bytes(tb, 0, 1, 0, "\1a\377\377\377\377\377\377\377", 9);
	assert_int_equal(trace_buffer_stats(tb)->bytes_written, outer("a1"));
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 0);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
}

static void
a_corrupt_last_fragment_is_not_waited_for(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 ?");
	commit(tb, 1, 1, 1, FROM_PREV, "b1 c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "c1", TB_LOSS_CHUNK_CORRUPTED |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_end(tb);
}

static void
sizes_may_be_redundant_varints(void **state)
{
	struct trace_buffer *tb = *state;

	commit_bytes(tb, 0, 4, 0, "\201\200\200\0a"
	    "\201\200\200\200\200\200\200\200\200\0b"
	    "\201\200\0c\201\0d", 5 + 11 + 4 + 3);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c1", 0);
	expect_packet(tb, "d1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 0);
}

static void
an_endless_varint_is_a_violation(void **state)
{
	struct trace_buffer *tb = *state;
	uint8_t bytes[64];

	memset(bytes, 0xff, sizeof(bytes));
	commit_bytes(tb, 0, 1, 0, bytes, sizeof(bytes));
	commit_bytes(tb, 1, 1, 0, bytes, 3);
	commit(tb, 1, 1, 2, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", TB_LOSS_CHUNK_CORRUPTED);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 2);
}

static void
fragments_survive_the_wrap_of_the_ring(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	for (i = 0; i < 7; i++)
		commit(tb, 2, 1, i, 0, "x486");
	commit(tb, 1, 1, 0, TO_NEXT, "a400");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT, "b400");
	commit(tb, 1, 1, 2, FROM_PREV, "c400");
	assert_int_equal(trace_buffer_stats(tb)->write_wrap_count, 1);
	trace_buffer_begin_read(tb);
	for (i = 2; i < 7; i++)
		expect_packet(tb, "x486", i == 2 ? TB_LOSS_OVERWRITE : 0);
	expect_packet(tb, "a400b400c400", 0);
	expect_end(tb);
}

static void
a_packet_of_64_mib_and_more_is_reassembled(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(80 << 20, TB_RING);
	uint32_t i, n = 17000; /* 66 MiB */
	struct tb_packet p;

	(void)state;
	for (i = 0; i < n; i++)
		assert_true(commit(tb, 1, 1, i, (i > 0 ? FROM_PREV : 0) |
		    (i + 1 < n ? TO_NEXT : 0), "a4070"));
	trace_buffer_begin_read(tb);
	assert_true(trace_buffer_read(tb, &p));
	assert_int_equal(p.size, n * 4070ul);
	assert_int_equal(p.n_slices, n);
	assert_int_equal(p.loss, 0);
	assert_false(trace_buffer_read(tb, &p));
	trace_buffer_free(tb);
}

static void
a_long_packet_that_comes_in_slowly_is_walked_once(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(16 << 20, TB_RING);
	uint32_t i, n = 100000;
	struct tb_packet p;

	(void)state;
	/* A pass after every chunk: walking it all each time takes minutes. */
	for (i = 0; i < n; i++) {
		commit(tb, 1, 1, i, (i > 0 ? FROM_PREV : 0) |
		    (i + 1 < n ? TO_NEXT : 0), "a100");
		trace_buffer_begin_read(tb);
		if (i + 1 < n)
			expect_end(tb);
	}
	assert_true(trace_buffer_read(tb, &p));
	assert_int_equal(p.size, n * 100ul);
	trace_buffer_free(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_packet_is_reassembled_across_chunks),
		RULE(one_chunk_ends_a_packet_and_begins_the_next),
		RULE(an_empty_chunk_in_the_middle_is_skipped),
		RULE(a_packet_that_is_not_finished_stalls_only_its_sequence),
		RULE(a_gap_within_a_packet_loses_it_and_nothing_else),
		RULE(a_packet_that_is_not_continued_is_a_broken_chain),
		RULE(a_continuation_that_nobody_began_is_an_orphan),
		RULE(the_drop_marker_ends_a_packet_with_writer_abort),
		RULE(the_drop_marker_is_reported_after_what_came_before_it),
		RULE(a_corrupt_chunk_keeps_its_good_fragments),
		RULE(fewer_fragments_than_the_header_says_is_a_violation),
		RULE(bytes_after_the_last_fragment_are_not_kept),
		RULE(a_corrupt_last_fragment_is_not_waited_for),
		RULE(sizes_may_be_redundant_varints),
		RULE(an_endless_varint_is_a_violation),
		RULE(fragments_survive_the_wrap_of_the_ring),
		RULE(a_packet_of_64_mib_and_more_is_reassembled),
		RULE(a_long_packet_that_comes_in_slowly_is_walked_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
