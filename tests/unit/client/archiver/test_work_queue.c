#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/archiver/work_queue.h"

/* Longer than any test may take. */
#define LONG_MS 600000u

static struct work_queue *q;

static int
setup(void **state)
{
	return (q = work_queue_new()) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	work_queue_free(q);
	return 0;
}

static void
take(const char *path, bool is_folder)
{
	struct work w;

	assert_true(work_queue_take(q, 0, &w));
	assert_string_equal(w.path, path);
	assert_int_equal(w.is_folder, is_folder);
	free(w.path);
}

static void
take_nothing(uint64_t wait_ms)
{
	struct work w;

	assert_false(work_queue_take(q, wait_ms, &w));
}

static void
paths_come_in_their_order_and_once(void **state)
{
	take_nothing(0);
	work_queue_add(q, "b", false);
	work_queue_add(q, "a", false);
	work_queue_add(q, "b", false);
	work_queue_add(q, "b", true);
	assert_int_equal(work_queue_length(q), 3);
	take("b", false);
	take("a", false);
	take("b", true);
	take_nothing(0);
	work_queue_add(q, "b", false);
	take("b", false);
}

static void
the_whole_tree_takes_the_place_of_all_paths(void **state)
{
	work_queue_add(q, "a", false);
	work_queue_add(q, "", true);
	work_queue_add(q, "b", true);
	assert_int_equal(work_queue_length(q), 1);
	take("", true);
	take_nothing(0);
	work_queue_add(q, "b", true);
	take("b", true);
}

static void
too_many_paths_become_the_whole_tree(void **state)
{
	char path[16];
	unsigned i;

	for (i = 0; i <= WORK_QUEUE_MAX; i++) {
		snprintf(path, sizeof(path), "%u", i);
		work_queue_add(q, path, false);
	}
	take("", true);
	take_nothing(0);
}

static void
a_wake_ends_one_wait(void **state)
{
	work_queue_wake(q);
	take_nothing(LONG_MS);
	take_nothing(0);
	assert_false(work_queue_is_stopped(q));
}

static void
nothing_is_taken_after_the_stop(void **state)
{
	work_queue_add(q, "a", false);
	work_queue_stop(q);
	take_nothing(LONG_MS);
	assert_true(work_queue_is_stopped(q));
}

static void *
add_one(void *arg)
{
	work_queue_add(q, "from elsewhere", false);
	return NULL;
}

static void
a_path_ends_the_wait_of_another_thread(void **state)
{
	pthread_t thread;
	struct work w;

	assert_int_equal(pthread_create(&thread, NULL, add_one, NULL), 0);
	assert_true(work_queue_take(q, LONG_MS, &w));
	assert_string_equal(w.path, "from elsewhere");
	free(w.path);
	pthread_join(thread, NULL);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(paths_come_in_their_order_and_once),
		CASE(the_whole_tree_takes_the_place_of_all_paths),
		CASE(too_many_paths_become_the_whole_tree),
		CASE(a_wake_ends_one_wait),
		CASE(nothing_is_taken_after_the_stop),
		CASE(a_path_ends_the_wait_of_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
