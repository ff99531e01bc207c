#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/heap_rest.h"

#define SECONDS 10

/* How often pages are given back in so many calm seconds. */
static unsigned
times(struct heap_rest *r, unsigned seconds)
{
	unsigned n = 0;

	while (seconds-- > 0)
		n += heap_rest_second(r);
	return n;
}

static void
nothing_is_given_back_while_nothing_happens(void **state)
{
	struct heap_rest r = { 0 };

	assert_int_equal(times(&r, 1000), 0);
	heap_rest_freed(&r, 63);
	assert_int_equal(times(&r, 1000), 0);
}

static void
pages_go_back_once_when_a_session_or_many_connections_have_gone(void **state)
{
	struct heap_rest r = { 0 };

	heap_rest_freed(&r, HEAP_REST_SESSION);
	assert_int_equal(times(&r, SECONDS), 1);
	assert_int_equal(times(&r, SECONDS), 0);
	heap_rest_freed(&r, 40);
	heap_rest_freed(&r, 40);
	assert_int_equal(times(&r, SECONDS), 1);
	assert_int_equal(times(&r, SECONDS), 0);
}

static void
a_crowd_that_shakes_hands_is_over_first(void **state)
{
	struct heap_rest r = { 0 };
	unsigned second, i;

	for (second = 0; second < SECONDS; second++) {
		for (i = 0; i < 100; i++)
			heap_rest_came(&r);
		assert_false(heap_rest_second(&r));
	}
	assert_true(heap_rest_second(&r));
	assert_int_equal(times(&r, SECONDS), 0);
}

static void
sessions_that_end_all_the_time_give_pages_back_now_and_then(void **state)
{
	struct heap_rest r = { 0 };
	unsigned second, n = 0;

	for (second = 0; second < 100; second++) {
		heap_rest_freed(&r, HEAP_REST_SESSION);
		n += heap_rest_second(&r);
	}
	assert_int_equal(n, 20);
}

static void
what_was_freed_is_not_counted_beyond_its_number(void **state)
{
	struct heap_rest r = { 0 };

	heap_rest_freed(&r, UINT32_MAX);
	heap_rest_freed(&r, UINT32_MAX);
	heap_rest_came(&r);
	assert_int_equal(times(&r, SECONDS), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_given_back_while_nothing_happens),
		cmocka_unit_test(
		    pages_go_back_once_when_a_session_or_many_connections_have_gone),
		cmocka_unit_test(a_crowd_that_shakes_hands_is_over_first),
		cmocka_unit_test(
		    sessions_that_end_all_the_time_give_pages_back_now_and_then),
		cmocka_unit_test(
		    what_was_freed_is_not_counted_beyond_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
