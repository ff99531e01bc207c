#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/page/page_reader.h"

#define PAGE 4096
#define DATA 16

static const struct page_layout layout = {
	.commit_offset = 8,
	.commit_size = 8,
	.data_offset = DATA,
	.page_size = PAGE,
};
static uint8_t page[PAGE];
static size_t used; /* bytes of records */
static struct page_reader r;
static struct page_record record;

static int
setup(void **state)
{
	memset(page, 0, sizeof(page));
	used = 0;
	return 0;
}

static void
put(uint32_t word)
{
	memcpy(page + DATA + used, &word, 4);
	used += 4;
}

static void
put_header(uint32_t type, uint32_t delta)
{
	put(type | delta << 5);
}

/* An event of n words. */
static void
put_event(uint32_t delta, uint16_t id, uint32_t n)
{
	put_header(n, delta);
	put(id);
	while (n-- > 1)
		put(n);
}

static void
finish(uint64_t time, uint64_t flags)
{
	uint64_t commit = used | flags;

	memcpy(page, &time, 8);
	memcpy(page + 8, &commit, 8);
}

static void
start(uint64_t time)
{
	finish(time, 0);
	assert_true(page_reader_init(&r, page, PAGE, &layout));
	assert_false(r.lost);
}

static void
expect(uint64_t time, uint16_t id, size_t len)
{
	assert_true(page_reader_next(&r, &record));
	assert_int_equal(record.time, time);
	assert_int_equal(page_record_id(&record), id);
	assert_int_equal(record.len, len);
}

static void
expect_end(enum page_fault fault)
{
	assert_false(page_reader_next(&r, &record));
	assert_int_equal(r.fault, fault);
	assert_false(page_reader_next(&r, &record)); /* for good */
	assert_int_equal(r.fault, fault);
}

static void
times_add_up(void **state)
{
	put_event(0, 7, 3);
	put_event(5, 8, 28);
	put_event((1u << 27) - 1, 9, 1);
	start(1000);
	expect(1000, 7, 12);
	expect(1005, 8, 112);
	expect(1005 + (1u << 27) - 1, 9, 4);
	expect_end(PAGE_SOUND);
}

static void
a_long_event_has_its_length_in_its_first_word(void **state)
{
	uint32_t i;

	put_header(0, 3);
	put(4 + 200); /* itself, and the data */
	put(11);
	for (i = 1; i < 50; i++)
		put(i);
	put_event(1, 12, 1);
	start(10);
	expect(13, 11, 200);
	assert_ptr_equal(record.data, page + DATA + 8);
	expect(14, 12, 4);
	expect_end(PAGE_SOUND);
}

static void
time_extends_and_time_stamps_move_the_time(void **state)
{
	put_header(PAGE_TIME_EXTEND, 5);
	put(2);
	put_event(1, 7, 1);
	put_header(PAGE_TIME_STAMP, 77);
	put(3);
	put_event(2, 8, 1);
	start(100);
	expect(100 + 5 + (UINT64_C(2) << 27) + 1, 7, 4);
	expect((UINT64_C(3) << 27) + 77 + 2, 8, 4);
	expect_end(PAGE_SOUND);
}

static void
a_time_stamp_keeps_the_highest_bits_of_the_page(void **state)
{
	uint64_t high = UINT64_C(3) << 59;

	put_header(PAGE_TIME_STAMP, 9);
	put(4);
	put_event(1, 7, 1);
	start(high + 5);
	expect(high + (UINT64_C(4) << 27) + 10, 7, 4);
}

static void
padding_is_stepped_over(void **state)
{
	put_event(1, 7, 1);
	put_header(PAGE_PADDING, 4); /* a discarded event: time goes on */
	put(12);
	put(0);
	put(0);
	put_event(1, 8, 1);
	start(0);
	expect(1, 7, 4);
	expect(6, 8, 4);
	expect_end(PAGE_SOUND);
}

static void
an_empty_page_has_no_events(void **state)
{
	start(5);
	expect_end(PAGE_SOUND);
}

static void
losses_are_told_with_their_count_where_there_is_room(void **state)
{
	uint64_t n = 123456789;

	put_event(0, 7, 1);
	memcpy(page + DATA + used, &n, sizeof(n));
	finish(0, PAGE_LOST | PAGE_LOST_STORED);
	assert_true(page_reader_init(&r, page, PAGE, &layout));
	assert_true(r.lost);
	assert_int_equal(r.n_lost, n);
	assert_int_equal(r.used, 8);
	expect(0, 7, 4);
	expect_end(PAGE_SOUND);

	finish(0, PAGE_LOST);
	assert_true(page_reader_init(&r, page, PAGE, &layout));
	assert_true(r.lost);
	assert_int_equal(r.n_lost, 0);
	/* a page that says so, but ends too early for the count */
	finish(0, PAGE_LOST | PAGE_LOST_STORED);
	assert_true(page_reader_init(&r, page, DATA + used + 7, &layout));
	assert_true(r.lost);
	assert_int_equal(r.n_lost, 0);
}

static void
a_kernel_of_32_bits_has_a_shorter_header(void **state)
{
	static const struct page_layout narrow = {
		.commit_offset = 8,
		.commit_size = 4,
		.data_offset = 12,
		.page_size = PAGE,
	};
	uint32_t commit = 8 | PAGE_LOST | PAGE_LOST_STORED, n = 9;
	uint32_t words[] = { 1 | 2 << 5, 7 };
	uint64_t time = 40;

	memcpy(page, &time, 8);
	memcpy(page + 8, &commit, 4);
	memcpy(page + 12, words, 8);
	memcpy(page + 20, &n, 4);
	assert_true(page_reader_init(&r, page, PAGE, &narrow));
	assert_int_equal(r.n_lost, 9);
	expect(42, 7, 4);
	expect_end(PAGE_SOUND);
}

static void
a_page_that_says_more_than_it_has_is_refused(void **state)
{
	used = PAGE - DATA + 1;
	finish(0, 0);
	assert_false(page_reader_init(&r, page, PAGE, &layout));
	assert_int_equal(r.fault, PAGE_INVALID_HEADER);
	assert_false(page_reader_next(&r, &record));
	assert_false(page_reader_init(&r, page, DATA - 1, &layout));
	assert_int_equal(r.fault, PAGE_INVALID_HEADER);
}

static void
broken_after_an_event(enum page_fault fault)
{
	start(0);
	expect(1, 7, 4);
	expect_end(fault);
	setup(NULL);
	put_event(1, 7, 1);
}

static void
each_broken_record_has_its_verdict(void **state)
{
	static const struct {
		uint32_t type, delta, second;
		enum page_fault alone, fault; /* without the second word */
	} cases[] = {
		{ PAGE_PADDING, 1, 3, PAGE_SHORT_PADDING_LENGTH,
		    PAGE_INVALID_PADDING_LENGTH },
		{ PAGE_PADDING, 1, 8, PAGE_SHORT_PADDING_LENGTH,
		    PAGE_END_OVERFLOW },
		{ PAGE_TIME_EXTEND, 1, 1, PAGE_SHORT_TIME_EXTEND, PAGE_SOUND },
		{ PAGE_TIME_STAMP, 1, 1, PAGE_SHORT_TIME_STAMP, PAGE_SOUND },
		{ 0, 1, 0, PAGE_SHORT_DATA_LENGTH, PAGE_ZERO_DATA_LENGTH },
		{ 0, 1, 3, PAGE_SHORT_DATA_LENGTH, PAGE_INVALID_DATA_LENGTH },
		{ 0, 1, 4, PAGE_SHORT_DATA_LENGTH, PAGE_SHORT_EVENT_ID },
		{ 0, 1, 5, PAGE_SHORT_DATA_LENGTH, PAGE_END_OVERFLOW },
		{ 0, 1, UINT32_MAX, PAGE_SHORT_DATA_LENGTH,
		    PAGE_END_OVERFLOW },
		{ 2, 1, 0, PAGE_END_OVERFLOW, PAGE_END_OVERFLOW },
	};
	size_t i;

	put_event(1, 7, 1);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_header(cases[i].type, cases[i].delta);
		broken_after_an_event(cases[i].alone);
		put_header(cases[i].type, cases[i].delta);
		put(cases[i].second);
		broken_after_an_event(cases[i].fault);
	}
	put_header(PAGE_PADDING, 0);
	broken_after_an_event(PAGE_NULL_PADDING);
	put(1);
	used -= 1;
	broken_after_an_event(PAGE_SHORT_EVENT_HEADER);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(times_add_up),
		T(a_long_event_has_its_length_in_its_first_word),
		T(time_extends_and_time_stamps_move_the_time),
		T(a_time_stamp_keeps_the_highest_bits_of_the_page),
		T(padding_is_stepped_over),
		T(an_empty_page_has_no_events),
		T(losses_are_told_with_their_count_where_there_is_room),
		T(a_kernel_of_32_bits_has_a_shorter_header),
		T(a_page_that_says_more_than_it_has_is_refused),
		T(each_broken_record_has_its_verdict),
	};

	return cmocka_run_group_tests_name("page_reader", tests, NULL, NULL);
}
