/*
 * Losses on the way to the buffer, which whoever commits knows of.
 */
#include "tests/unit/transport/buffer/tb_fixture.h"

/* Bits of their own, above those of enum tb_loss. */
#define FULL (1u << 16)
#define DISK (1u << 17)

static bool
commit_after_loss(struct trace_buffer *tb, uint32_t id, const char *text,
    uint32_t loss)
{
	struct tb_origin origin = { .producer = 1, .writer = 1 };
	struct tb_chunk chunk = { .id = id, .complete = true, .loss = loss };
	struct build b;

	build_start(&b);
	build_fragment(&b, text[0], 4);
	chunk.num_fragments = b.fragments;
	chunk.payload = b.bytes;
	chunk.len = b.len;
	return trace_buffer_write(tb, &origin, &chunk);
}

static void
the_first_packet_behind_a_loss_says_why(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 0, 0, "a1");
	commit_after_loss(tb, 5, "b", FULL);
	commit(tb, 1, 1, 6, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b4", TB_LOSS_READ_GAP | FULL);
	expect_packet(tb, "c1", 0);
	expect_end(tb);
}

static void
the_beginning_of_a_sequence_may_be_lost(void **state)
{
	struct trace_buffer *tb = *state;

	commit_after_loss(tb, 5, "a", FULL);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", FULL);
	expect_end(tb);
}

static void
each_loss_is_told_once(void **state)
{
	struct trace_buffer *tb = *state;

	commit_after_loss(tb, 5, "a", FULL);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", FULL);
	commit_after_loss(tb, 7, "b", DISK);
	commit(tb, 1, 1, 9, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b4", TB_LOSS_READ_GAP | DISK);
	expect_packet(tb, "c1", TB_LOSS_READ_GAP);
	expect_end(tb);
}

static void
a_loss_before_what_is_overwritten_is_told_later(void **state)
{
	struct trace_buffer *tb = *state;

	commit_after_loss(tb, 5, "a", FULL);
	commit(tb, 1, 1, 6, 0, "b3000");
	commit(tb, 1, 1, 7, 0, "c3000");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c3000", TB_LOSS_OVERWRITE | FULL);
	expect_end(tb);
}

static void
a_chunk_that_comes_again_keeps_its_mark(void **state)
{
	struct trace_buffer *tb = *state;
	struct tb_origin origin = { .producer = 1, .writer = 1 };
	struct tb_chunk chunk = { .id = 5, .loss = FULL };
	struct build b;

	build_start(&b);
	build_fragment(&b, 'a', 4);
	build_fragment(&b, 'b', 4);
	chunk.num_fragments = b.fragments;
	chunk.payload = b.bytes;
	chunk.len = b.len;
	assert_true(trace_buffer_write(tb, &origin, &chunk));
	chunk.complete = true;
	chunk.loss = 0;
	assert_true(trace_buffer_write(tb, &origin, &chunk));
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a4", FULL);
	expect_packet(tb, "b4", 0);
	expect_end(tb);
}

static void
a_chunk_that_is_not_stored_leaves_the_loss_to_the_next(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 5, 0, "a1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	assert_false(commit_after_loss(tb, 4, "b", FULL));
	commit(tb, 1, 1, 6, 0, "c1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c1", FULL);
	expect_end(tb);
}

static void
clones_have_the_marks_and_a_cleared_buffer_has_none(void **state)
{
	struct trace_buffer *tb = *state, *copy;

	commit_after_loss(tb, 5, "a", FULL);
	assert_non_null(copy = whole_clone(tb, false));
	trace_buffer_begin_read(copy);
	expect_packet(copy, "a4", FULL);
	trace_buffer_free(copy);
	trace_buffer_clear(tb);
	commit(tb, 1, 1, 6, 0, "b1");
	commit_after_loss(tb, 8, "c", DISK);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c4", TB_LOSS_READ_GAP | DISK);
	expect_end(tb);
}

static void
what_follows_a_chunk_that_never_is_completed_can_be_read(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 5, 0, "a1 b1", 100);
	commit_after_loss(tb, 6, "c", FULL);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	trace_buffer_give_up(tb, 1, 1);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c4", FULL);
	expect_end(tb);
}

static void
what_comes_of_a_chunk_that_was_given_up_is_taken(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 5, 0, "a1 b1", 100);
	trace_buffer_give_up(tb, 1, 2);
	trace_buffer_give_up(tb, 1, 1);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	commit(tb, 1, 1, 5, 0, "a1 b1");
	trace_buffer_begin_read(tb);
	expect_packet(tb, "b1", 0);
	expect_end(tb);
}

static void
what_comes_before_it_is_read_is_taken_too(void **state)
{
	struct trace_buffer *tb = *state;

	scrape(tb, 1, 1, 5, 0, "a1 b1", 100);
	trace_buffer_give_up(tb, 1, 1);
	commit(tb, 1, 1, 5, 0, "a1 b1");
	commit_after_loss(tb, 7, "c", FULL);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_packet(tb, "b1", 0);
	expect_packet(tb, "c4", TB_LOSS_READ_GAP | FULL);
	expect_end(tb);
}

static void
a_packet_that_goes_on_in_a_chunk_that_was_given_up_is_lost(void **state)
{
	struct trace_buffer *tb = *state;

	commit(tb, 1, 1, 4, TO_NEXT, "a1 b1");
	scrape(tb, 1, 1, 5, FROM_PREV | TO_NEXT, "b1", 100);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "a1", 0);
	expect_end(tb);
	trace_buffer_give_up(tb, 1, 1);
	commit_after_loss(tb, 7, "c", FULL);
	trace_buffer_begin_read(tb);
	expect_packet(tb, "c4", TB_LOSS_READ_GAP | FULL);
	expect_end(tb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(the_first_packet_behind_a_loss_says_why),
		RULE(the_beginning_of_a_sequence_may_be_lost),
		RULE(each_loss_is_told_once),
		RULE(a_loss_before_what_is_overwritten_is_told_later),
		RULE(a_chunk_that_comes_again_keeps_its_mark),
		RULE(a_chunk_that_is_not_stored_leaves_the_loss_to_the_next),
		RULE(what_follows_a_chunk_that_never_is_completed_can_be_read),
		RULE(what_comes_of_a_chunk_that_was_given_up_is_taken),
		RULE(what_comes_before_it_is_read_is_taken_too),
		RULE(a_packet_that_goes_on_in_a_chunk_that_was_given_up_is_lost),
		RULE(clones_have_the_marks_and_a_cleared_buffer_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
