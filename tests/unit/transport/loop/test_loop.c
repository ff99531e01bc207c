#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/loop/loop.h"

static struct loop *loop;
static int calls;
static void *cancel_arg;

/* More than any test has waiting at once. */
static struct loop_call records[256];
static unsigned next_record;

static struct loop_call *
fresh(void)
{
	return &records[next_record++ % 256];
}

static int
setup(void **state)
{
	memset(records, 0, sizeof(records));
	calls = 0;
	cancel_arg = NULL;
	loop = loop_new();
	return loop == NULL;
}

static int
teardown(void **state)
{
	loop_free(loop);
	return 0;
}

static void
count(void *arg)
{
	calls++;
}

static void
check_order(void *arg)
{
	assert_int_equal(calls, *(int *)arg);
	calls++;
}

static void
count_and_stop(void *arg)
{
	calls++;
	loop_stop(loop);
}

static void
defer_again(void *arg)
{
	calls++;
	if (calls < 1000)
		loop_defer(loop, fresh(), defer_again, arg);
}

static void
a_deferred_call_runs_on_a_later_turn_and_once(void **state)
{
	loop_defer(loop, fresh(), count, NULL);
	loop_defer(loop, fresh(), count, NULL);
	assert_int_equal(calls, 0);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
}

static void
a_call_that_defers_again_waits_for_the_turn_after(void **state)
{
	loop_defer(loop, fresh(), defer_again, NULL);
	loop_run_once(loop);
	assert_int_equal(calls, 1);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
}

static void
cancel(void *arg)
{
	calls++;
	loop_cancel(loop, cancel_arg);
}

static void
a_cancelled_call_does_not_run_even_in_the_same_turn(void **state)
{
	struct loop_post post = { 0 };
	int a, b;

	loop_defer(loop, fresh(), count, &a);
	loop_post(loop, &post, count, &a);
	loop_cancel(loop, &a);
	loop_run_once(loop);
	loop_run_once(loop);
	assert_int_equal(calls, 0);

	cancel_arg = &b;
	loop_defer(loop, fresh(), cancel, &a);
	loop_defer(loop, fresh(), count, &b);
	loop_defer(loop, fresh(), count, &a);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
}

/* Takes all that a turn has for slow work. */
static void
count_slowly(void *arg)
{
	uint64_t until = loop_now_ms() + LOOP_SLOW_MS + 1;

	assert_int_equal(calls, *(int *)arg);
	calls++;
	while (loop_now_ms() < until)
		;
}

static void
slow_calls_run_in_order_one_in_a_turn(void **state)
{
	int order[] = { 0, 1, 2, 3 }, i;

	for (i = 0; i < 3; i++)
		loop_defer_slow(loop, fresh(), false, count_slowly, &order[i]);
	assert_int_equal(calls, 0);
	for (i = 1; i <= 3; i++) {
		loop_run_once(loop);
		assert_int_equal(calls, i);
	}
	loop_defer_slow(loop, fresh(), true, count_slowly, &order[3]);
	loop_run_once(loop);
	assert_int_equal(calls, 4);
	loop_run_once(loop);
	assert_int_equal(calls, 4);
}

static void
slow_calls_do_not_keep_others_from_their_turn(void **state)
{
	int order[] = { 0, 2 };

	loop_defer_slow(loop, fresh(), false, count_slowly, &order[0]);
	loop_defer_slow(loop, fresh(), false, count_slowly, &order[1]);
	loop_run_once(loop);
	assert_int_equal(calls, 1);
	loop_defer(loop, fresh(), count, NULL);
	loop_run_once(loop);
	assert_int_equal(calls, 3);
}

static void
a_cancelled_slow_call_does_not_run(void **state)
{
	/* The last goes on, so it comes first. */
	int order[] = { 1, 1, 0 }, i;

	for (i = 0; i < 3; i++)
		loop_defer_slow(loop, fresh(), i == 2, count_slowly, &order[i]);
	loop_run_once(loop);
	loop_cancel(loop, &order[1]);
	for (i = 0; i < 3; i++)
		loop_run_once(loop);
	assert_int_equal(calls, 2);
}

static void
slow_calls_that_go_on_come_first_but_not_always(void **state)
{
	/* Of 8 that go on and 2 that begin: the 4th and the 8th begin. */
	int order[] = { 3, 7, 0, 1, 2, 4, 5, 6, 8, 9 }, i;

	for (i = 0; i < 10; i++)
		loop_defer_slow(loop, fresh(), i >= 2, count_slowly, &order[i]);
	for (i = 0; i < 10; i++)
		loop_run_once(loop);
	assert_int_equal(calls, 10);
}

static void
count_and_defer_slowly(void *arg)
{
	calls++;
	if (calls < 1000)
		loop_defer_slow(loop, fresh(), calls % 2, count_and_defer_slowly, arg);
}

static void
slow_calls_that_come_while_others_run_are_not_lost(void **state)
{
	int i;

	for (i = 0; i < 100; i++)
		loop_defer_slow(loop, fresh(), false, count_and_defer_slowly, NULL);
	/* 1000 in all, then those that still waited. */
	for (i = 0; i < 2000 && calls < 1099; i++)
		loop_run_once(loop);
	assert_int_equal(calls, 1099);
	loop_run_once(loop);
	assert_int_equal(calls, 1099);
}

static void
what_is_deferred_at_the_end_runs_in_loop_free(void **state)
{
	struct loop *other = loop_new();
	struct loop *saved = loop;
	struct loop_post post = { 0 };
	int a;

	loop_defer(other, fresh(), count, NULL);
	loop_post(other, &post, count, NULL);
	loop_at_free(other, fresh(), count, NULL);
	loop_at_free(other, fresh(), count, &a);
	loop_cancel(other, &a);
	loop_free(other);
	assert_int_equal(calls, 3);

	loop = loop_new();
	calls = 0;
	loop_defer(loop, fresh(), defer_again, NULL);
	loop_free(loop); /* ends, although the call defers itself 1,000 times */
	assert_in_range(calls, 2, 999);
	loop = saved;
}

#define POSTS 10000

static void *
post_many(void *arg)
{
	struct loop_post *posts = arg;
	int i;

	for (i = 0; i < POSTS; i++)
		loop_post(loop, &posts[i], count, NULL);
	return NULL;
}

static void
calls_posted_by_threads_all_run_on_the_loop(void **state)
{
	struct loop_post *posts = calloc(4 * POSTS, sizeof(*posts));
	pthread_t threads[4];
	int i;

	assert_non_null(posts);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many,
		    posts + i * POSTS), 0);
	while (calls < 4 * POSTS)
		loop_run_once(loop);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	loop_run_once(loop);
	assert_int_equal(calls, 4 * POSTS);
	free(posts);
}

static void *
post_one_often(void *arg)
{
	int i;

	for (i = 0; i < POSTS; i++)
		loop_post(loop, arg, count, NULL);
	return NULL;
}

static void
a_post_that_is_made_often_runs_at_least_once_after_the_last(void **state)
{
	struct loop_post post = { 0 };
	pthread_t thread;
	int i;

	for (i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&thread, NULL, post_one_often,
		    &post), 0);
		while (calls == 0)
			loop_run_once(loop);
		pthread_join(thread, NULL);
		loop_run_once(loop);
		loop_run_once(loop);
		assert_in_range(calls, 1, POSTS);
		calls = 0;
		loop_post(loop, &post, count, NULL);
		loop_run_once(loop);
		loop_run_once(loop);
		assert_int_equal(calls, 1);
		calls = 0;
	}
}

static void
a_call_that_waits_already_keeps_its_place_and_runs_once(void **state)
{
	struct loop_call a = { 0 }, b = { 0 };
	int order[] = { 0, 1, 2 };

	loop_defer(loop, &a, check_order, &order[2]);
	loop_defer(loop, &b, check_order, &order[1]);
	loop_defer(loop, &a, check_order, &order[0]);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
	/* And it may wait again when it ran. */
	loop_defer(loop, &a, check_order, &order[2]);
	loop_run_once(loop);
	assert_int_equal(calls, 3);
}

static void *
post_stop(void *arg)
{
	loop_post(loop, arg, count_and_stop, NULL);
	return NULL;
}

static void
a_post_wakes_a_loop_that_waits(void **state)
{
	struct loop_post post = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, post_stop, &post), 0);
	loop_run(loop);
	pthread_join(thread, NULL);
	assert_int_equal(calls, 1);
}

static void
a_stop_before_run_is_not_forgotten(void **state)
{
	loop_stop(loop);
	loop_run(loop);
	loop_defer(loop, fresh(), count_and_stop, NULL);
	loop_run(loop);
	assert_int_equal(calls, 1);
}

static uint64_t fired_at;

static void
note_time(void *arg)
{
	calls++;
	fired_at = loop_now_ms();
}

static void
a_timer_fires_once_and_never_early(void **state)
{
	struct loop_timer *t = loop_timer_new(loop, note_time, NULL);
	uint64_t start = loop_now_ms();

	loop_run_once(loop);
	assert_int_equal(calls, 0);
	loop_timer_set(t, 3, 0);
	while (calls == 0)
		loop_run_once(loop);
	/* Both ends are cut to whole milliseconds. */
	assert_true(fired_at - start >= 2);
	start = loop_now_ms();
	while (loop_now_ms() < start + 10)
		loop_run_once(loop);
	assert_int_equal(calls, 1);
	loop_timer_free(t);
}

static void
what_is_left_of_a_timer_is_known_while_it_is_armed(void **state)
{
	struct loop_timer *timers[] = { loop_timer_new(loop, count, NULL),
		loop_timer_new_boottime(loop, count, NULL) };
	uint64_t left = 7;
	int i;

	assert_false(loop_timer_left(NULL, &left));
	for (i = 0; i < 2; i++) {
		assert_false(loop_timer_left(timers[i], &left));
		assert_int_equal(left, 7);
		loop_timer_set(timers[i], 100000, 0);
		assert_true(loop_timer_left(timers[i], &left));
		assert_in_range(left, 90000, 100000);
		loop_timer_clear(timers[i]);
		left = 7;
		assert_false(loop_timer_left(timers[i], &left));
		calls = 0;
		loop_timer_set(timers[i], 1, 0);
		while (calls == 0)
			loop_run_once(loop);
		assert_false(loop_timer_left(timers[i], &left));
		loop_timer_free(timers[i]);
	}
}

static void
a_periodic_timer_fires_until_it_is_cleared(void **state)
{
	struct loop_timer *t = loop_timer_new(loop, count, NULL);
	uint64_t start;

	loop_timer_set(t, 1, 1);
	while (calls < 3)
		loop_run_once(loop);
	loop_timer_clear(t);
	calls = 0;
	start = loop_now_ms();
	while (loop_now_ms() < start + 5)
		loop_run_once(loop);
	assert_int_equal(calls, 0);
	loop_timer_free(t);
	loop_timer_free(NULL);
}

static void
a_timer_that_counts_sleep_does_what_others_do(void **state)
{
	struct loop_timer *t = loop_timer_new_boottime(loop, note_time, NULL);
	uint64_t start = loop_now_ms();

	assert_non_null(t);
	loop_run_once(loop);
	assert_int_equal(calls, 0);
	loop_timer_set(t, 3, 0);
	while (calls == 0)
		loop_run_once(loop);
	assert_true(fired_at - start >= 2);
	start = loop_now_ms();
	while (loop_now_ms() < start + 5)
		loop_run_once(loop);
	assert_int_equal(calls, 1);
	/* Periodic, until it is cleared; set again, and it is another time. */
	loop_timer_set(t, 1, 1);
	while (calls < 4)
		loop_run_once(loop);
	loop_timer_clear(t);
	calls = 0;
	start = loop_now_ms();
	while (loop_now_ms() < start + 5)
		loop_run_once(loop);
	assert_int_equal(calls, 0);
	loop_timer_set(t, 0, 0);
	while (calls == 0)
		loop_run_once(loop);
	loop_timer_free(t);
}

static void
a_due_timer_that_is_set_again_waits_anew(void **state)
{
	struct loop_timer *t = loop_timer_new_boottime(loop, count, NULL);
	uint64_t start = loop_now_ms();

	assert_non_null(t);
	loop_timer_set(t, 1, 0);
	while (loop_now_ms() < start + 3)
		;
	loop_timer_set(t, 60000, 0);
	loop_run_once(loop);
	assert_int_equal(calls, 0);
	loop_timer_free(t);
}

#define MANY 500

/* Between which times: setting 1500 of them may take as long as they last. */
static struct {
	uint64_t from, to;
} due[MANY];
static uint64_t last_due;

static void
check_due(void *arg)
{
	unsigned i = (unsigned)((uintptr_t)arg);

	calls++;
	assert_true(due[i].to >= last_due);
	last_due = due[i].from;
}

static void
many_timers_fire_in_the_order_of_their_times(void **state)
{
	struct loop_timer *t[MANY];
	unsigned seed = 7;
	uint64_t ms;
	int i, left = MANY;

	last_due = 0;
	for (i = 0; i < MANY; i++) {
		t[i] = loop_timer_new(loop, check_due, (void *)(uintptr_t)i);
		assert_non_null(t[i]);
	}
	/* Set, and set again; some cleared, some freed. */
	for (i = 0; i < 3 * MANY; i++) {
		seed = seed * 1103515245u + 12345u;
		ms = 20 + 10 * (seed >> 16) % 11;
		due[i % MANY].from = loop_now_ms() + ms;
		loop_timer_set(t[i % MANY], ms, 0);
		due[i % MANY].to = loop_now_ms() + ms + 1;
	}
	for (i = 0; i < MANY; i += 5, left -= 2) {
		loop_timer_clear(t[i]);
		loop_timer_free(t[i + 1]);
	}
	while (calls < left)
		loop_run_once(loop);
	loop_run_once(loop);
	assert_int_equal(calls, left);
	for (i = 0; i < MANY; i++) {
		if (i % 5 != 1)
			loop_timer_free(t[i]);
	}
}

static struct loop_timer *own_timer;

static void
free_own_timer(void *arg)
{
	calls++;
	loop_timer_free(own_timer);
}

static void
a_timer_may_free_itself(void **state)
{
	own_timer = loop_timer_new(loop, free_own_timer, NULL);
	loop_timer_set(own_timer, 0, 1);
	while (calls < 1)
		loop_run_once(loop);
	loop_run_once(loop);
	assert_int_equal(calls, 1);
	own_timer = loop_timer_new_boottime(loop, free_own_timer, NULL);
	loop_timer_set(own_timer, 1, 1);
	while (calls < 2)
		loop_run_once(loop);
	loop_run_once(loop);
	assert_int_equal(calls, 2);
}

static void
a_signal_runs_its_function_on_the_loop(void **state)
{
	assert_int_equal(loop_on_signal(loop, SIGUSR1, count, NULL), 0);
	raise(SIGUSR1);
	assert_int_equal(calls, 0);
	while (calls == 0)
		loop_run_once(loop);
	assert_int_equal(calls, 1);
}

static void
a_write_to_a_closed_pipe_does_not_kill(void **state)
{
	int p[2];

	assert_int_equal(pipe(p), 0);
	close(p[0]);
	assert_int_equal(write(p[1], "x", 1), -1);
	close(p[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_deferred_call_runs_on_a_later_turn_and_once),
		TEST(a_call_that_defers_again_waits_for_the_turn_after),
		TEST(a_cancelled_call_does_not_run_even_in_the_same_turn),
		TEST(a_call_that_waits_already_keeps_its_place_and_runs_once),
		TEST(slow_calls_run_in_order_one_in_a_turn),
		TEST(slow_calls_do_not_keep_others_from_their_turn),
		TEST(slow_calls_that_go_on_come_first_but_not_always),
		TEST(a_cancelled_slow_call_does_not_run),
		TEST(slow_calls_that_come_while_others_run_are_not_lost),
		TEST(what_is_deferred_at_the_end_runs_in_loop_free),
		TEST(calls_posted_by_threads_all_run_on_the_loop),
		TEST(a_post_that_is_made_often_runs_at_least_once_after_the_last),
		TEST(a_post_wakes_a_loop_that_waits),
		TEST(a_stop_before_run_is_not_forgotten),
		TEST(a_timer_fires_once_and_never_early),
		TEST(what_is_left_of_a_timer_is_known_while_it_is_armed),
		TEST(a_periodic_timer_fires_until_it_is_cleared),
		TEST(a_timer_that_counts_sleep_does_what_others_do),
		TEST(a_due_timer_that_is_set_again_waits_anew),
		TEST(many_timers_fire_in_the_order_of_their_times),
		TEST(a_timer_may_free_itself),
		TEST(a_signal_runs_its_function_on_the_loop),
		TEST(a_write_to_a_closed_pipe_does_not_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
