#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/session/uid_quota.h"

static void
a_uid_gets_as_many_as_it_may_and_no_more(void **state)
{
	struct uid_quota q = { .counts = NULL };
	int i;

	for (i = 0; i < 3; i++)
		assert_true(uid_quota_take(&q, 1000, 3));
	assert_false(uid_quota_take(&q, 1000, 3));
	uid_quota_give(&q, 1000);
	assert_true(uid_quota_take(&q, 1000, 3));
	assert_false(uid_quota_take(&q, 1000, 3));
	uid_quota_done(&q);
}

static void
one_uid_takes_nothing_from_another(void **state)
{
	struct uid_quota q = { .counts = NULL };
	uint32_t uid;

	for (uid = 0; uid < 100; uid++)
		assert_true(uid_quota_take(&q, uid, 1));
	for (uid = 0; uid < 100; uid++)
		assert_false(uid_quota_take(&q, uid, 1));
	assert_int_equal(q.n, 100);
	uid_quota_done(&q);
}

static void
a_uid_that_gave_all_back_takes_no_room(void **state)
{
	struct uid_quota q = { .counts = NULL };
	uint32_t uid;

	for (uid = 0; uid < 1000; uid++) {
		assert_true(uid_quota_take(&q, uid, 2));
		assert_true(uid_quota_take(&q, uid, 2));
		uid_quota_give(&q, uid);
		uid_quota_give(&q, uid);
	}
	assert_int_equal(q.n, 0);
	assert_int_equal(q.cap, 8);
	uid_quota_give(&q, 7); /* never taken: nothing happens */
	uid_quota_done(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_uid_gets_as_many_as_it_may_and_no_more),
		cmocka_unit_test(one_uid_takes_nothing_from_another),
		cmocka_unit_test(a_uid_that_gave_all_back_takes_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
