#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "service/access/per_peer_count.h"

static void
a_peer_gets_as_many_as_it_may_and_no_more(void **state)
{
	struct per_peer_count q = { .peers.n = 0 };
	int i;

	for (i = 0; i < 3; i++)
		assert_true(per_peer_count_take(&q, 1000, 3));
	assert_false(per_peer_count_take(&q, 1000, 3));
	per_peer_count_give(&q, 1000, 1);
	assert_true(per_peer_count_take(&q, 1000, 3));
	assert_false(per_peer_count_take(&q, 1000, 3));
	per_peer_count_done(&q);
}

static void
one_peer_takes_nothing_from_another(void **state)
{
	struct per_peer_count q = { .peers.n = 0 };
	uint64_t key;

	for (key = 0; key < 100; key++)
		assert_true(per_peer_count_take(&q, key, 1));
	for (key = 0; key < 100; key++)
		assert_false(per_peer_count_take(&q, key, 1));
	assert_int_equal(q.peers.n, 100);
	per_peer_count_done(&q);
}

static void
a_peer_that_gave_all_back_takes_no_room(void **state)
{
	struct per_peer_count q = { .peers.n = 0 };
	uint64_t key;

	for (key = 0; key < 1000; key++) {
		assert_true(per_peer_count_take(&q, key, 2));
		assert_true(per_peer_count_take(&q, key, 2));
		per_peer_count_give(&q, key, 1);
		per_peer_count_give(&q, key, 1);
	}
	assert_int_equal(q.peers.n, 0);
	assert_int_equal(q.peers.n_chains, 16);
	per_peer_count_give(&q, 7, 1); /* never taken: nothing happens */
	per_peer_count_done(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_gets_as_many_as_it_may_and_no_more),
		cmocka_unit_test(one_peer_takes_nothing_from_another),
		cmocka_unit_test(a_peer_that_gave_all_back_takes_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
