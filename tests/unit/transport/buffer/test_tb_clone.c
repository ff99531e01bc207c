#include "tests/unit/transport/buffer/tb_fixture.h"

static const struct tb_stats *
stats(const struct trace_buffer *tb)
{
	return trace_buffer_stats(tb);
}

static void
a_clone_has_all_that_is_in_the_ring_and_leaves_the_source_alone(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	uint32_t i;

	for (i = 0; i < 10; i++)
		commit(tb, 1, 1, i, 0, "a486");
	commit(tb, 2, 1, 0, TO_NEXT | PATCH, "b1 c10");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a486", TB_LOSS_OVERWRITE);
	expect_packet(tb, "a486", 0);
	copy = whole_clone(tb, false);
	/* What the source has read, too: it is still there. */
	trace_buffer_begin_read(copy);
	expect_packet_of(copy, 1, 1, "a486", TB_LOSS_OVERWRITE);
	for (i = 0; i < 6; i++)
		expect_packet_of(copy, 1, 1, "a486", 0);
	expect_packet_of(copy, 2, 1, "b1", 0);
	expect_end(copy);
	for (i = 0; i < 5; i++)
		expect_packet_of(tb, 1, 1, "a486", 0);
	expect_packet_of(tb, 2, 1, "b1", 0);
	expect_end(tb);
	assert_int_equal(stats(copy)->chunks_overwritten, 3);
	assert_int_equal(stats(copy)->bytes_overwritten,
	    3 * outer("a486"));
	trace_buffer_free(copy);
}

static void
a_clone_shows_all_until_the_ring_overwrites_it(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	char text[] = "a486";
	uint32_t i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < 3; i++) {
			text[0] = (char)('a' + round * 3 + i);
			commit(tb, 1, 1, round * 3 + i, 0, text);
			trace_buffer_begin_read(tb);
			expect_packet(tb, text, 0);
			expect_end(tb);
		}
	}
	assert_int_equal(stats(tb)->chunks_overwritten, 0);
	copy = whole_clone(tb, false);
	/* Four of the twelve are gone, and here that is a loss. */
	assert_int_equal(stats(copy)->chunks_overwritten, 4);
	assert_int_equal(stats(copy)->bytes_overwritten, 4 * 504);
	trace_buffer_begin_read(copy);
	expect_packet(copy, "e486", TB_LOSS_OVERWRITE);
	for (i = 5; i < 12; i++) {
		text[0] = (char)('a' + i);
		expect_packet(copy, text, 0);
	}
	expect_end(copy);
	assert_int_equal(stats(copy)->chunks_read, 8);
	trace_buffer_free(copy);
}

/* "A snapshot waits for ever for what cannot come any more." */
static void
nothing_in_a_clone_waits_for_a_patch_or_a_commit(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, TO_NEXT | PATCH, "b9");
	commit(tb, 1, 1, 2, FROM_PREV, "b9 c1");
	commit(tb, 1, 1, 3, 0, "d1");
	scrape(tb, 2, 1, 0, 0, "e1 f1", 100);
	commit(tb, 2, 1, 1, 0, "g1");
	copy = whole_clone(tb, false);
	trace_buffer_begin_read(copy);
	expect_packet_of(copy, 1, 1, "a1", 0);
	expect_packet_of(copy, 1, 1, "c1", TB_LOSS_WRITER_ABORT |
	    TB_LOSS_ORPHAN_CONTINUATION);
	expect_packet_of(copy, 1, 1, "d1", 0);
	expect_packet_of(copy, 2, 1, "e1", 0);
	expect_packet_of(copy, 2, 1, "g1", TB_LOSS_WRITER_ABORT);
	expect_end(copy);
	trace_buffer_free(copy);
	/* The source still waits, and loses nothing. */
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a1", 0);
	expect_packet_of(tb, 2, 1, "e1", 0);
	expect_end(tb);
	assert_true(patch(tb, 1, 1, 1, 1, "bbbb", false));
	assert_true(commit(tb, 2, 1, 0, 0, "e1 f1"));
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "b18", 0);
	expect_packet_of(tb, 1, 1, "c1", 0);
	expect_packet_of(tb, 1, 1, "d1", 0);
	expect_packet_of(tb, 2, 1, "f1", 0);
	expect_packet_of(tb, 2, 1, "g1", 0);
	expect_end(tb);
}

/* Eight chunks, all different, from letter `first` on. */
static void
fill_ring(struct trace_buffer *tb, uint32_t id, char first)
{
	char text[] = "a494";
	uint32_t i;

	for (i = 0; i < 8; i++) {
		text[0] = (char)(first + (char)i);
		commit(tb, 1, 1, id + i, 0, text);
	}
}

static void
expect_ring(struct trace_buffer *copy, char first)
{
	char text[] = "a494";
	uint32_t i;

	trace_buffer_begin_read(copy);
	for (i = 0; i < 8; i++) {
		text[0] = (char)(first + (char)i);
		expect_packet(copy, text, 0);
	}
	expect_end(copy);
}

static void
a_clone_under_way_loses_nothing_to_writes(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	struct tb_packet p;
	uint32_t i;

	fill_ring(tb, 0, 'a');
	assert_non_null(copy = trace_buffer_clone(tb));
	assert_true(trace_buffer_is_copied(tb));
	assert_null(trace_buffer_clone(tb));
	assert_null(trace_buffer_take(tb));
	assert_int_equal(trace_buffer_fill(copy, 1), TB_FILL_MORE);
	/* All of the ring is read, and overwritten twice. */
	trace_buffer_begin_read(tb);
	for (i = 0; i < 8; i++)
		assert_true(trace_buffer_read(tb, &p));
	fill_ring(tb, 8, 'i');
	fill_ring(tb, 16, 'q');
	assert_int_equal(trace_buffer_fill(copy, 1), TB_FILL_DONE);
	assert_false(trace_buffer_is_copied(tb));
	assert_int_equal(stats(copy)->chunks_overwritten, 0);
	expect_ring(copy, 'a');
	trace_buffer_free(copy);
}

/* What was read of it is in its old place alone, and has yet to be copied. */
static void
a_scraped_chunk_that_comes_again_stays_where_a_clone_will_look(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	commit(tb, 1, 1, 0, 0, "a1 b1");
	scrape(tb, 1, 1, 1, 0, "c1 d1 e1", 40);
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a1", 0);
	expect_packet_of(tb, 1, 1, "b1", 0);
	expect_packet_of(tb, 1, 1, "c1", 0);
	expect_packet_of(tb, 1, 1, "d1", 0);
	expect_packet_of(tb, 2, 1, "x1", 0);
	assert_non_null(copy = trace_buffer_clone(tb));
	assert_true(commit(tb, 1, 1, 1, 0, "c1 d1 e1"));
	commit(tb, 1, 1, 2, 0, "f1");
	assert_int_equal(trace_buffer_fill(copy, 4096), TB_FILL_DONE);
	trace_buffer_begin_read(copy);
	expect_packet_of(copy, 1, 1, "a1", 0);
	expect_packet_of(copy, 1, 1, "b1", 0);
	expect_packet_of(copy, 1, 1, "c1", 0);
	expect_packet_of(copy, 1, 1, "d1", 0);
	expect_packet_of(copy, 1, 1, "e1", 0);
	expect_packet_of(copy, 2, 1, "x1", 0);
	expect_end(copy);
	trace_buffer_free(copy);
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "e1", 0);
	expect_packet_of(tb, 1, 1, "f1", 0);
	expect_end(tb);
	assert_int_equal(stats(tb)->chunks_relocated, 0);
}

/* What a clone has already does not keep a chunk in its place. */
static void
a_scraped_chunk_that_was_copied_moves_as_ever(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 40);
	commit(tb, 2, 1, 0, 0, "x1");
	trace_buffer_begin_read(tb);
	expect_packet_of(tb, 1, 1, "a1", 0);
	expect_packet_of(tb, 2, 1, "x1", 0);
	assert_non_null(copy = trace_buffer_clone(tb));
	assert_int_equal(trace_buffer_fill(copy, 1), TB_FILL_MORE);
	assert_true(commit(tb, 1, 1, 0, 0, "a1 b1"));
	assert_int_equal(stats(tb)->chunks_relocated, 1);
	assert_int_equal(trace_buffer_fill(copy, 4096), TB_FILL_DONE);
	trace_buffer_begin_read(copy);
	expect_packet_of(copy, 1, 1, "a1", 0);
	expect_packet_of(copy, 2, 1, "x1", 0);
	expect_end(copy);
	trace_buffer_free(copy);
}

static void
a_clone_under_way_is_filled_before_its_source_is_cleared(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	fill_ring(tb, 0, 'a');
	assert_non_null(copy = trace_buffer_clone(tb));
	trace_buffer_clear(tb);
	assert_int_equal(trace_buffer_fill(copy, 1), TB_FILL_DONE);
	expect_ring(copy, 'a');
	trace_buffer_free(copy);
}

static void
what_a_clone_has_yet_to_copy_is_memory_to_come(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	fill_ring(tb, 0, 'a');
	assert_int_equal(trace_buffer_memory(tb).to_come, 0);
	assert_non_null(copy = trace_buffer_clone(tb));
	assert_int_equal(trace_buffer_memory(copy).to_come, 4096);
	assert_int_equal(trace_buffer_fill(copy, 2048), TB_FILL_MORE);
	assert_int_equal(trace_buffer_memory(copy).to_come, 2048);
	assert_int_equal(trace_buffer_fill(copy, 4096), TB_FILL_DONE);
	assert_int_equal(trace_buffer_memory(copy).to_come, 0);
	trace_buffer_free(copy);
	/* A ring that changes hands leaves an untouched one. */
	copy = whole_clone(tb, true);
	assert_int_equal(trace_buffer_memory(copy).to_come, 0);
	assert_int_equal(trace_buffer_memory(tb).to_come, 4096);
	trace_buffer_free(copy);
}

static void
a_fill_takes_few_chunks_however_small_they_are(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(64 << 10, TB_RING), *copy;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2000; i++)
		commit(tb, 1, 1, i, 0, "a1");
	assert_non_null(copy = trace_buffer_clone(tb));
	assert_int_equal(trace_buffer_fill(copy, UINT64_MAX), TB_FILL_MORE);
	assert_int_equal(trace_buffer_memory(copy).reached, 1024 * 24);
	assert_int_equal(trace_buffer_fill(copy, UINT64_MAX), TB_FILL_DONE);
	trace_buffer_free(copy);
	trace_buffer_free(tb);
}

static void
a_clone_under_way_may_be_given_up_by_either_side(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_RING), *copy;

	(void)state;
	fill_ring(tb, 0, 'a');
	assert_non_null(copy = trace_buffer_clone(tb));
	trace_buffer_free(copy);
	assert_false(trace_buffer_is_copied(tb));
	assert_non_null(copy = trace_buffer_clone(tb));
	trace_buffer_free(tb);
	assert_int_equal(trace_buffer_fill(copy, 1), TB_FILL_FAILED);
	trace_buffer_free(copy);
}

static void
what_was_forgotten_is_no_loss_of_a_clone(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	fill_ring(tb, 0, 'a');
	trace_buffer_free(whole_clone(tb, true));
	fill_ring(tb, 8, 'i');
	trace_buffer_clear(tb);
	fill_ring(tb, 16, 'q');
	copy = whole_clone(tb, false);
	assert_int_equal(stats(copy)->chunks_overwritten, 0);
	assert_int_equal(stats(copy)->bytes_overwritten, 0);
	expect_ring(copy, 'q');
	trace_buffer_free(copy);
}

static void
a_loss_that_was_not_told_yet_is_told_at_its_place(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	uint32_t i;

	commit(tb, 1, 1, 0, 0, "a1");
	commit(tb, 1, 1, 1, 0, "b1 !");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	commit(tb, 1, 1, 2, 0, "c1");
	for (i = 0; i < 2; i++) {
		copy = whole_clone(tb, i > 0);
		trace_buffer_begin_read(copy);
		expect_packet(copy, "a1", 0);
		expect_packet(copy, "b1", 0);
		expect_packet(copy, "c1", TB_LOSS_WRITER_ABORT);
		expect_end(copy);
		trace_buffer_free(copy);
	}
}

static void
a_chunk_that_came_in_two_parts_is_in_a_clone_once(void **state)
{
	struct trace_buffer *tb = *state, *copy;
	uint32_t i;

	scrape(tb, 1, 1, 0, 0, "a1 b1", 20);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	/* It moves, once it is whole. */
	commit(tb, 1, 1, 0, 0, "a1 b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	for (i = 0; i < 2; i++) {
		copy = whole_clone(tb, i > 0);
		trace_buffer_begin_read(copy);
		expect_packet(copy, "a1", 0);
		expect_packet(copy, "b1", 0);
		expect_end(copy);
		trace_buffer_free(copy);
	}
}

/* Chunks that were read stay whole under the walks of other passes. */
static void
runs_of_what_was_read_hide_nothing(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(1 << 20, TB_RING), *copy;
	struct tb_packet p;
	uint32_t i, n;

	(void)state;
	commit(tb, 2, 1, 0, TO_NEXT, "x9");
	for (i = 0; i < 5000; i++) {
		commit(tb, 1, i % 7, i / 7, 0, "a50 b50");
		if (i % 100 != 0)
			continue;
		/* Each wakes the stalled one: the pass begins anew. */
		commit(tb, 2, 1, 1 + i / 100, FROM_PREV | TO_NEXT, "y9");
		trace_buffer_begin_read(tb);
		while (trace_buffer_read(tb, &p))
			;
	}
	copy = whole_clone(tb, false);
	trace_buffer_begin_read(copy);
	for (n = 0; trace_buffer_read(copy, &p); n++)
		assert_int_equal(p.loss, 0);
	assert_int_equal(n, 10000);
	trace_buffer_free(copy);
	trace_buffer_free(tb);
}

static void
a_clone_outlives_its_source(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(4096, TB_RING), *copy;

	(void)state;
	commit(tb, 1, 1, 0, 0, "a1");
	copy = whole_clone(tb, false);
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
	copy = whole_clone(tb, false);
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
	copy = whole_clone(tb, false);
	assert_int_equal(trace_buffer_stats(copy)->chunks_written, 2);
	assert_int_equal(trace_buffer_stats(copy)->chunks_read, 0);
	assert_int_equal(trace_buffer_stats(copy)->bytes_read, 0);
	trace_buffer_begin_read(copy);
	expect_packet(copy, "a1", 0);
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
	taken = whole_clone(tb, true);
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
		RULE(a_clone_has_all_that_is_in_the_ring_and_leaves_the_source_alone),
		RULE(a_clone_shows_all_until_the_ring_overwrites_it),
		RULE(nothing_in_a_clone_waits_for_a_patch_or_a_commit),
		RULE(a_clone_under_way_loses_nothing_to_writes),
		RULE(a_scraped_chunk_that_comes_again_stays_where_a_clone_will_look),
		RULE(a_scraped_chunk_that_was_copied_moves_as_ever),
		RULE(a_clone_under_way_is_filled_before_its_source_is_cleared),
		RULE(what_a_clone_has_yet_to_copy_is_memory_to_come),
		RULE(a_fill_takes_few_chunks_however_small_they_are),
		RULE(a_clone_under_way_may_be_given_up_by_either_side),
		RULE(what_was_forgotten_is_no_loss_of_a_clone),
		RULE(a_loss_that_was_not_told_yet_is_told_at_its_place),
		RULE(a_chunk_that_came_in_two_parts_is_in_a_clone_once),
		RULE(runs_of_what_was_read_hide_nothing),
		RULE(a_clone_outlives_its_source),
		RULE(a_clone_can_only_be_read),
		RULE(a_clone_counts_its_own_reads),
		RULE(take_moves_the_contents),
		RULE(clear_forgets_chunks_and_keeps_sequences),
		RULE(clear_opens_a_full_discard_buffer_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
