#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "service/ingest/former_ids.h"
#include "service/model/model.h"
#include "transport/link/link_wire.h"

#define TAG 3u

static struct producer p;

static int
setup(void **state)
{
	p = (struct producer){ 0 };
	return former_ids_begin(&p, TAG);
}

static int
teardown(void **state)
{
	former_ids_free(&p);
	assert_null(p.former);
	former_ids_free(&p);
	return 0;
}

static void
add_instance(uint64_t id, uint32_t buffer, uint32_t source)
{
	assert_int_equal(former_ids_add_instance(&p, &(struct former_instance){
	    .id = id, .buffer = buffer, .source = source, .runs = id & 1 }), 0);
}

static void
buffers_of_two_collectors_are_told_apart(void **state)
{
	assert_int_equal(former_ids_add_buffer(&p, 7, 2), 0);
	assert_int_equal(former_ids_add_buffer(&p, 1u << LINK_TAG_SHIFT | 7,
	    FORMER_IDS_NOWHERE), 0);
	/* The first that is said of a buffer holds. */
	assert_int_equal(former_ids_add_buffer(&p, 7, 5), 0);
	assert_int_equal(former_ids_buffer(&p, 0), 0);
	assert_int_equal(former_ids_buffer(&p, 7), 2);
	assert_int_equal(former_ids_buffer(&p, 1u << LINK_TAG_SHIFT | 7),
	    FORMER_IDS_NOWHERE);
	assert_int_equal(former_ids_buffer(&p, TAG << LINK_TAG_SHIFT | 9), 9);
	assert_int_equal(former_ids_buffer(&p, 8), FORMER_IDS_NOWHERE);
	assert_int_equal(former_ids_buffer(&p, UINT32_MAX),
	    FORMER_IDS_NOWHERE);
}

static void
a_buffer_that_is_gone_gets_its_data_too_late(void **state)
{
	assert_int_equal(former_ids_add_buffer(&p, 7, 2), 0);
	assert_int_equal(former_ids_add_buffer(&p, 8, 3), 0);
	former_ids_forget_buffer(&p, 2);
	assert_int_equal(former_ids_buffer(&p, 7), FORMER_IDS_LATE);
	assert_int_equal(former_ids_buffer(&p, 8), 3);
	assert_false(former_ids_has_nowhere(&p));
	assert_int_equal(former_ids_add_buffer(&p, 9, FORMER_IDS_NOWHERE), 0);
	assert_true(former_ids_has_nowhere(&p));
}

static void
a_data_source_is_taken_once_by_its_place(void **state)
{
	struct former_instance f;

	assert_int_equal(former_ids_add_buffer(&p, 7, 2), 0);
	add_instance(11, 7, 0);
	add_instance(12, 7, 1);
	add_instance(14, 99, 0);
	assert_false(former_ids_take_instance(&p, 3, 0, &f));
	assert_false(former_ids_take_instance(&p, 2, 2, &f));
	assert_true(former_ids_take_instance(&p, 2, 1, &f));
	assert_int_equal(f.id, 12);
	assert_false(f.runs);
	assert_true(former_ids_take_instance(&p, 2, 0, &f));
	assert_int_equal(f.id, 11);
	assert_true(f.runs);
	assert_false(former_ids_take_instance(&p, 2, 0, &f));
	assert_true(former_ids_take_left(&p, &f));
	assert_int_equal(f.id, 14);
	assert_false(former_ids_take_left(&p, &f));
}

static void
what_another_has_of_a_chunk_is_what_was_said_last(void **state)
{
	assert_int_equal(former_ids_add_part(&p, 3, 100, 20), 0);
	assert_int_equal(former_ids_add_part(&p, 3, 100, 30), 0);
	assert_int_equal(former_ids_add_part(&p, 4, 100, 40), 0);
	assert_int_equal(former_ids_part(&p, 3, 100), 30);
	assert_int_equal(former_ids_part(&p, 4, 100), 40);
	assert_int_equal(former_ids_part(&p, 3, 101), 0);
}

static void
there_are_no_more_than_a_relay_can_have(void **state)
{
	uint32_t i;

	for (i = 0; i < FORMER_IDS_BUFFERS_MAX; i++)
		assert_int_equal(former_ids_add_buffer(&p, 1 + i, 1), 0);
	assert_int_equal(former_ids_add_buffer(&p, 1, 1), 0);
	assert_int_equal(former_ids_add_buffer(&p, 1 + i, 1), -1);
	for (i = 0; i < FORMER_IDS_INSTANCES_MAX; i++)
		add_instance(1 + i, 1, 0);
	assert_int_equal(former_ids_add_instance(&p,
	    &(struct former_instance){ .id = 1 }), -1);
	/* Without the rest, packets are there twice, and none is lost. */
	for (i = 0; i <= FORMER_IDS_PARTS_MAX; i++)
		assert_int_equal(former_ids_add_part(&p, 1, i, 10), 0);
	assert_int_equal(former_ids_part(&p, 1, i - 2), 10);
	assert_int_equal(former_ids_part(&p, 1, i - 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(buffers_of_two_collectors_are_told_apart),
		T(a_buffer_that_is_gone_gets_its_data_too_late),
		T(a_data_source_is_taken_once_by_its_place),
		T(what_another_has_of_a_chunk_is_what_was_said_last),
		T(there_are_no_more_than_a_relay_can_have),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
