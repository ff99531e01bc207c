#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "client/text/time_text.h"

#define SECOND UINT64_C(1000000000)
#define DAY    (86400 * SECOND)

static void
a_span_names_its_day_once(void **state)
{
	char out[TIME_TEXT_SPAN_MAX];

	assert_string_equal(time_text_span(out, DAY, DAY + 60 * SECOND),
	    "1970-01-02 00:00:00 - 00:01:00");
	assert_string_equal(time_text_span(out, DAY, 2 * DAY),
	    "1970-01-02 00:00:00 - 1970-01-03 00:00:00");
}

/* A catalogue of somebody else's may have such a row. */
static void
a_span_may_begin_at_no_time(void **state)
{
	char out[TIME_TEXT_SPAN_MAX];

	assert_string_equal(time_text_span(out, 0, DAY),
	    "- - 1970-01-02 00:00:00");
	assert_string_equal(time_text_span(out, 0, 0), "- - -");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_span_names_its_day_once),
		cmocka_unit_test(a_span_may_begin_at_no_time),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("time_text", tests, NULL, NULL);
}
