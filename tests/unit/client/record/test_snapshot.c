#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "client/record/snapshot.h"

static const struct tm when = {
	.tm_year = 126, .tm_mon = 2, .tm_mday = 4,
	.tm_hour = 14, .tm_min = 5, .tm_sec = 9,
};

static const char *
name_of(const char *session)
{
	static char name[200];

	return snapshot_file_name(name, sizeof(name), session, &when);
}

static void
a_file_is_called_after_session_and_time(void **state)
{
	assert_string_equal(name_of("flight"),
	    "flight-20260304-140509.pftrace");
	assert_string_equal(name_of("12"),
	    "session-12-20260304-140509.pftrace");
}

static void
what_is_odd_in_a_name_does_not_reach_the_file_system(void **state)
{
	assert_string_equal(name_of("../etc/a b"),
	    "_._etc_a_b-20260304-140509.pftrace");
	assert_string_equal(name_of("-rf"), "_rf-20260304-140509.pftrace");
	assert_string_equal(name_of("\xc3\xa9\n"),
	    "___-20260304-140509.pftrace");
}

static void
a_long_name_is_cut(void **state)
{
	char session[500];

	memset(session, 'x', sizeof(session) - 1);
	session[sizeof(session) - 1] = '\0';
	assert_int_equal(strlen(name_of(session)),
	    64 + strlen("-20260304-140509.pftrace"));
}

/* A command line that is refused; flags go before words. */
static int
run(char *a, char *b, char *c)
{
	char *argv[] = { (char *)"snapshot", a, b, c, NULL };

	return snapshot_main(a == NULL ? 1 : b == NULL ? 2 : c == NULL ? 3 : 4,
	    argv);
}

static void
one_session_is_wanted(void **state)
{
	static char x[] = "x", y[] = "y", flag[] = "--name", wrong[] = "--nam";
	static char empty[] = "", huge[] = "99999999999999999999";

	assert_int_equal(run(NULL, NULL, NULL), 1);
	assert_int_equal(run(x, y, NULL), 1);
	assert_int_equal(run(flag, x, y), 1);
	assert_int_equal(run(flag, NULL, NULL), 1);
	assert_int_equal(run(wrong + 1, wrong, NULL), 1);
	assert_int_equal(run(empty, NULL, NULL), 1);
	assert_int_equal(run(huge, NULL, NULL), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_called_after_session_and_time),
		cmocka_unit_test(
		    what_is_odd_in_a_name_does_not_reach_the_file_system),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(one_session_is_wanted),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
