#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "transport/segment/segment_path.h"

/* 2026-11-03 04:05:06 UTC */
#define WHEN 1793678706000000000u

static const struct segment_name kiosk = { .recording = "always",
	.machine = "kiosk-7", .machine_id = 3, .number = 42,
	.realtime_ns = WHEN };

static void
assert_expands(const char *pattern, const struct segment_name *of,
    const char *to)
{
	char out[SEGMENT_PATH_MAX], err[300];

	assert_int_equal(segment_path_check(pattern, false, err,
	    sizeof(err)), 0);
	segment_path_expand(out, pattern, of);
	assert_string_equal(out, to);
}

/* Asserts that a sentence has `why` in it. */
static void
assert_refused(const char *pattern, bool by_machine, const char *why)
{
	char err[300];

	assert_int_equal(segment_path_check(pattern, by_machine, err,
	    sizeof(err)), -1);
	if (strstr(err, why) == NULL)
		fail_msg("'%s' lacks '%s'", err, why);
}

static void
the_default_patterns_are_right_and_name_what_they_should(void **state)
{
	char err[300];

	assert_expands(segment_path_default(false), &kiosk,
	    "always/2026-11-03/040506-000042.pftrace");
	assert_expands(segment_path_default(true), &kiosk,
	    "always/kiosk-7/2026-11-03/040506-000042.pftrace");
	assert_int_equal(segment_path_check(segment_path_default(true), true,
	    err, sizeof(err)), 0);
}

static void
every_word_expands(void **state)
{
	assert_expands("%recording+%machine+%n+%Y+%m+%d+%H+%M+%S+%%.pftrace",
	    &kiosk,
	    "always+kiosk-7+000042+2026+11+03+04+05+06+%.pftrace");
}

static void
numbers_beyond_six_digits_stay_whole(void **state)
{
	const struct segment_name of = { .number = 4294967295u };

	assert_expands("%n.pftrace", &of, "4294967295.pftrace");
}

static void
names_of_others_cannot_leave_the_folder_or_hide(void **state)
{
	struct segment_name of = { .machine = "..", .recording = "a/../b" };

	assert_expands("%machine/%recording/%n.pftrace", &of,
	    "%2E./a%2F..%2Fb/000000.pftrace");
	of.machine = "/etc";
	of.recording = "a\nb\x7f" "c\xff" "d%2Fe\\f";
	assert_expands("%machine/%recording/%n.pftrace", &of,
	    "%2Fetc/a%0Ab%7Fc%FFd%252Fe%5Cf/000000.pftrace");
	of.machine = "k\xc3\xbc" "che";
	of.recording = "x";
	assert_expands("%machine/%recording/%n.pftrace", &of,
	    "k\xc3\xbc" "che/x/000000.pftrace");
}

static void
names_that_are_not_known_are_made_up(void **state)
{
	struct segment_name of = { .recording = "", .machine_id = 7 };

	assert_expands("%recording/%machine/%n.pftrace", &of,
	    "recording/machine-7/000000.pftrace");
	of.machine_id = 0;
	assert_expands("%recording/%machine/%n.pftrace", &of,
	    "recording/host/000000.pftrace");
}

static void
long_names_are_cut_between_characters(void **state)
{
	char name[301], out[SEGMENT_PATH_MAX];
	struct segment_name of = { .machine = name };
	size_t i;

	memset(name, '/', 300);
	name[300] = '\0';
	segment_path_expand(out, "%machine/%n.pftrace", &of);
	assert_int_equal(strcspn(out, "/"), 99);
	for (i = 0; i < 100; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	segment_path_expand(out, "%machine/%n.pftrace", &of);
	assert_int_equal(strcspn(out, "/"), 99);
	assert_memory_equal(out + 96, "\xe2\x82\xac/", 4);
}

static void
wrong_patterns_are_refused_with_the_reason(void **state)
{
	assert_refused("%x-%n.pftrace", false, "there is no %x");
	assert_refused("%n%", false, "end in .pftrace");
	assert_refused("%n%.pftrace", false, "there is no %.");
	assert_refused("/abs/%n.pftrace", false, "relative");
	assert_refused("a/../%n.pftrace", false, "begin with a dot");
	assert_refused("../%n.pftrace", false, "begin with a dot");
	assert_refused(".hidden/%n.pftrace", false, "begin with a dot");
	assert_refused(".pftrace", false, "begin with a dot");
	assert_refused("a//%n.pftrace", false, "two slashes");
	assert_refused("a\t%n.pftrace", false, "control character");
	assert_refused("%n.trace", false, "end in .pftrace");
	assert_refused("", false, "end in .pftrace");
	assert_refused("same.pftrace", false, "needs %n");
	assert_refused("%H%M%S.pftrace", false, "needs %n");
	assert_refused("%n.pftrace", true, "needs %machine");
}

static void
times_alone_make_names_differ(void **state)
{
	assert_expands("%Y%m%d-%H%M%S.pftrace", &kiosk,
	    "20261103-040506.pftrace");
}

static void
patterns_that_may_become_too_long_are_refused(void **state)
{
	char pattern[2000] = "";
	size_t i;

	assert_refused("%machine%machine%machine%n.pftrace", false, "too long");
	for (i = 0; i < 12; i++)
		strcat(pattern, "%recording/");
	strcat(pattern, "%n.pftrace");
	assert_refused(pattern, false, "too long");
}

static void
a_name_that_is_taken_has_an_alternative(void **state)
{
	char out[SEGMENT_PATH_MAX];

	segment_path_alternative(out, "a.b/x-000001.pftrace", 2);
	assert_string_equal(out, "a.b/x-000001-2.pftrace");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_default_patterns_are_right_and_name_what_they_should),
		cmocka_unit_test(every_word_expands),
		cmocka_unit_test(numbers_beyond_six_digits_stay_whole),
		cmocka_unit_test(
		    names_of_others_cannot_leave_the_folder_or_hide),
		cmocka_unit_test(names_that_are_not_known_are_made_up),
		cmocka_unit_test(long_names_are_cut_between_characters),
		cmocka_unit_test(wrong_patterns_are_refused_with_the_reason),
		cmocka_unit_test(times_alone_make_names_differ),
		cmocka_unit_test(patterns_that_may_become_too_long_are_refused),
		cmocka_unit_test(a_name_that_is_taken_has_an_alternative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
