#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "client/tracing/event/interning.h"

static bool no_memory;

void *__real_own_alloc(size_t n);
void *__wrap_own_alloc(size_t n);

void *
__wrap_own_alloc(size_t n)
{
	return no_memory ? NULL : __real_own_alloc(n);
}

static void
numbers_begin_at_one_for_each_kind(void **state)
{
	struct interning in;

	interning_init(&in);
	assert_int_equal(interning_find(&in, 7, INTERNED_NAME), 0);
	assert_int_equal(interning_add(&in, 7, INTERNED_NAME), 1);
	assert_int_equal(interning_add(&in, 8, INTERNED_NAME), 2);
	assert_int_equal(interning_add(&in, 7, INTERNED_CATEGORY), 1);
	assert_int_equal(interning_find(&in, 7, INTERNED_NAME), 1);
	assert_int_equal(interning_find(&in, 8, INTERNED_NAME), 2);
	assert_int_equal(interning_find(&in, 7, INTERNED_CATEGORY), 1);
	assert_int_equal(interning_find(&in, 8, INTERNED_CATEGORY), 0);
	interning_done(&in);
}

/* The n-th of keys whose entries are to stand in the same place. */
static uint64_t
colliding(unsigned n)
{
	uint32_t at = interning_hash(1, INTERNED_NAME) & (INTERNING_OWN - 1);
	uint64_t key;

	for (key = 1; n > 0; key++)
		if ((interning_hash(key + 1, INTERNED_NAME) &
		    (INTERNING_OWN - 1)) == at)
			n--;
	return key;
}

static void
keys_that_collide_are_told_apart(void **state)
{
	struct interning in;
	unsigned i;

	interning_init(&in);
	for (i = 0; i < 20; i++)
		assert_int_equal(interning_add(&in, colliding(i),
		    INTERNED_NAME), i + 1);
	for (i = 0; i < 20; i++)
		assert_int_equal(interning_find(&in, colliding(i),
		    INTERNED_NAME), i + 1);
	assert_int_equal(interning_find(&in, colliding(20), INTERNED_NAME), 0);
	/* The key 0 is no free entry. */
	assert_int_equal(interning_find(&in, 0, INTERNED_NAME), 0);
	assert_int_equal(interning_add(&in, 0, INTERNED_NAME), 21);
	assert_int_equal(interning_find(&in, 0, INTERNED_NAME), 21);
	interning_done(&in);
}

static void
it_grows_and_keeps_all_and_is_full_at_its_end(void **state)
{
	struct interning in;
	uint32_t i;

	interning_init(&in);
	for (i = 0; i < INTERNING_HARD_MAX; i++) {
		assert_int_equal(interning_is_full(&in), i >= INTERNING_MAX);
		assert_int_equal(interning_add(&in, i * 64, INTERNED_TRACK),
		    i + 1);
	}
	assert_int_equal(interning_add(&in, 1, INTERNED_TRACK), 0);
	for (i = 0; i < INTERNING_HARD_MAX; i++)
		assert_int_equal(interning_find(&in, i * 64, INTERNED_TRACK),
		    i + 1);
	assert_int_equal(interning_find(&in, 1, INTERNED_TRACK), 0);
	interning_done(&in);
}

static void
cleared_it_has_nothing_and_counts_from_one(void **state)
{
	struct interning in;
	uint32_t i, round;

	interning_init(&in);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 1000; i++)
			assert_int_equal(interning_add(&in, i, INTERNED_NAME),
			    i + 1);
		interning_clear(&in);
		for (i = 0; i < 1000; i++)
			assert_int_equal(interning_find(&in, i,
			    INTERNED_NAME), 0);
		assert_false(interning_is_full(&in));
		/* Memory of a time with many names is given back. */
		assert_ptr_equal(in.entries, in.own);
	}
	interning_done(&in);
}

static void
without_memory_what_is_there_stays(void **state)
{
	struct interning in;
	uint32_t i;

	interning_init(&in);
	no_memory = true;
	for (i = 0; i < INTERNING_OWN / 4 * 3; i++)
		assert_int_equal(interning_add(&in, i, INTERNED_NAME), i + 1);
	assert_int_equal(interning_add(&in, i, INTERNED_NAME), 0);
	no_memory = false;
	assert_int_equal(interning_find(&in, i, INTERNED_NAME), 0);
	assert_int_equal(interning_find(&in, 0, INTERNED_NAME), 1);
	assert_int_equal(interning_add(&in, i, INTERNED_NAME), i + 1);
	interning_done(&in);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_begin_at_one_for_each_kind),
		cmocka_unit_test(keys_that_collide_are_told_apart),
		cmocka_unit_test(it_grows_and_keeps_all_and_is_full_at_its_end),
		cmocka_unit_test(cleared_it_has_nothing_and_counts_from_one),
		cmocka_unit_test(without_memory_what_is_there_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
