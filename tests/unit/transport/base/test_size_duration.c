#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/base/size_duration.h"

static char err[200];

static void
assert_ms(const char *text, uint32_t want)
{
	uint32_t ms = 1;

	assert_int_equal(size_duration_parse_ms(text, &ms, err, sizeof(err)),
	    0);
	assert_int_equal(ms, want);
}

static void
assert_bytes(const char *text, uint64_t want)
{
	uint64_t bytes = 1;

	assert_int_equal(size_duration_parse_bytes(text, &bytes, err,
	    sizeof(err)), 0);
	assert_true(bytes == want);
}

static void
assert_no_time(const char *text, const char *why)
{
	uint32_t ms = 77;

	err[0] = '\0';
	assert_int_equal(size_duration_parse_ms(text, &ms, err, sizeof(err)),
	    -1);
	assert_int_equal(ms, 77);
	assert_non_null(strstr(err, why));
}

static void
assert_no_size(const char *text, const char *why)
{
	uint64_t bytes = 77;

	err[0] = '\0';
	assert_int_equal(size_duration_parse_bytes(text, &bytes, err,
	    sizeof(err)), -1);
	assert_true(bytes == 77);
	assert_non_null(strstr(err, why));
}

static void
times_have_the_suffixes_of_perfetto(void **state)
{
	assert_ms("0", 0);
	assert_ms("250ms", 250);
	assert_ms("10s", 10000);
	assert_ms("5m", 300000);
	assert_ms("1h", 3600000);
	assert_ms("0s", 0);
	assert_ms("1193h", 1193u * 3600000u);
}

static void
what_is_no_time_is_refused_with_a_sentence(void **state)
{
	assert_no_time("", "not a time");
	assert_no_time("s", "not a time");
	assert_no_time("-1s", "not a time");
	assert_no_time("10", "no unit");
	assert_no_time("10 s", "no unit");
	assert_no_time("10sec", "no unit");
	assert_no_time("1.5s", "no unit");
	assert_no_time("1194h", "too long");
	assert_no_time("99999999999999999999s", "too long");
}

static void
sizes_are_powers_of_1024(void **state)
{
	assert_bytes("0", 0);
	assert_bytes("64kb", 64 << 10);
	assert_bytes("64K", 64 << 10);
	assert_bytes("32mb", 32 << 20);
	assert_bytes("32MB", 32 << 20);
	assert_bytes("7m", 7 << 20);
	assert_bytes("1gb", 1ull << 30);
	assert_bytes("5g", 5ull << 30);
	assert_bytes("1048576g", 1ull << 50);
}

static void
what_is_no_size_is_refused_with_a_sentence(void **state)
{
	assert_no_size("", "not a size");
	assert_no_size("mb", "not a size");
	assert_no_size("10", "no unit");
	assert_no_size("10b", "no unit");
	assert_no_size("10mib", "no unit");
	assert_no_size("1048577g", "larger");
	assert_no_size("18446744073709551616k", "larger");
}

static void
long_times_have_days(void **state)
{
	uint64_t ms = 77;

	assert_int_equal(size_duration_parse_long_ms("14d", &ms, err,
	    sizeof(err)), 0);
	assert_true(ms == 14ull * 24 * 3600 * 1000);
	assert_int_equal(size_duration_parse_long_ms("5min", &ms, err,
	    sizeof(err)), 0);
	assert_true(ms == 300000);
	assert_int_equal(size_duration_parse_long_ms("3651d", &ms, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "at most 3650d"));
	assert_int_equal(size_duration_parse_long_ms("14", &ms, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "no unit"));
	assert_int_equal(size_duration_parse_long_ms("soon", &ms, err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "not a time"));
	assert_true(ms == 300000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_the_suffixes_of_perfetto),
		cmocka_unit_test(what_is_no_time_is_refused_with_a_sentence),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(what_is_no_size_is_refused_with_a_sentence),
		cmocka_unit_test(long_times_have_days),
	};

	return cmocka_run_group_tests_name("size_duration", tests, NULL, NULL);
}
