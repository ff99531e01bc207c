/* Blocks of the library's own memory, and the mark of who is inside of it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tracing/memory/own_memory.h"

static bool
is_zero(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static void
blocks_of_all_sizes_are_zero_and_do_not_overlap(void **state)
{
	static const size_t sizes[] = { 1, 15, 16, 17, 100, 511, 512, 513,
	    1000, 1024, 5000, 65535, 65536, 65537, 300000 };
	enum { N = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 20 };
	uint8_t *p[ROUNDS][N];
	size_t i, round, before = own_used();

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < N; i++) {
			p[round][i] = own_alloc(sizes[i]);
			assert_non_null(p[round][i]);
			assert_int_equal((uintptr_t)p[round][i] % 16, 0);
			assert_true(is_zero(p[round][i], sizes[i]));
			memset(p[round][i], (int)(1 + round), sizes[i]);
		}
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < N; i++) {
			assert_int_equal(p[round][i][0], 1 + round);
			assert_int_equal(p[round][i][sizes[i] - 1], 1 + round);
			own_free(p[round][i], sizes[i]);
		}
	assert_int_equal(own_used(), before);
	own_free(NULL, 7);
}

static void
a_freed_block_is_used_again_and_zero(void **state)
{
	uint8_t *a = own_alloc(200), *b;

	assert_non_null(a);
	memset(a, 0xff, 200);
	own_free(a, 200);
	b = own_alloc(199);
	assert_ptr_equal(a, b);
	assert_true(is_zero(b, 199));
	own_free(b, 199);
}

static void
a_block_keeps_its_bytes_as_it_grows(void **state)
{
	uint8_t *p = NULL;
	size_t n = 0, wanted, i, before = own_used();

	for (wanted = 10; wanted < 5000000; n = wanted, wanted *= 3) {
		p = own_realloc(p, n, wanted);
		assert_non_null(p);
		for (i = 0; i < n; i++)
			assert_int_equal(p[i], (uint8_t)(i * 7));
		for (; i < wanted; i++)
			p[i] = (uint8_t)(i * 7);
	}
	own_free(p, n);
	assert_int_equal(own_used(), before);
}

static void
more_than_there_can_be_is_refused(void **state)
{
	size_t before = own_used();
	void *p = own_alloc(1000);

	assert_null(own_alloc(SIZE_MAX / 2));
	assert_null(own_realloc(p, 1000, SIZE_MAX / 2));
	own_free(p, 1000);
	assert_int_equal(own_used(), before);
}

static void
whoever_interrupts_the_library_cannot_enter_it(void **state)
{
	assert_true(own_try_enter());
	assert_false(own_try_enter());
	own_enter(); /* the library itself, once more */
	own_leave();
	assert_false(own_try_enter());
	own_leave();
	assert_true(own_try_enter());
	own_leave();
}

static void *
churn(void *arg)
{
	uint8_t *p[50];
	size_t i, round;

	for (round = 0; round < 500; round++) {
		for (i = 0; i < 50; i++) {
			if ((p[i] = own_alloc(i * 40 + 1)) == NULL)
				return arg;
			p[i][0] = (uint8_t)i;
			p[i][i * 40] = (uint8_t)i;
		}
		for (i = 0; i < 50; i++) {
			if (p[i][0] != i || p[i][i * 40] != i)
				return arg;
			own_free(p[i], i * 40 + 1);
		}
	}
	return NULL;
}

static void
threads_share_it_and_children_of_fork_have_it(void **state)
{
	size_t before = own_used();
	pthread_t t[4];
	void *failed;
	int i, status;
	pid_t pid;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, churn, &t), 0);
	own_before_fork();
	if ((pid = fork()) == 0) {
		own_after_fork(true);
		_exit(own_depth == 0 && churn(&pid) == NULL ? 0 : 1);
	}
	own_after_fork(false);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(own_used(), before);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    blocks_of_all_sizes_are_zero_and_do_not_overlap),
		cmocka_unit_test(a_freed_block_is_used_again_and_zero),
		cmocka_unit_test(a_block_keeps_its_bytes_as_it_grows),
		cmocka_unit_test(more_than_there_can_be_is_refused),
		cmocka_unit_test(
		    whoever_interrupts_the_library_cannot_enter_it),
		cmocka_unit_test(threads_share_it_and_children_of_fork_have_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
