/* Writers' ids, the division of pages, and the queue for the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/tracing/memory/chunk_memory.h"

#define BUFFER 3
#define PAGES  16u

static size_t woken;
static bool no_memory;

void *__real_own_alloc(size_t n);
void *__wrap_own_alloc(size_t n);

void *
__wrap_own_alloc(size_t n)
{
	return no_memory ? NULL : __real_own_alloc(n);
}

static void
wake(void *arg)
{
	woken++;
}

static struct chunk_memory *
begin(void)
{
	struct shm *shm = shm_new(PAGES * 4096, 4096);
	struct chunk_memory *m;

	assert_non_null(shm);
	m = chunk_memory_new(shm, wake, NULL);
	assert_non_null(m);
	woken = 0;
	return m;
}

static void
the_owner_is_woken_when_something_is_queued_and_nothing_was(void **state)
{
	struct chunk_memory *m = begin();
	struct chunk_queue_item items[4];
	uint16_t a, b;

	a = chunk_memory_begin_writer(m, BUFFER);
	assert_int_equal(woken, 1);
	b = chunk_memory_begin_writer(m, BUFFER + 1);
	assert_int_equal(woken, 1);
	assert_int_equal(chunk_memory_take(m, items, 4), 2);
	assert_true(items[0].is_note && items[1].is_note);
	assert_int_equal(items[0].is.note.writer, a);
	assert_int_equal(items[0].is.note.buffer, BUFFER);
	assert_int_equal(items[1].is.note.writer, b);
	assert_int_equal(items[1].is.note.buffer, BUFFER + 1);
	assert_int_equal(chunk_memory_take(m, items, 4), 0);
	chunk_memory_end_writer(m, a);
	assert_int_equal(woken, 2);
	assert_int_equal(chunk_memory_take(m, items, 4), 1);
	assert_int_equal(items[0].is.note.buffer, 0);
	chunk_memory_unref(m);
}

static void
the_queue_grows_and_keeps_its_order(void **state)
{
	struct chunk_memory *m = begin();
	struct chunk_queue_item item;
	uint16_t i;

	/* It begins in the middle of its ring. */
	for (i = 1; i <= PAGES / 2; i++)
		assert_int_equal(chunk_memory_begin_writer(m, BUFFER), i);
	for (i = 1; i <= PAGES / 2; i++)
		assert_int_equal(chunk_memory_take(m, &item, 1), 1);
	for (; i < 1000; i++)
		assert_int_equal(chunk_memory_begin_writer(m, BUFFER), i);
	for (i = PAGES / 2 + 1; i < 1000; i++) {
		assert_int_equal(chunk_memory_take(m, &item, 1), 1);
		assert_int_equal(item.is.note.writer, i);
	}
	assert_int_equal(chunk_memory_take(m, &item, 1), 0);
	chunk_memory_unref(m);
}

static void
a_chunk_that_cannot_be_queued_stays_complete(void **state)
{
	struct chunk_memory *m = begin();
	struct chunk_queue_item item;
	struct shm_slot slot;
	struct shm_chunk c;
	uint16_t i, id;

	for (i = 0; i < PAGES; i++)
		id = chunk_memory_begin_writer(m, BUFFER);
	assert_int_equal(chunk_memory_acquire(m, id, 0, 0, &slot),
	    CHUNK_ACQUIRED);
	no_memory = true;
	chunk_memory_complete(m, &slot);
	chunk_memory_commit(m, &slot, 0, BUFFER);
	no_memory = false;
	for (i = 0; i < PAGES; i++)
		assert_int_equal(chunk_memory_take(m, &item, 1), 1);
	assert_int_equal(chunk_memory_take(m, &item, 1), 0);
	assert_int_equal(shm_take(chunk_memory_shm(m), slot.page, slot.index,
	    &c), SHM_TAKEN);
	chunk_memory_unref(m);
}

static void
a_commit_says_what_was_written_and_whereto(void **state)
{
	struct chunk_memory *m = begin();
	struct chunk_queue_item items[2];
	struct shm_slot slot;
	uint16_t id = chunk_memory_begin_writer(m, BUFFER);

	assert_int_equal(chunk_memory_acquire(m, id, 7, 0, &slot),
	    CHUNK_ACQUIRED);
	chunk_memory_commit(m, &slot, 99, BUFFER);
	assert_int_equal(chunk_memory_take(m, items, 2), 2);
	assert_false(items[1].is_note);
	assert_int_equal(items[1].is.commit.page, slot.page);
	assert_int_equal(items[1].is.commit.index, slot.index);
	assert_int_equal(items[1].is.commit.buffer, BUFFER);
	assert_int_equal(items[1].is.commit.used, 99);
	chunk_memory_unref(m);
}

static void
an_id_is_used_again_as_late_as_can_be(void **state)
{
	struct chunk_memory *m = begin();
	uint32_t i;

	assert_int_equal(chunk_memory_begin_writer(m, BUFFER), 1);
	assert_int_equal(chunk_memory_begin_writer(m, BUFFER), 2);
	chunk_memory_end_writer(m, 1);
	for (i = 3; i <= SHM_MAX_WRITER_ID; i++)
		assert_int_equal(chunk_memory_begin_writer(m, BUFFER), i);
	assert_int_equal(chunk_memory_begin_writer(m, BUFFER), 1);
	/* All are in use. */
	assert_int_equal(chunk_memory_begin_writer(m, BUFFER), 0);
	chunk_memory_end_writer(m, 4711);
	assert_int_equal(chunk_memory_begin_writer(m, BUFFER), 4711);
	chunk_memory_unref(m);
}

/* Each of n writers holds a chunk; the smallest of them has this many bytes. */
static size_t
chunks_for(size_t n)
{
	struct chunk_memory *m = begin();
	uint16_t ids[PAGES * SHM_CHUNKS_PER_PAGE_MAX];
	struct shm_slot slot;
	size_t i, least = SIZE_MAX;

	for (i = 0; i < n; i++)
		ids[i] = chunk_memory_begin_writer(m, BUFFER);
	for (i = 0; i < n; i++) {
		assert_int_equal(chunk_memory_acquire(m, ids[i], 0, 0, &slot),
		    CHUNK_ACQUIRED);
		least = slot.len < least ? slot.len : least;
	}
	chunk_memory_unref(m);
	return least;
}

static void
pages_are_divided_the_more_the_more_writers_there_are(void **state)
{
	size_t n;

	assert_in_range(chunks_for(1), 4000, 4096);
	assert_in_range(chunks_for(PAGES / 2), 4000, 4096);
	assert_in_range(chunks_for(PAGES), 2000, 2048);
	assert_in_range(chunks_for(PAGES * 2), 1000, 1024);
	assert_in_range(chunks_for(PAGES * 4), 560, 585);
	assert_in_range(chunks_for(PAGES * 14), 260, 292);
	for (n = 1; n <= PAGES * 14; n++)
		(void)chunks_for(n);
}

static void
no_chunk_is_free_where_all_are_taken(void **state)
{
	struct chunk_memory *m = begin();
	struct shm_slot slot;
	uint16_t id = chunk_memory_begin_writer(m, BUFFER);
	size_t i;

	for (i = 0; i < PAGES; i++)
		assert_int_equal(chunk_memory_acquire(m, id, (uint32_t)i, 0,
		    &slot), CHUNK_ACQUIRED);
	assert_int_equal(chunk_memory_acquire(m, id, 99, 0, &slot),
	    CHUNK_NONE_FREE);
	chunk_memory_unref(m);
}

static void
nothing_is_acquired_or_queued_after_the_end(void **state)
{
	struct chunk_memory *m = begin();
	struct chunk_queue_item item;
	struct shm_slot slot;
	uint16_t id = chunk_memory_begin_writer(m, BUFFER);

	assert_int_equal(chunk_memory_acquire(m, id, 0, 0, &slot),
	    CHUNK_ACQUIRED);
	woken = 0;
	chunk_memory_close(m);
	assert_int_equal(chunk_memory_acquire(m, id, 1, 0, &slot),
	    CHUNK_CLOSED);
	chunk_memory_commit(m, &slot, 0, BUFFER);
	chunk_memory_end_writer(m, id);
	assert_int_equal(chunk_memory_take(m, &item, 1), 0);
	assert_int_equal(woken, 0);
	chunk_memory_unref(m);
}

static void
the_owner_hears_where_writers_hold_all_chunks(void **state)
{
	struct chunk_memory *m = begin();
	struct shm_slot slots[PAGES], slot;
	uint16_t id = chunk_memory_begin_writer(m, BUFFER);
	struct shm_chunk c;
	size_t i;

	assert_false(chunk_memory_starves(m));
	for (i = 0; i < PAGES; i++)
		assert_int_equal(chunk_memory_acquire(m, id, (uint32_t)i, 0,
		    &slots[i]), CHUNK_ACQUIRED);
	assert_false(chunk_memory_starves(m));
	woken = 0;
	assert_int_equal(chunk_memory_acquire(m, id, 99, 0, &slot),
	    CHUNK_NONE_FREE);
	assert_int_equal(woken, 1);
	assert_true(chunk_memory_starves(m));
	assert_false(chunk_memory_starves(m));
	/* One is on its way: it will be free soon. */
	chunk_memory_complete(m, &slots[3]);
	chunk_memory_wait(m, &(long){ 0 });
	assert_int_equal(woken, 2);
	assert_false(chunk_memory_starves(m));
	assert_int_equal(shm_take(chunk_memory_shm(m), slots[3].page,
	    slots[3].index, &c), SHM_TAKEN);
	chunk_memory_wait(m, &(long){ 0 });
	assert_false(chunk_memory_starves(m));
	shm_release(chunk_memory_shm(m), c.page, c.index);
	chunk_memory_wait(m, &(long){ 0 });
	assert_true(chunk_memory_starves(m));
	chunk_memory_unref(m);
}

static void
the_memory_is_there_as_long_as_anybody_refers_to_it(void **state)
{
	struct chunk_memory *m = begin();
	struct shm_slot slot;
	uint16_t id = chunk_memory_begin_writer(m, BUFFER);

	assert_ptr_equal(chunk_memory_ref(m), m);
	assert_int_equal(chunk_memory_acquire(m, id, 0, 0, &slot),
	    CHUNK_ACQUIRED);
	chunk_memory_unref(m);
	memset(slot.payload, 1, slot.len);
	chunk_memory_unref(m);
	chunk_memory_unref(NULL);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_owner_is_woken_when_something_is_queued_and_nothing_was),
		cmocka_unit_test(the_queue_grows_and_keeps_its_order),
		cmocka_unit_test(a_chunk_that_cannot_be_queued_stays_complete),
		cmocka_unit_test(a_commit_says_what_was_written_and_whereto),
		cmocka_unit_test(an_id_is_used_again_as_late_as_can_be),
		cmocka_unit_test(
		    pages_are_divided_the_more_the_more_writers_there_are),
		cmocka_unit_test(no_chunk_is_free_where_all_are_taken),
		cmocka_unit_test(the_owner_hears_where_writers_hold_all_chunks),
		cmocka_unit_test(nothing_is_acquired_or_queued_after_the_end),
		cmocka_unit_test(
		    the_memory_is_there_as_long_as_anybody_refers_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
