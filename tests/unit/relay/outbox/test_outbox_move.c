/* An outbox whose link is moved to another collector, and what is held for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "relay/outbox/outbox_internal.h"
#include "tests/unit/relay/outbox/outbox_world.h"

#define MEMORY (4u << 20)

static const uint8_t first[LINK_ID_BYTES] = "the first here..";
static const uint8_t second[LINK_ID_BYTES] = "the second here.";

static int
setup(void **state)
{
	static struct outbox_world w;

	world_init(&w, MEMORY);
	world_open(&w);
	outbox_set_window(w.o, 1u << 20);
	*state = &w;
	return 0;
}

static int
teardown(void **state)
{
	world_done(*state);
	return 0;
}

static void
put(struct outbox_world *w, uint32_t channel)
{
	outbox_put(w->o, channel, LINK_UP_TRIGGER, "text", 4, 0);
}

/* The next block is of this channel; returns its length. */
static size_t
expect(struct outbox_world *w, uint64_t number, uint32_t channel)
{
	struct outbox_block b;

	assert_true(outbox_next(w->o, &b));
	assert_int_equal(b.number, number);
	assert_int_equal(b.channel, channel);
	return b.len;
}

static void
expect_none(struct outbox_world *w)
{
	struct outbox_block b;

	assert_false(outbox_next(w->o, &b));
}

static void
begin_link(struct outbox_world *w)
{
	static const uint8_t link[LINK_ID_BYTES] = "a link of theirs";

	outbox_linked(w->o, link, first);
	outbox_set_window(w->o, 1u << 20);
	assert_int_equal(outbox_new_channel(w->o), 1);
	assert_int_equal(outbox_new_channel(w->o), 2);
}

/* ---- moving ---- */

/* One block of channel 1 was acknowledged, one of each was not. */
static size_t
use_link(struct outbox_world *w)
{
	size_t len;

	begin_link(w);
	put(w, 1);
	len = expect(w, 1, 1);
	assert_int_equal(outbox_acked(w->o, 1), 0);
	put(w, 1);
	expect(w, 2, 1);
	put(w, 2);
	expect(w, 3, 2);
	outbox_set_received(w->o, 77);
	assert_int_equal(outbox_acked_bytes(w->o), len);
	assert_int_equal(outbox_acked_bytes_of(w->o, 1), len);
	assert_int_equal(outbox_acked_bytes_of(w->o, 2), 0);
	assert_int_equal(outbox_acked_bytes_of(w->o, 0), 0);
	assert_int_equal(outbox_acked_bytes_of(w->o, 99), 0);
	return len;
}

static void
expect_at_second(struct outbox_world *w)
{
	struct outbox_state st;

	outbox_state(w->o, &st);
	assert_true(st.resumable);
	assert_memory_equal(st.collector_id, second, LINK_ID_BYTES);
	assert_int_equal(st.received, 0);
	assert_int_equal(st.last_acked, 1);
	assert_int_equal(st.last_sent, 3);
	assert_int_equal(outbox_resume(w->o, 1), 0);
	expect(w, 2, 1);
	expect(w, 3, 2);
	expect_none(w);
}

static void
blocks_go_on_and_what_comes_down_begins_anew(void **state)
{
	struct outbox_world *w = *state;

	use_link(w);
	outbox_moved(w->o, second);
	expect_at_second(w);
	put(w, 1);
	expect(w, 4, 1);
}

static void
a_later_process_knows_that_the_link_was_moved(void **state)
{
	struct outbox_world *w = *state;

	use_link(w);
	outbox_moved(w->o, second);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	expect_at_second(w);
	assert_int_equal(outbox_new_channel(w->o), 3);
}

static void
what_the_former_collector_has_of_the_window_is_given_back(void **state)
{
	struct outbox_world *w = *state;
	size_t len = use_link(w);
	struct outbox_block b;

	/* The former had acknowledged, and not said that it was consumed. */
	assert_int_equal(w->o->consumed, 0);
	outbox_moved(w->o, second);
	assert_int_equal(w->o->consumed, len);
	assert_int_equal(ob_channel_find(w->o, 1)->consumed, len);
	assert_int_equal(ob_channel_find(w->o, 2)->consumed, 0);
	/* What is on the way once more may be consumed, and no byte more. */
	assert_int_equal(outbox_resume(w->o, 1), 0);
	while (outbox_next(w->o, &b))
		len += b.len;
	assert_int_equal(outbox_consumed_in_all(w->o, len + 1), -1);
	assert_int_equal(outbox_consumed_in_all(w->o, len), 0);
}

static void
a_former_process_s_blocks_count_as_on_the_way(void **state)
{
	struct outbox_world *w = *state;
	size_t len = use_link(w);

	world_reopen(w);
	assert_int_equal(outbox_acked_bytes(w->o), len);
	assert_int_equal(outbox_acked_bytes_of(w->o, 1), len);
	assert_int_equal(outbox_acked_bytes_of(w->o, 2), 0);
}

/* ---- holding ---- */

static void
what_was_put_before_goes_and_what_comes_is_held(void **state)
{
	struct outbox_world *w = *state;

	begin_link(w);
	put(w, 1);
	outbox_hold_all(w->o);
	put(w, 1);
	put(w, 2);
	put(w, 0);
	assert_false(outbox_is_settled(w->o));
	expect(w, 1, 1);
	expect(w, 2, 0);
	expect_none(w);
	assert_false(outbox_is_settled(w->o));
	assert_int_equal(outbox_acked(w->o, 2), 0);
	assert_true(outbox_is_settled(w->o));
	/* Channel 0 is never held. */
	put(w, 0);
	assert_false(outbox_is_settled(w->o));
	expect(w, 3, 0);
	expect_none(w);
	outbox_release(w->o);
	expect(w, 4, 1);
	expect(w, 5, 2);
	expect_none(w);
}

static void
a_channel_is_let_go_and_held_again_by_itself(void **state)
{
	struct outbox_world *w = *state;

	begin_link(w);
	outbox_hold_all(w->o);
	put(w, 1);
	put(w, 2);
	outbox_let_go(w->o, 1);
	expect(w, 1, 1);
	expect_none(w);
	put(w, 1);
	outbox_hold(w->o, 1);
	put(w, 1);
	expect(w, 2, 1); /* put before it was held */
	expect_none(w);
	assert_int_equal(outbox_acked(w->o, 2), 0);
	assert_true(outbox_is_settled(w->o));
	outbox_hold(w->o, 1); /* held already: nothing changes */
	outbox_hold(w->o, 99);
	outbox_let_go(w->o, 99);
	outbox_release(w->o);
	expect(w, 3, 1);
	expect(w, 4, 2);
}

static void
a_channel_that_ends_while_it_is_held_is_told_later(void **state)
{
	struct outbox_world *w = *state;

	begin_link(w);
	outbox_hold_all(w->o);
	put(w, 2);
	outbox_put(w->o, 2, LINK_UP_CLOSE, NULL, 0, 0);
	expect_none(w);
	assert_true(outbox_is_settled(w->o));
	assert_false(outbox_channel_is_empty(w->o, 2));
	outbox_moved(w->o, second);
	outbox_release(w->o);
	expect(w, 1, 2);
	assert_int_equal(outbox_acked(w->o, 1), 0);
	assert_true(outbox_channel_is_empty(w->o, 2));
}

static void
a_later_process_holds_nothing(void **state)
{
	struct outbox_world *w = *state;

	begin_link(w);
	outbox_hold_all(w->o);
	put(w, 1);
	expect_none(w);
	world_reopen(w);
	outbox_set_window(w->o, 1u << 20);
	assert_false(outbox_is_settled(w->o));
	expect(w, 1, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(blocks_go_on_and_what_comes_down_begins_anew),
		T(a_later_process_knows_that_the_link_was_moved),
		T(what_the_former_collector_has_of_the_window_is_given_back),
		T(a_former_process_s_blocks_count_as_on_the_way),
		T(what_was_put_before_goes_and_what_comes_is_held),
		T(a_channel_is_let_go_and_held_again_by_itself),
		T(a_channel_that_ends_while_it_is_held_is_told_later),
		T(a_later_process_holds_nothing),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
