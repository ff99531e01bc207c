#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "service/front/certificates.h"

#define DAY 86400
#define END ((time_t)1800000000) /* 2027-01-15 08:00:00 UTC */

static char text[320];

static bool
soon(const char *name, time_t now)
{
	memset(text, 0, sizeof(text));
	return certificates_ends_soon(name, END, now, text, sizeof(text));
}

static void
more_than_two_weeks_before_its_end_nothing_is_said(void **state)
{
	assert_false(soon("c", END - 14 * DAY - 1));
	assert_false(soon("c", 0));
}

static void
in_its_last_two_weeks_the_days_are_counted(void **state)
{
	assert_true(soon("c", END - 14 * DAY));
	assert_string_equal(text, "the certificate \"c\" ends in 14 days, on "
	    "2027-01-15 08:00:00 UTC: renew it");
	assert_true(soon("c", END - DAY - 1));
	assert_non_null(strstr(text, "in 1 day,"));
	assert_true(soon("c", END));
	assert_non_null(strstr(text, "in 0 days,"));
}

static void
after_its_end_the_words_are_others(void **state)
{
	assert_true(soon("c", END + 1));
	assert_non_null(strstr(text, "expired on 2027-01-15 08:00:00 UTC"));
}

static void
its_name_is_escaped(void **state)
{
	assert_true(soon("a\n\"b", END));
	assert_non_null(strstr(text, "\"a\\x0a\\x22b\""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    more_than_two_weeks_before_its_end_nothing_is_said),
		cmocka_unit_test(in_its_last_two_weeks_the_days_are_counted),
		cmocka_unit_test(after_its_end_the_words_are_others),
		cmocka_unit_test(its_name_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
