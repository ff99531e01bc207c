#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/limits/fair_queue.h"

#define N 4

struct bed {
	struct fair_queue q;
	struct fair_place places[N];
	int woken[N];
};

static void
note_wake(void *arg)
{
	++*(int *)arg;
}

static int
setup(void **state)
{
	static struct bed b;
	int i;

	b = (struct bed){ .woken = { 0 } };
	fair_queue_init(&b.q);
	for (i = 0; i < N; i++) {
		b.places[i].wake = note_wake;
		b.places[i].arg = &b.woken[i];
	}
	*state = &b;
	return 0;
}

static void
wait_all(struct bed *b)
{
	int i;

	for (i = 0; i < N; i++)
		fair_queue_wait(&b->q, &b->places[i], 1);
}

/* The one that comes first is woken; which one that is. */
static int
wake_first(struct bed *b)
{
	struct fair_place *at = fair_queue_first(&b->q);

	assert_non_null(at);
	fair_queue_wake(at);
	assert_null(at->waits_in);
	return (int)(at - b->places);
}

static void
first_come_first_served(void **state)
{
	struct bed *b = *state;
	int i;

	assert_null(fair_queue_first(&b->q));
	wait_all(b);
	for (i = 0; i < N; i++) {
		assert_int_equal(b->woken[i], 0);
		assert_int_equal(wake_first(b), i);
		assert_int_equal(b->woken[i], 1);
	}
	assert_null(fair_queue_first(&b->q));
}

static void
one_that_was_woken_in_vain_gets_its_place_back(void **state)
{
	struct bed *b = *state;

	wait_all(b);
	assert_int_equal(wake_first(b), 0);
	assert_int_equal(wake_first(b), 1);
	assert_int_equal(wake_first(b), 2);
	/* In any order. */
	fair_queue_wait(&b->q, &b->places[1], 1);
	fair_queue_wait(&b->q, &b->places[2], 1);
	fair_queue_wait(&b->q, &b->places[0], 1);
	assert_int_equal(wake_first(b), 0);
	assert_int_equal(wake_first(b), 1);
	assert_int_equal(wake_first(b), 2);
	assert_int_equal(wake_first(b), 3);
}

static void
one_that_got_through_comes_last(void **state)
{
	struct bed *b = *state;

	wait_all(b);
	assert_int_equal(wake_first(b), 0);
	b->places[0].turn = 0;
	fair_queue_wait(&b->q, &b->places[0], 1);
	assert_int_equal(wake_first(b), 1);
	assert_int_equal(wake_first(b), 2);
	assert_int_equal(wake_first(b), 3);
	assert_int_equal(wake_first(b), 0);
}

static void
waiting_elsewhere_is_leaving(void **state)
{
	struct bed *b = *state;
	struct fair_queue other;

	fair_queue_init(&other);
	wait_all(b);
	fair_queue_wait(&other, &b->places[0], 7);
	assert_ptr_equal(fair_queue_first(&other), &b->places[0]);
	assert_int_equal(b->places[0].wants, 7);
	assert_int_equal(wake_first(b), 1);
	fair_queue_leave(&b->places[0]);
	fair_queue_leave(&b->places[0]);
	assert_null(fair_queue_first(&other));
	assert_int_equal(b->woken[0], 0);
}

static void
a_turn_of_another_queue_does_not_count(void **state)
{
	struct bed *b = *state;

	/* Woken in vain by a queue that goes away, as a session's does. */
	fair_queue_wait(&b->q, &b->places[3], 1);
	assert_int_equal(wake_first(b), 3);
	fair_queue_init(&b->q);
	wait_all(b);
	assert_int_equal(wake_first(b), 0);
	fair_queue_wait(&b->q, &b->places[0], 1);
	assert_int_equal(wake_first(b), 0);
	assert_int_equal(wake_first(b), 1);
	assert_int_equal(wake_first(b), 2);
	assert_int_equal(wake_first(b), 3);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(first_come_first_served),
		T(one_that_was_woken_in_vain_gets_its_place_back),
		T(one_that_got_through_comes_last),
		T(waiting_elsewhere_is_leaving),
		T(a_turn_of_another_queue_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
