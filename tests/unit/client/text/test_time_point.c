#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "client/text/time_point.h"

#define SECOND 1000000000ll

/* Monday, 23 November 2026, 15:00:00 in Berlin, where it is UTC+1. */
static const int64_t now = 1795442400 * SECOND;

static int
setup(void **state)
{
	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return 0;
}

static int64_t
at(const char *text)
{
	char err[256] = "";
	int64_t ns = -1;

	if (time_point_parse(text, now, 0, &ns, err, sizeof(err)) != 0)
		fail_msg("%s: %s", text, err);
	return ns;
}

static int64_t
after(const char *text, int64_t from)
{
	char err[256] = "";
	int64_t ns = -1;

	if (time_point_parse(text, now, from, &ns, err, sizeof(err)) != 0)
		fail_msg("%s: %s", text, err);
	return ns;
}

static void
a_time_of_day_is_the_last_one(void **state)
{
	(void)state;
	assert_int_equal(at("14:32"), now - 28 * 60 * SECOND);
	assert_int_equal(at("14:32:10.5"), now - 28 * 60 * SECOND +
	    10 * SECOND + SECOND / 2);
	assert_int_equal(at("15:00"), now);
	assert_int_equal(at("15:01"), now + 60 * SECOND - 86400 * SECOND);
	assert_int_equal(at("9:05"), now - (5 * 3600 + 55 * 60) * SECOND);
}

static void
the_end_of_a_span_is_behind_its_begin(void **state)
{
	int64_t from = at("14:00");

	(void)state;
	assert_int_equal(after("16:00", from), now + 3600 * SECOND);
	assert_int_equal(after("13:00", from), now + 22 * 3600 * SECOND);
	from = at("yesterday 22:00");
	assert_int_equal(after("23:00", from), from + 3600 * SECOND);
	assert_int_equal(after("01:00", from), from + 3 * 3600 * SECOND);
}

static void
days_have_names(void **state)
{
	(void)state;
	assert_int_equal(at("today 14:32"), at("14:32"));
	assert_int_equal(at("yesterday 14:32"), at("14:32") - 86400 * SECOND);
	assert_int_equal(at("Yesterday"), now - (24 + 15) * 3600 * SECOND);
	assert_int_equal(at("now"), now);
}

static void
dates_are_local_unless_they_say_their_zone(void **state)
{
	(void)state;
	assert_int_equal(at("2026-11-23 15:00"), now);
	assert_int_equal(at("2026-11-23T15:00:00"), now);
	assert_int_equal(at("2026-11-23 14:00:00 UTC"), now);
	assert_int_equal(at("2026-11-23T14:00:00Z"), now);
	assert_int_equal(at("2026-11-23T14:00:00.250z"), now + SECOND / 4);
	assert_int_equal(at("2026-11-23T19:30:00+05:30"), now);
	assert_int_equal(at("2026-11-23T05:00:00-0900"), now);
	assert_int_equal(at("2026-11-23"), now - 15 * 3600 * SECOND);
	/* Summer: UTC+2. */
	assert_int_equal(at("2026-07-01 12:00"), at("2026-07-01T10:00:00Z"));
}

static void
spans_count_back_from_now(void **state)
{
	(void)state;
	assert_int_equal(at("-2h"), now - 7200 * SECOND);
	assert_int_equal(at("-1h30m"), now - 5400 * SECOND);
	assert_int_equal(at("-90s"), now - 90 * SECOND);
	assert_int_equal(at("5min ago"), now - 300 * SECOND);
	assert_int_equal(at("3 d ago"), now - 3 * 86400 * SECOND);
	assert_int_equal(at("-1w"), now - 7 * 86400 * SECOND);
}

static void
seconds_since_1970_are_told_by_an_at(void **state)
{
	(void)state;
	assert_int_equal(at("@1795442400"), now);
	assert_int_equal(at("@1795442400.5"), now + SECOND / 2);
}

static void
other_words_are_refused_with_a_sentence(void **state)
{
	static const char *const wrong[] = { "", "14", "14:3", "24:00",
		"14:60", "14:32:60", "14:32 tomorrow", "2026-11-31",
		"2026-13-01", "2026-02-29 10:00", "2026-11-23T", "-2", "-2x",
		"5m", "-", "yesterday noon", "@", "@x", "1969-01-01",
		"2026-11-23 14:00 +1", "2026-11-23 14:00 Mars", "-999999999w",
		"14:32:10.", "@99999999999999999999" };
	char err[256];
	int64_t ns = 7;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		err[0] = '\0';
		if (time_point_parse(wrong[i], now, 0, &ns, err,
		    sizeof(err)) == 0)
			fail_msg("%s is taken", wrong[i]);
		assert_non_null(strstr(err, "is no time"));
	}
	assert_int_equal(ns, 7);
}

static void
spans_have_units(void **state)
{
	char err[256] = "";
	int64_t ns = 7;

	(void)state;
	assert_int_equal(time_span_parse("30s", &ns, err, sizeof(err)), 0);
	assert_int_equal(ns, 30 * SECOND);
	assert_int_equal(time_span_parse("250ms", &ns, err, sizeof(err)), 0);
	assert_int_equal(ns, SECOND / 4);
	assert_int_equal(time_span_parse("1h30m", &ns, err, sizeof(err)), 0);
	assert_int_equal(ns, 5400 * SECOND);
	assert_int_equal(time_span_parse("30", &ns, err, sizeof(err)), -1);
	assert_int_equal(time_span_parse("-3s", &ns, err, sizeof(err)), -1);
	assert_int_equal(time_span_parse("3s ", &ns, err, sizeof(err)), -1);
	assert_string_equal(err, "\"3s \" is no span of time, as 30s, 5m or "
	    "2h are");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_of_day_is_the_last_one),
		cmocka_unit_test(the_end_of_a_span_is_behind_its_begin),
		cmocka_unit_test(days_have_names),
		cmocka_unit_test(dates_are_local_unless_they_say_their_zone),
		cmocka_unit_test(spans_count_back_from_now),
		cmocka_unit_test(seconds_since_1970_are_told_by_an_at),
		cmocka_unit_test(other_words_are_refused_with_a_sentence),
		cmocka_unit_test(spans_have_units),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
