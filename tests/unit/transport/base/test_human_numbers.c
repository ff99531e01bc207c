#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/human_numbers.h"

static char out[HUMAN_TEXT_MAX];

static void
bytes_are_shown_in_the_unit_that_reads_best(void **state)
{
	assert_string_equal(human_bytes(out, 0), "0 bytes");
	assert_string_equal(human_bytes(out, 1), "1 byte");
	assert_string_equal(human_bytes(out, 1023), "1023 bytes");
	assert_string_equal(human_bytes(out, 1024), "1.0 KiB");
	assert_string_equal(human_bytes(out, 3500), "3.4 KiB");
	assert_string_equal(human_bytes(out, (1 << 20) - 1), "1.0 MiB");
	assert_string_equal(human_bytes(out, UINT64_MAX), "16.0 EiB");
}

static void
counts_have_commas(void **state)
{
	assert_string_equal(human_count(out, 0), "0");
	assert_string_equal(human_count(out, 999), "999");
	assert_string_equal(human_count(out, 20331), "20,331");
	assert_string_equal(human_count(out, UINT64_MAX),
	    "18,446,744,073,709,551,615");
}

static void
times_lose_detail_as_they_grow(void **state)
{
	assert_string_equal(human_ms(out, 0), "0.0 s");
	assert_string_equal(human_ms(out, 4990), "4.9 s");
	assert_string_equal(human_ms(out, 185000), "3 min 05 s");
	assert_string_equal(human_ms(out, 7620000), "2 h 07 min");
}

static void
numbers_beyond_the_largest_are_the_largest(void **state)
{
	assert_true(human_whole(0) == 0);
	assert_true(human_whole(2.9) == 2);
	assert_true(human_whole(0x1p63) == UINT64_C(1) << 63);
	assert_true(human_whole(0x1p64) == UINT64_MAX);
	assert_true(human_whole(1e300) == UINT64_MAX);
}

static void
words_have_the_plural_of_their_ending(void **state)
{
	assert_string_equal(human_plural("patch", 2), "es");
	assert_string_equal(human_plural("flush", 0), "es");
	assert_string_equal(human_plural("patch", 1), "");
	assert_string_equal(human_plural("packet", 2), "s");
	assert_string_equal(human_plural("h", 2), "s");
	assert_string_equal(human_plural("", 2), "s");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_shown_in_the_unit_that_reads_best),
		cmocka_unit_test(counts_have_commas),
		cmocka_unit_test(times_lose_detail_as_they_grow),
		cmocka_unit_test(words_have_the_plural_of_their_ending),
		cmocka_unit_test(numbers_beyond_the_largest_are_the_largest),
	};

	return cmocka_run_group_tests_name("human", tests, NULL, NULL);
}
