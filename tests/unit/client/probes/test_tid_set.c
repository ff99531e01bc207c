#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/probes/tid_set.h"

static void
what_is_added_is_in_it_until_it_is_removed(void **state)
{
	static const int32_t tids[] = { 0, 1, 7, 8, 4095, 32768, 100000,
	    TID_SET_MAX - 1 };
	const size_t n = sizeof(tids) / sizeof(tids[0]);
	struct tid_set s = { 0 };
	size_t i;

	for (i = 0; i < n; i++) {
		assert_false(tid_set_has(&s, tids[i]));
		tid_set_add(&s, tids[i]);
		assert_true(tid_set_has(&s, tids[i]));
		assert_false(tid_set_has(&s, tids[i] + 2));
	}
	tid_set_remove(&s, 7);
	tid_set_remove(&s, 9);
	assert_false(tid_set_has(&s, 7));
	assert_true(tid_set_has(&s, 8));
	tid_set_clear(&s);
	for (i = 0; i < n; i++)
		assert_false(tid_set_has(&s, tids[i]));
	tid_set_done(&s);
	assert_false(tid_set_has(&s, 1));
}

static void
ids_that_no_thread_has_are_in_no_set(void **state)
{
	struct tid_set s = { 0 };

	tid_set_add(&s, -1);
	tid_set_add(&s, INT32_MIN);
	tid_set_add(&s, TID_SET_MAX);
	tid_set_add(&s, INT32_MAX);
	assert_int_equal(s.n_bytes, 0);
	assert_false(tid_set_has(&s, -1));
	assert_false(tid_set_has(&s, INT32_MAX));
	tid_set_remove(&s, -1);
	tid_set_clear(&s);
	tid_set_done(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_in_it_until_it_is_removed),
		cmocka_unit_test(ids_that_no_thread_has_are_in_no_set),
	};

	return cmocka_run_group_tests_name("tid_set", tests, NULL, NULL);
}
