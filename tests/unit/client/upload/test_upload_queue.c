#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/upload/upload_queue.h"

#define NOW 10000000u

static struct upload_queue
new_queue(void)
{
	return (struct upload_queue){ .pace = { 1000, 60000 } };
}

static struct upload_failure
failure(enum s3_outcome outcome, uint64_t now_ms)
{
	return (struct upload_failure){ .outcome = outcome, .now_ms = now_ms };
}

static bool
store_fails(struct upload_queue *q, int64_t id, enum s3_outcome outcome,
    uint64_t now_ms)
{
	struct upload_failure f = failure(outcome, now_ms);

	return upload_queue_store_failed(q, id, &f);
}

static void
segments_follow_each_other_and_the_cursor_returns(void **state)
{
	struct upload_queue q = new_queue();

	assert_int_equal(upload_queue_cursor(&q, NOW), 0);
	assert_int_equal(upload_queue_sent(&q, 7), 0);
	assert_int_equal(upload_queue_cursor(&q, NOW), 7);
	upload_queue_swept(&q, NOW, 0);
	assert_int_equal(upload_queue_cursor(&q, NOW), 0);
	assert_true(upload_queue_sweep_pause(&q, NOW) == UINT64_MAX);
}

static void
pauses_of_the_store_double_and_end_with_a_success(void **state)
{
	struct upload_queue q = new_queue();

	assert_true(store_fails(&q, 1, S3_BUSY, NOW));
	assert_int_equal(upload_queue_store_pause(&q, NOW), 1000);
	assert_int_equal(upload_queue_store_pause(&q, NOW + 400), 600);
	assert_false(store_fails(&q, 1, S3_BUSY, NOW + 1000));
	assert_int_equal(upload_queue_store_pause(&q, NOW + 1000), 2000);
	assert_int_equal(upload_queue_cursor(&q, NOW + 3000), 0);
	assert_int_equal(upload_queue_sent(&q, 1), 2);
	assert_int_equal(upload_queue_store_pause(&q, NOW), 0);
	assert_true(store_fails(&q, 2, S3_BUSY, NOW));
	assert_int_equal(upload_queue_store_pause(&q, NOW), 1000);
}

static void
the_store_chooses_a_longer_pause(void **state)
{
	struct upload_queue q = new_queue();
	struct upload_failure f = failure(S3_BUSY, NOW);

	f.retry_after_ms = 90000;
	assert_true(upload_queue_store_failed(&q, 1, &f));
	assert_int_equal(upload_queue_store_pause(&q, NOW), 90000);
	f.retry_after_ms = 1;
	assert_false(upload_queue_store_failed(&q, 1, &f));
	assert_int_equal(upload_queue_store_pause(&q, NOW), 2000);
}

static void
a_denial_is_told_once_and_tried_slowly(void **state)
{
	struct upload_queue q = new_queue();

	assert_true(store_fails(&q, 1, S3_DENIED, NOW));
	assert_int_equal(upload_queue_store_pause(&q, NOW), 60000);
	assert_false(store_fails(&q, 1, S3_DENIED, NOW + 60000));
	assert_true(store_fails(&q, 1, S3_BUSY, NOW + 120000));
	assert_true(store_fails(&q, 1, S3_DENIED, NOW + 180000));
	assert_true(store_fails(&q, 1, S3_DENIED,
	    NOW + 180000 + UPLOAD_QUEUE_TELL_MS));
}

static void
a_segment_that_always_fails_does_not_hold_up_others(void **state)
{
	struct upload_queue q = new_queue();

	store_fails(&q, 5, S3_BUSY, NOW);
	store_fails(&q, 5, S3_BUSY, NOW);
	assert_int_equal(upload_queue_cursor(&q, NOW), 0);
	store_fails(&q, 5, S3_BUSY, NOW);
	assert_int_equal(upload_queue_cursor(&q, NOW), 5);
	upload_queue_sent(&q, 6);
	assert_true(upload_queue_segment_failed(&q, 7, NOW));
	assert_int_equal(upload_queue_cursor(&q, NOW), 7);

	/* At the end of the list it begins anew, after a pause that grows. */
	upload_queue_swept(&q, NOW, 0);
	assert_int_equal(upload_queue_sweep_pause(&q, NOW), 1000);
	assert_int_equal(upload_queue_cursor(&q, NOW + 999), 7);
	assert_int_equal(upload_queue_cursor(&q, NOW + 1000), 0);
	assert_false(upload_queue_segment_failed(&q, 7, NOW + 1000));
	upload_queue_swept(&q, NOW + 1000, 0);
	assert_int_equal(upload_queue_sweep_pause(&q, NOW + 1000), 2000);

	/* New ones are sent meanwhile, and change nothing. */
	upload_queue_sent(&q, 8);
	upload_queue_swept(&q, NOW + 1001, 0);
	assert_int_equal(upload_queue_sweep_pause(&q, NOW + 1000), 2000);
	assert_int_equal(upload_queue_cursor(&q, NOW + 3000), 0);
	upload_queue_sent(&q, 7);
	upload_queue_swept(&q, NOW + 3000, 0);
	assert_int_equal(upload_queue_cursor(&q, NOW + 3000), 0);
	assert_true(upload_queue_sweep_pause(&q, NOW) == UINT64_MAX);
}

static void
after_an_outage_the_oldest_are_next_once_in_a_sweep(void **state)
{
	struct upload_queue q = new_queue();
	unsigned i;

	for (i = 0; i < UPLOAD_QUEUE_TRIES; i++)
		store_fails(&q, 5, S3_BUSY, NOW);
	store_fails(&q, 6, S3_BUSY, NOW);
	assert_int_equal(upload_queue_cursor(&q, NOW), 5);
	upload_queue_sent(&q, 6);
	assert_int_equal(upload_queue_cursor(&q, NOW), 0);
	upload_queue_sent(&q, 5);

	/* Two that the store never takes do not hold up the others for good. */
	for (i = 0; i < 2 * UPLOAD_QUEUE_TRIES; i++)
		store_fails(&q, 7 + i / UPLOAD_QUEUE_TRIES, S3_BUSY, NOW);
	upload_queue_sent(&q, 9);
	assert_int_equal(upload_queue_cursor(&q, NOW), 9);
	upload_queue_swept(&q, NOW, 0);
	assert_int_equal(upload_queue_cursor(&q, NOW + 60000), 0);
}

static void
a_segment_that_fails_is_told_again_after_an_hour(void **state)
{
	struct upload_queue q = new_queue();

	assert_true(upload_queue_segment_failed(&q, 7, NOW));
	assert_false(upload_queue_segment_failed(&q, 7, NOW + 1));
	assert_true(upload_queue_segment_failed(&q, 9, NOW + 2));
	assert_true(upload_queue_segment_failed(&q, 7,
	    NOW + UPLOAD_QUEUE_TELL_MS));
}

static void
a_request_to_try_now_ends_all_pauses(void **state)
{
	struct upload_queue q = new_queue();

	upload_queue_segment_failed(&q, 7, NOW);
	upload_queue_swept(&q, NOW, 0);
	store_fails(&q, 8, S3_DENIED, NOW);
	upload_queue_try_now(&q);
	assert_int_equal(upload_queue_store_pause(&q, NOW), 0);
	assert_int_equal(upload_queue_cursor(&q, NOW), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    segments_follow_each_other_and_the_cursor_returns),
		cmocka_unit_test(
		    pauses_of_the_store_double_and_end_with_a_success),
		cmocka_unit_test(the_store_chooses_a_longer_pause),
		cmocka_unit_test(
		    after_an_outage_the_oldest_are_next_once_in_a_sweep),
		cmocka_unit_test(a_denial_is_told_once_and_tried_slowly),
		cmocka_unit_test(
		    a_segment_that_always_fails_does_not_hold_up_others),
		cmocka_unit_test(
		    a_segment_that_fails_is_told_again_after_an_hour),
		cmocka_unit_test(a_request_to_try_now_ends_all_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
