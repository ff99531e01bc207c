#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/transport/wire/put_fixed64.h"
#include "transport/link/link_clock.h"
#include "transport/wire/pb_writer.h"

/* A snapshot whose clocks are all different. */
static struct clock_snapshot
snapshot(uint64_t ns)
{
	static const uint32_t ids[CLOCK_SNAPSHOT_N] = { 6, 2, 4, 1, 3, 5 };
	struct clock_snapshot s = { .tsc = ns + 9 };
	size_t i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		s.clocks[i].id = ids[i];
		s.clocks[i].ns = ns + ids[i];
	}
	return s;
}

static struct link_clock
result(void)
{
	return (struct link_clock){
		.kind = LINK_CLOCK_RESULT,
		.id = 77,
		.before = snapshot(1000),
		.host = snapshot(5000000),
		.after = snapshot(3000),
		.round_trip_ns = 2000,
	};
}

static void
expect_same(const struct clock_snapshot *a, const struct clock_snapshot *b)
{
	uint32_t id;

	for (id = 1; id <= 6; id++)
		assert_int_equal(clock_snapshot_ns(a, (enum clock_id)id),
		    clock_snapshot_ns(b, (enum clock_id)id));
	assert_int_equal(a->tsc, b->tsc);
}

static int
parse(struct link_clock *out, const struct pb_writer *w)
{
	/* exact, so that a sanitizer sees one byte too far */
	uint8_t *copy = malloc(w->len + (w->len == 0));
	int rc;

	assert_non_null(copy);
	if (w->len > 0)
		memcpy(copy, w->data, w->len);
	rc = link_clock_parse(out, copy, w->len);
	free(copy);
	return rc;
}

static void
reading(struct pb_writer *w, uint32_t field, uint64_t clock, uint64_t ns)
{
	size_t mark = pb_nest_begin(w, field);

	pb_put_uint(w, 1, clock);
	pb_put_uint(w, 2, ns);
	pb_nest_end(w, mark);
}

static void
each_kind_comes_back_as_it_was_put(void **state)
{
	struct link_clock c = result(), got;
	uint8_t out[LINK_CLOCK_MAX];
	size_t len;

	len = link_clock_put(out, &c);
	assert_int_equal(link_clock_parse(&got, out, len), 0);
	assert_int_equal(got.kind, LINK_CLOCK_RESULT);
	assert_int_equal(got.id, 77);
	assert_int_equal(got.round_trip_ns, 2000);
	expect_same(&got.before, &c.before);
	expect_same(&got.host, &c.host);
	expect_same(&got.after, &c.after);

	c.kind = LINK_CLOCK_PONG;
	len = link_clock_put(out, &c);
	assert_int_equal(link_clock_parse(&got, out, len), 0);
	assert_int_equal(got.kind, LINK_CLOCK_PONG);
	assert_int_equal(got.id, 77);
	expect_same(&got.host, &c.host);

	c.kind = LINK_CLOCK_PING;
	c.id = UINT32_MAX;
	len = link_clock_put(out, &c);
	assert_int_equal(link_clock_parse(&got, out, len), 0);
	assert_int_equal(got.kind, LINK_CLOCK_PING);
	assert_int_equal(got.id, UINT32_MAX);
}

static void
a_processor_without_a_time_stamp_counter_leaves_it_out(void **state)
{
	struct link_clock c = result(), got;
	uint8_t out[LINK_CLOCK_MAX];
	size_t len;

	c.before.tsc = c.after.tsc = 0;
	len = link_clock_put(out, &c);
	assert_int_equal(link_clock_parse(&got, out, len), 0);
	assert_int_equal(got.before.tsc, 0);
	assert_int_equal(got.host.tsc, c.host.tsc);
	assert_int_equal(got.after.tsc, 0);
}

static void
the_largest_one_has_room(void **state)
{
	struct link_clock c = result();
	uint8_t out[LINK_CLOCK_MAX];
	size_t i;

	c.id = UINT32_MAX;
	c.round_trip_ns = UINT64_MAX;
	for (i = 0; i < CLOCK_SNAPSHOT_N; i++)
		c.before.clocks[i].ns = c.host.clocks[i].ns =
		    c.after.clocks[i].ns = UINT64_MAX;
	c.before.tsc = c.host.tsc = c.after.tsc = UINT64_MAX;
	assert_true(link_clock_put(out, &c) < LINK_CLOCK_MAX);
}

static void
what_is_cut_off_is_never_taken_for_a_whole(void **state)
{
	struct link_clock c = result(), got;
	uint8_t out[LINK_CLOCK_MAX], *copy;
	size_t len, cut;

	c.round_trip_ns = 0;
	c.host.tsc = 0;
	len = link_clock_put(out, &c) - 2; /* that may be missing */
	for (cut = 0; cut < len; cut++) {
		assert_non_null(copy = malloc(cut + (cut == 0)));
		memcpy(copy, out, cut);
		if (link_clock_parse(&got, copy, cut) == 0)
			fail_msg("%zu of %zu bytes", cut, len);
		free(copy);
	}
	assert_int_equal(link_clock_parse(&got, out, len), 0);
}

static void
unknown_kinds_are_refused(void **state)
{
	static const uint64_t kinds[] = { 0, 4, UINT64_MAX,
		(1ull << 32) + LINK_CLOCK_PING };
	struct link_clock got;
	struct pb_writer w;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pb_writer_init(&w);
		pb_put_uint(&w, 1, kinds[i]);
		assert_int_equal(parse(&got, &w), -1);
		pb_writer_done(&w);
	}
	assert_int_equal(link_clock_parse(&got, NULL, 0), -1);
}

/* A PONG with all clocks, but `skip`; then with one more reading. */
static int
pong_with(uint32_t skip, uint64_t clock, uint64_t ns)
{
	struct link_clock got;
	struct pb_writer w;
	uint32_t id;
	int rc;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, LINK_CLOCK_PONG);
	for (id = 1; id <= 6; id++)
		if (id != skip)
			reading(&w, 5, id, 100);
	reading(&w, 5, clock, ns);
	rc = parse(&got, &w);
	pb_writer_done(&w);
	return rc;
}

static void
absurd_missing_and_doubled_clocks_are_refused(void **state)
{
	uint32_t id;

	for (id = 1; id <= 6; id++) {
		assert_int_equal(pong_with(id, id, 100), 0);
		assert_int_equal(pong_with(id, id, (uint64_t)INT64_MAX), 0);
		assert_int_equal(pong_with(id, id, 0), -1);
		assert_int_equal(pong_with(id, id, (uint64_t)INT64_MAX + 1),
		    -1);
		assert_int_equal(pong_with(id, 9, 100), -1);
		assert_int_equal(pong_with(0, id, 100), -1);
	}
	assert_int_equal(pong_with(0, 0, 100), -1);
	assert_int_equal(pong_with(0, 64, 100), -1);
	assert_int_equal(pong_with(0, (1ull << 32) + 9, 100), -1);
}

static void
clocks_and_fields_from_the_future_are_passed_over(void **state)
{
	struct link_clock c = result(), got;
	uint8_t out[LINK_CLOCK_MAX];
	struct pb_writer w;

	assert_int_equal(pong_with(0, 9, 100), 0);
	assert_int_equal(pong_with(0, 63, 100), 0);
	pb_writer_init(&w);
	pb_put_string(&w, 99, "new");
	put_fixed64(&w, 1, 1);
	pb_put_raw(&w, out, link_clock_put(out, &c));
	assert_int_equal(parse(&got, &w), 0);
	assert_int_equal(got.kind, LINK_CLOCK_RESULT);
	pb_writer_done(&w);
}

static void
only_clocks_that_can_be_set_may_run_backwards(void **state)
{
	struct link_clock c, got;
	uint8_t out[LINK_CLOCK_MAX];
	size_t i, len;
	bool may;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		c = result();
		c.after.clocks[i].ns = c.before.clocks[i].ns - 1;
		may = c.after.clocks[i].id == CLOCK_ID_REALTIME ||
		    c.after.clocks[i].id == CLOCK_ID_REALTIME_COARSE;
		len = link_clock_put(out, &c);
		assert_int_equal(link_clock_parse(&got, out, len),
		    may ? 0 : -1);
		c.after.clocks[i].ns++;
		len = link_clock_put(out, &c);
		assert_int_equal(link_clock_parse(&got, out, len), 0);
	}
}

static void
nothing_is_written_where_it_is_refused(void **state)
{
	struct link_clock got;

	memset(&got, 0x55, sizeof(got));
	assert_int_equal(link_clock_parse(&got, (const uint8_t *)"\x08\x02",
	    2), -1);
	assert_int_equal(got.id, 0x55555555);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_comes_back_as_it_was_put),
		cmocka_unit_test(
		    a_processor_without_a_time_stamp_counter_leaves_it_out),
		cmocka_unit_test(the_largest_one_has_room),
		cmocka_unit_test(what_is_cut_off_is_never_taken_for_a_whole),
		cmocka_unit_test(unknown_kinds_are_refused),
		cmocka_unit_test(absurd_missing_and_doubled_clocks_are_refused),
		cmocka_unit_test(clocks_and_fields_from_the_future_are_passed_over),
		cmocka_unit_test(only_clocks_that_can_be_set_may_run_backwards),
		cmocka_unit_test(nothing_is_written_where_it_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
