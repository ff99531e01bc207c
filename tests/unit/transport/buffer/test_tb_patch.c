#include "tests/unit/transport/buffer/tb_fixture.h"

static void
a_chunk_that_needs_patching_stalls_its_sequence_only(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 b5");
	commit(tb, 1, 1, 1, FROM_PREV, "c1");
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	/* a: size and byte; b: size */
	assert_true(patch(tb, 1, 1, 0, 3, "zzzz", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "z4b1c1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->patches_succeeded, 1);
	assert_int_equal(trace_buffer_stats(tb)->patches_failed, 0);
}

static void
more_patches_to_come_keep_the_stall(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "b8");
	commit(tb, 1, 1, 1, FROM_PREV, "c1");
	assert_true(patch(tb, 1, 1, 0, 1, "xxxx", true));
	trace_buffer_begin_read(tb);
	expect_end(tb);
	assert_true(patch(tb, 1, 1, 0, 5, "yyyy", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "x4y4c1", 0);
	assert_int_equal(trace_buffer_stats(tb)->patches_succeeded, 2);
}

static void
reassembly_stops_at_a_chunk_in_the_middle_that_needs_patching(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT, "a4");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT | PATCH, "b4");
	commit(tb, 1, 1, 2, FROM_PREV, "c4 d4");
	trace_buffer_begin_read(tb);
	expect_end(tb);
	patch(tb, 1, 1, 1, 1, "BBBB", false);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4B4c4", 0);
	expect_packet(tb, "d4", 0);
	expect_end(tb);
}

static void
a_last_packet_with_holes_is_not_read_though_it_ends_here(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, PATCH, "a4 b4");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", 0);
	expect_end(tb);
	patch(tb, 1, 1, 0, 6, "cccc", false);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c4", 0);
	expect_end(tb);
}

static void
the_stall_ends_when_the_chunk_is_overwritten(void **state)
{
	struct trace_buffer *tb = *state;
	uint32_t i;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a486");
	commit(tb, 1, 1, 1, FROM_PREV, "b243 c241");
	for (i = 0; i < 6; i++)
		commit(tb, 2, 1, i, 0, "x486");
	trace_buffer_begin_read(tb);
	for (i = 0; i < 6; i++)
		expect_packet(tb, "x486", 0);
	expect_end(tb);
	commit(tb, 3, 1, 0, 0, "y486");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c241", TB_LOSS_OVERWRITE |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "y486", 0);
	expect_end(tb);
	assert_false(patch(tb, 1, 1, 0, 1, "zzzz", false));
	assert_int_equal(trace_buffer_stats(tb)->patches_failed, 1);
}

static void
patches_are_all_or_nothing(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_patch p[2] = {
		{.offset = 1, .data = (const uint8_t *)"xxxx", .len = 4},
		{.offset = 2, .data = (const uint8_t *)"yyyy", .len = 4},
	};

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a4");
	commit(tb, 1, 1, 1, FROM_PREV, "b1");
	assert_false(trace_buffer_patch(tb, 1, 1, 0,
	    &(struct tb_patches){ p, 2, false }));
	trace_buffer_begin_read(tb);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->patches_failed, 2);
	p[1].offset = UINT32_MAX;
	assert_false(trace_buffer_patch(tb, 1, 1, 0,
	    &(struct tb_patches){ p, 2, false }));
	p[1].offset = 1;
	assert_true(trace_buffer_patch(tb, 1, 1, 0,
	    &(struct tb_patches){ p, 2, false }));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "y4b1", 0);
	assert_int_equal(trace_buffer_stats(tb)->patches_succeeded, 2);
}

static void
patches_for_unknown_chunks_fail(void **state)
{
	struct trace_buffer *tb = *state;

	assert_false(patch(tb, 1, 1, 0, 1, "xxxx", false));
	commit(tb, 1, 1, 5, TO_NEXT | PATCH, "a4");
	commit(tb, 1, 1, 7, TO_NEXT | PATCH, "a4");
	assert_false(patch(tb, 1, 1, 4, 1, "xxxx", false));
	assert_false(patch(tb, 1, 1, 6, 1, "xxxx", false));
	assert_false(patch(tb, 1, 1, 8, 1, "xxxx", false));
	assert_false(patch(tb, 1, 2, 5, 1, "xxxx", false));
	assert_false(patch(tb, 2, 1, 5, 1, "xxxx", false));
	assert_true(patch(tb, 1, 1, 5, 1, "xxxx", false));
	assert_true(patch(tb, 1, 1, 7, 1, "xxxx", false));
	assert_int_equal(trace_buffer_stats(tb)->patches_failed, 6);
}

static void
a_patch_that_breaks_a_size_breaks_only_its_chunk(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a4 b4 c4");
	commit(tb, 1, 1, 1, 0, "d4");
	assert_true(patch(tb, 1, 1, 0, 5, "\x7f", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", 0);
	expect_packet(tb, "d4", TB_LOSS_CHUNK_CORRUPTED);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 1);
	expect_balance(tb, 0, 0, 0);
}

static void
a_chunk_may_be_committed_again_when_its_writer_patched_it(void **state)
{
	struct trace_buffer *tb = *state;

	/* Scraped when complete, patched in shared memory, then committed. */
	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a4 b4");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", 0);
	assert_true(commit(tb, 1, 1, 0, TO_NEXT, "a4 c4"));
	commit(tb, 1, 1, 1, FROM_PREV, "d1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c4d1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->chunks_rewritten, 1);
	assert_int_equal(trace_buffer_stats(tb)->abi_violations, 0);
}

static void
a_producer_that_is_gone_is_not_waited_for(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 b5");
	commit(tb, 1, 1, 1, FROM_PREV, "c1 d2");
	commit(tb, 1, 1, 2, 0, "e1");
	commit(tb, 2, 1, 0, TO_NEXT | PATCH, "x1 y2");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "x1", 0);
	expect_end(tb);
	trace_buffer_producer_gone(tb, 1);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "d2", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "e1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->trace_writer_packet_loss, 1);
	/* The other's may still come. */
	commit(tb, 2, 1, 1, FROM_PREV, "z1");
	assert_true(patch(tb, 2, 1, 0, 3, "Y", false));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "Y1y1z1", 0);
	expect_end(tb);
	assert_true(trace_buffer_unread(tb) == 0);
}

static void
one_that_is_gone_leaves_what_is_whole(void **state)
{
	struct trace_buffer *tb = *state;

	/* Nothing was read yet; chunks of one fragment in the middle, too. */
	commit(tb, 1, 1, 0, TO_NEXT, "a1 b4");
	commit(tb, 1, 1, 1, FROM_PREV | TO_NEXT | PATCH, "c4");
	commit(tb, 1, 1, 2, FROM_PREV | TO_NEXT | PATCH, "d4 e1 f1");
	commit(tb, 1, 1, 3, PATCH, "g1 h4");
	commit(tb, 1, 1, 4, 0, "i1");
	trace_buffer_producer_gone(tb, 1);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "e1", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "g1", TB_LOSS_WRITER_ABORT);
	expect_packet(tb, "i1", TB_LOSS_WRITER_ABORT);
	expect_end(tb);
	assert_true(trace_buffer_unread(tb) == 0);
}

static void
at_the_end_nothing_is_waited_for(void **state)
{
	struct trace_buffer *tb = *state;

	/* A patch of a packet that goes on, and of one that does not. */
	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 b5");
	commit(tb, 1, 1, 1, FROM_PREV | PATCH, "c1 d2 e3");
	commit(tb, 1, 1, 2, 0, "f1");
	/* A patch in the middle of a packet. */
	commit(tb, 2, 1, 0, TO_NEXT, "g1");
	commit(tb, 2, 1, 1, FROM_PREV | TO_NEXT | PATCH, "h4");
	commit(tb, 2, 1, 2, FROM_PREV, "i1 j1");
	/* A chunk that was only scraped. */
	scrape(tb, 3, 1, 0, 0, "k1 l1", 100);
	commit(tb, 3, 1, 1, 0, "m1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "k1", 0);
	expect_end(tb);
	trace_buffer_no_more(tb);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "d2", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "f1", TB_LOSS_WRITER_ABORT);
	expect_packet(tb, "j1", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet(tb, "m1", TB_LOSS_WRITER_ABORT);
	expect_end(tb);
	assert_true(trace_buffer_unread(tb) == 0);
	assert_int_equal(trace_buffer_stats(tb)->trace_writer_packet_loss, 3);
}

static void
at_the_end_what_nothing_is_behind_stays(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, TO_NEXT | PATCH, "a1 b5");
	trace_buffer_no_more(tb);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	/* It does come. */
	assert_true(patch(tb, 1, 1, 0, 3, "BBBBB", false));
	commit(tb, 1, 1, 1, FROM_PREV, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "B5c1", 0);
	expect_end(tb);
	assert_int_equal(trace_buffer_stats(tb)->trace_writer_packet_loss, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_chunk_that_needs_patching_stalls_its_sequence_only),
		RULE(more_patches_to_come_keep_the_stall),
		RULE(reassembly_stops_at_a_chunk_in_the_middle_that_needs_patching),
		RULE(a_last_packet_with_holes_is_not_read_though_it_ends_here),
		RULE(the_stall_ends_when_the_chunk_is_overwritten),
		RULE(patches_are_all_or_nothing),
		RULE(patches_for_unknown_chunks_fail),
		RULE(a_patch_that_breaks_a_size_breaks_only_its_chunk),
		RULE(a_chunk_may_be_committed_again_when_its_writer_patched_it),
		RULE(a_producer_that_is_gone_is_not_waited_for),
		RULE(one_that_is_gone_leaves_what_is_whole),
		RULE(at_the_end_nothing_is_waited_for),
		RULE(at_the_end_what_nothing_is_behind_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
