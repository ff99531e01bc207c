#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "service/config/name_filter.h"

static int
setup(void **state)
{
	return (*state = name_filter_new()) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	name_filter_free(*state);
	return 0;
}

static void
add_regex(struct name_filter *m, const char *pattern)
{
	char err[256] = "";

	if (name_filter_add_regex(m, pattern, err, sizeof(err)) != 0)
		fail_msg("%s: %s", pattern, err);
}

static const char *
refusal(struct name_filter *m, const char *pattern)
{
	static char err[512];

	err[0] = '\0';
	assert_int_equal(name_filter_add_regex(m, pattern, err, sizeof(err)),
	    -1);
	assert_true(err[0] != '\0');
	return err;
}

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
an_empty_filter_lets_every_name_through(void **state)
{
	struct name_filter *m = *state;

	assert_true(name_filter_is_empty(m));
	assert_true(name_filter_test(m, "anything"));
	assert_true(name_filter_test(m, ""));
}

static void
a_name_fits_only_itself(void **state)
{
	struct name_filter *m = *state;

	assert_int_equal(name_filter_add_name(m, "traced.probes"), 0);
	assert_false(name_filter_is_empty(m));
	assert_true(name_filter_test(m, "traced.probes"));
	assert_false(name_filter_test(m, "tracedXprobes"));
	assert_false(name_filter_test(m, "traced.probes2"));
	assert_false(name_filter_test(m, ""));
}

static void
many_names_are_all_found(void **state)
{
	struct name_filter *m = *state;
	char name[32];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "org.chromium-%d", i);
		assert_int_equal(name_filter_add_name(m, name), 0);
	}
	assert_true(name_filter_test(m, "org.chromium-0"));
	assert_true(name_filter_test(m, "org.chromium-999"));
	assert_false(name_filter_test(m, "org.chromium-1000"));
}

static void
a_pattern_has_to_fit_the_whole_name(void **state)
{
	struct name_filter *m = *state;

	add_regex(m, "org\\.chromium-[0-9]+");
	assert_true(name_filter_test(m, "org.chromium-42"));
	assert_false(name_filter_test(m, "org.chromium-42 "));
	assert_false(name_filter_test(m, "xorg.chromium-42"));
	assert_false(name_filter_test(m, "org.chromium-42\n"));
	assert_false(name_filter_test(m, "org.chromium-"));
}

static void
an_alternative_has_to_fit_the_whole_name_too(void **state)
{
	struct name_filter *m = *state;

	add_regex(m, "a|ab");
	assert_true(name_filter_test(m, "a"));
	assert_true(name_filter_test(m, "ab"));
	assert_false(name_filter_test(m, "abc"));
}

static void
a_pattern_with_groups_fits(void **state)
{
	struct name_filter *m = *state;

	add_regex(m, "(a)(b)(c)(d)\\1");
	assert_true(name_filter_test(m, "abcda"));
	assert_false(name_filter_test(m, "abcdb"));
}

static void
a_name_or_a_pattern_is_enough(void **state)
{
	struct name_filter *m = *state;

	assert_int_equal(name_filter_add_name(m, "one"), 0);
	add_regex(m, "two.*");
	add_regex(m, "three.*");
	assert_true(name_filter_test(m, "one"));
	assert_true(name_filter_test(m, "two2"));
	assert_true(name_filter_test(m, "three3"));
	assert_false(name_filter_test(m, "one1"));
}

static void
names_that_are_no_utf8_are_compared_as_bytes(void **state)
{
	struct name_filter *m = *state;

	add_regex(m, "a.\xff?c");
	assert_true(name_filter_test(m, "a\xc3" "c"));
	assert_true(name_filter_test(m, "a\xc3\xff" "c"));
	assert_false(name_filter_test(m, "a\xc3\xbc\xbc" "c"));
}

static void
a_broken_pattern_is_refused_with_its_place(void **state)
{
	const char *err = refusal(*state, "foo(bar");

	assert_non_null(strstr(err, "\"foo(bar\""));
	assert_non_null(strstr(err, "at byte 7"));
	assert_non_null(strstr(err, "parenthes"));
	assert_true(name_filter_is_empty(*state));
}

static void
a_pattern_cannot_bring_control_characters_into_a_message(void **state)
{
	const char *err = refusal(*state, "\x1b[31m(\n");

	assert_null(strchr(err, '\x1b'));
	assert_null(strchr(err, '\n'));
}

static void
a_pattern_cannot_switch_utf_on(void **state)
{
	refusal(*state, "(*UTF)a");
	refusal(*state, "a\\C");
}

static void
a_pattern_that_is_too_long_is_refused(void **state)
{
	char pattern[NAME_FILTER_PATTERN_MAX + 2];

	memset(pattern, 'a', sizeof(pattern));
	pattern[NAME_FILTER_PATTERN_MAX + 1] = '\0';
	assert_non_null(strstr(refusal(*state, pattern), "longer than 1024"));
	pattern[NAME_FILTER_PATTERN_MAX] = '\0';
	add_regex(*state, pattern);
}

static void
a_pattern_that_grows_when_compiled_is_refused(void **state)
{
	char deep[256];

	refusal(*state, "(((a{1,100}){1,100}){1,100}){1,100}");
	refusal(*state, "((abcdefgh){500}){30}");
	memset(deep, '(', 120);
	deep[120] = 'a';
	memset(deep + 121, ')', 120);
	deep[241] = '\0';
	refusal(*state, deep);
}

static void
more_patterns_than_the_limit_are_refused(void **state)
{
	unsigned i;

	for (i = 0; i < NAME_FILTER_PATTERNS_MAX; i++)
		add_regex(*state, "x");
	assert_non_null(strstr(refusal(*state, "x"), "256"));
}

static void
a_pattern_that_backtracks_for_ever_gives_up_and_does_not_fit(void **state)
{
	static const char *const evil[] = {
		"(a+)+b",
		"(a|a)*b",
		"(a*)*c",
		"(?:(?:a?)+)+$b",
		"(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[z]",
		"(?R)?a(?R)?b",
	};
	struct name_filter *m = *state;
	char name[1025];
	double begin;
	size_t i;

	for (i = 0; i < sizeof(evil) / sizeof(evil[0]); i++)
		add_regex(m, evil[i]);
	memset(name, 'a', sizeof(name) - 1);
	/* The bytes that the patterns require are there, at no use. */
	memcpy(name + sizeof(name) - 5, "bczX", 5);
	begin = cpu_seconds();
	assert_false(name_filter_test(m, name));
	/* Milliseconds each; without limits it is years. */
	assert_true(cpu_seconds() - begin < 5.0);
	assert_int_equal(name_filter_add_name(m, name), 0);
	assert_true(name_filter_test(m, name));
}

static void
slow_patterns_fit_nothing_once_they_took_too_long_together(void **state)
{
	struct name_filter *m = *state;
	char err[256], name[64];
	int tests;

	assert_int_equal(name_filter_add_regex(m, "(a|a?)+b|ok", err,
	    sizeof(err)), 0);
	assert_true(name_filter_test(m, "ok"));
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	/* Each is one that takes long; the filter may have two milliseconds. */
	for (tests = 0; tests < 10000 && name_filter_test(m, "ok"); tests++)
		assert_false(name_filter_test(m, name));
	assert_in_range(tests, 1, 200);
	/* What is named fits as ever. */
	assert_int_equal(name_filter_add_name(m, "ok"), 0);
	assert_true(name_filter_test(m, "ok"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_filter_lets_every_name_through),
		CASE(a_name_fits_only_itself),
		CASE(many_names_are_all_found),
		CASE(a_pattern_has_to_fit_the_whole_name),
		CASE(an_alternative_has_to_fit_the_whole_name_too),
		CASE(a_pattern_with_groups_fits),
		CASE(a_name_or_a_pattern_is_enough),
		CASE(names_that_are_no_utf8_are_compared_as_bytes),
		CASE(a_broken_pattern_is_refused_with_its_place),
		CASE(a_pattern_cannot_bring_control_characters_into_a_message),
		CASE(a_pattern_cannot_switch_utf_on),
		CASE(a_pattern_that_is_too_long_is_refused),
		CASE(a_pattern_that_grows_when_compiled_is_refused),
		CASE(more_patterns_than_the_limit_are_refused),
		CASE(a_pattern_that_backtracks_for_ever_gives_up_and_does_not_fit),
		CASE(slow_patterns_fit_nothing_once_they_took_too_long_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
