#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/base/glob.h"

static void
patterns_fit_bytes(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool fits;
	} cases[] = {
		{ "a", "a", true }, { "a", "A", false }, { "a", "ab", false },
		{ "ab", "a", false }, { "*", "", true }, { "?", "", false },
		{ "*", "anything/at.all", true }, { "a*", "a", true },
		{ "a*c", "abc", true }, { "a*c", "abcd", false },
		{ "a*c", "abcbc", true }, { "a?c", "abc", true },
		{ "a?c", "ac", false }, { "*b*", "abc", true },
		{ "*b*", "ac", false }, { "a**c", "ac", true },
		{ "*?", "", false }, { "*?", "a", true },
		{ "", "", true }, { "", "a", false }, { "[a]", "a", false },
		{ "[a]", "[a]", true }, { "a\\*", "a\\b", true },
		{ "*aab", "aaab", true }, { "*ab*ab", "abxab", true },
		{ "*ab*ab", "ab", false },
	};
	char name[4096], pattern[64];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (glob_match(cases[i].pattern, cases[i].name) !=
		    cases[i].fits)
			fail_msg("%s against %s", cases[i].pattern,
			    cases[i].name);
	/* A pattern that makes others take for ever. */
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i + 3 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 3);
	memcpy(pattern + i, "b", 2);
	assert_false(glob_match(pattern, name));
}

static void
only_stars_and_question_marks_make_a_pattern(void **state)
{
	assert_true(glob_is_pattern("robot-*"));
	assert_true(glob_is_pattern("?"));
	assert_false(glob_is_pattern("robot-7"));
	assert_false(glob_is_pattern("[a]"));
	assert_false(glob_is_pattern(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_fit_bytes),
		cmocka_unit_test(only_stars_and_question_marks_make_a_pattern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
