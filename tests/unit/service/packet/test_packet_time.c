/* What packets say of the time when they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "service/packet/packet_time.h"
#include "transport/wire/pb_writer.h"

static struct pb_writer w;
static bool other;

static int
setup(void **state)
{
	pb_writer_init(&w);
	other = false;
	return 0;
}

static int
teardown(void **state)
{
	pb_writer_done(&w);
	return 0;
}

static struct packet_time
take(void)
{
	struct packet_time t = packet_time_of(w.data, w.len, &other);

	assert_false(w.failed);
	pb_writer_reset(&w);
	return t;
}

static void
stamped(uint64_t ns, uint64_t clock)
{
	pb_put_uint(&w, 8, ns);
	if (clock != 0)
		pb_put_uint(&w, 58, clock);
}

static void
defaults(uint64_t clock)
{
	size_t mark = pb_nest_begin(&w, 59);

	pb_put_uint(&w, 58, clock);
	pb_nest_end(&w, mark);
}

static void
reading(uint64_t clock, uint64_t ns)
{
	size_t mark = pb_nest_begin(&w, 1);

	pb_put_uint(&w, 1, clock);
	pb_put_uint(&w, 2, ns);
	pb_nest_end(&w, mark);
}

static void
a_plain_timestamp_is_of_boottime(void **state)
{
	stamped(1234, 0);
	assert_int_equal(take().clock, 6);
	stamped(1234, 3);
	assert_int_equal(take().clock, 3);
	stamped(1234, 6);
	assert_int_equal(take().ns, 1234);
}

static void
wall_clocks_and_a_sequences_own_say_nothing(void **state)
{
	stamped(1234, 1);
	assert_int_equal(take().clock, 0);
	stamped(1234, 64);
	assert_int_equal(take().clock, 0);
	stamped(0, 6);
	assert_int_equal(take().clock, 0);
	assert_int_equal(take().clock, 0); /* empty */
}

static void
increments_are_not_taken_for_times(void **state)
{
	size_t mark;

	/* What Perfetto's SDK begins with. */
	stamped(70000, 6);
	defaults(64);
	assert_int_equal(take().ns, 70000);
	mark = pb_nest_begin(&w, 6);
	reading(6, 80000);
	reading(64, 80000);
	pb_nest_end(&w, mark);
	pb_put_uint(&w, 8, 10);
	assert_int_equal(take().ns, 80000);
	stamped(10, 0);
	assert_int_equal(take().clock, 0);
	stamped(90000, 6);
	assert_int_equal(take().ns, 90000);
	defaults(6);
	assert_int_equal(take().clock, 0);
	stamped(95000, 0);
	assert_int_equal(take().ns, 95000);
}

static void
what_does_not_parse_has_no_time(void **state)
{
	stamped(1234, 6);
	pb_put_raw(&w, "\x0a\x7f", 2);
	assert_int_equal(take().clock, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_plain_timestamp_is_of_boottime),
		CASE(wall_clocks_and_a_sequences_own_say_nothing),
		CASE(increments_are_not_taken_for_times),
		CASE(what_does_not_parse_has_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
