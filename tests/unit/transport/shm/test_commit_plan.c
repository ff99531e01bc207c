#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/shm/commit_plan.h"
#include "transport/wire/pb_writer.h"

static void
put_move(struct pb_writer *w, uint32_t page)
{
	size_t mark = pb_nest_begin(w, 1);

	pb_put_uint(w, 1, page);
	pb_nest_end(w, mark);
}

static void
put_patch(struct pb_writer *w, uint32_t chunk)
{
	size_t mark = pb_nest_begin(w, 2), one;

	pb_put_uint(w, 3, chunk);
	one = pb_nest_begin(w, 4);
	pb_put_uint(w, 1, 8);
	pb_nest_end(w, one);
	pb_nest_end(w, mark);
}

/* n moves, with a patch behind each third one. */
static void
moves_and_patches_come_in_order(uint32_t n)
{
	const struct commit_move *m;
	struct commit_patch patch;
	struct commit_plan plan;
	struct pb_writer w;
	uint32_t i;

	pb_writer_init(&w);
	for (i = 0; i < n; i++) {
		put_move(&w, i + 7);
		if (i % 3 == 2)
			put_patch(&w, i);
	}
	assert_false(w.failed);
	assert_true(commit_plan_make(&plan, w.data, w.len));
	for (i = 0; i < n; i++) {
		m = commit_plan_move(&plan, i);
		assert_non_null(m);
		assert_int_equal(m->page, i + 7);
	}
	assert_null(commit_plan_move(&plan, n));
	for (i = 2; i < n; i += 3) {
		assert_true(commit_plan_patch(&plan, &patch));
		assert_int_equal(patch.chunk, i);
		assert_int_equal(patch.patches, 1);
	}
	assert_false(commit_plan_patch(&plan, &patch));
	assert_int_equal(plan.flush_id, 0);
	pb_writer_done(&w);
}

static void
as_many_moves_as_it_holds_are_given_in_order(void **state)
{
	uint32_t n;

	for (n = 0; n <= 3 * COMMIT_PLAN_MOVES; n++)
		moves_and_patches_come_in_order(n);
}

static void
the_last_flush_is_acknowledged(void **state)
{
	struct commit_plan plan;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 3, 4);
	put_move(&w, 1);
	pb_put_uint(&w, 3, 5);
	assert_true(commit_plan_make(&plan, w.data, w.len));
	assert_int_equal(plan.flush_id, 5);
	pb_writer_done(&w);
}

static void
a_request_is_refused_as_a_whole(void **state)
{
	static const uint8_t move_is_a_number[] = { 0x0a, 0, 0x08, 1 };
	static const uint8_t patch_is_a_number[] = { 0x0a, 0, 0x10, 1 };
	static const uint8_t move_is_cut[] = { 0x0a, 0, 0x0a, 1, 0x08 };
	static const uint8_t patch_is_cut[] = { 0x0a, 0, 0x12, 1, 0x08 };
	static const uint8_t end_is_cut[] = { 0x0a, 0, 0x18 };
	struct commit_plan plan;

	assert_true(commit_plan_make(&plan, move_is_a_number, 2));
	assert_false(commit_plan_make(&plan, move_is_a_number, 4));
	assert_false(commit_plan_make(&plan, patch_is_a_number, 4));
	assert_false(commit_plan_make(&plan, move_is_cut, 5));
	assert_false(commit_plan_make(&plan, patch_is_cut, 5));
	assert_false(commit_plan_make(&plan, end_is_cut, 3));
}

static void
the_first_move_past_the_kept_ones_is_checked_too(void **state)
{
	struct commit_plan plan;
	struct pb_writer w;
	uint32_t i;

	pb_writer_init(&w);
	for (i = 0; i < COMMIT_PLAN_MOVES; i++)
		put_move(&w, i);
	assert_true(commit_plan_make(&plan, w.data, w.len));
	pb_put_uint(&w, 1, 1);
	assert_false(commit_plan_make(&plan, w.data, w.len));
	pb_writer_done(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_moves_as_it_holds_are_given_in_order),
		cmocka_unit_test(the_last_flush_is_acknowledged),
		cmocka_unit_test(a_request_is_refused_as_a_whole),
		cmocka_unit_test(
		    the_first_move_past_the_kept_ones_is_checked_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
