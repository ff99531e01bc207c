#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/ftrace/config/ftrace_config.h"
#include "client/ftrace/events/print_filter.h"

#define RULES 3

static struct ftrace_print_rule rules[RULES];
static struct print_filter filter;

static int
setup(void **state)
{
	filter = (struct print_filter){ rules, 0 };
	return 0;
}

static void
add_prefix(const char *prefix, bool allow)
{
	rules[filter.n++] = (struct ftrace_print_rule){
		.match = FTRACE_PRINT_PREFIX, .type = "", .prefix = prefix,
		.allow = allow };
}

static void
add_atrace(const char *type, const char *prefix, bool allow)
{
	rules[filter.n++] = (struct ftrace_print_rule){
		.match = FTRACE_PRINT_ATRACE, .type = type, .prefix = prefix,
		.allow = allow };
}

static bool
allows(const char *text)
{
	return print_filter_allows(&filter, text, strlen(text));
}

static void
without_a_rule_that_matches_text_is_allowed(void **state)
{
	assert_true(allows(""));
	assert_true(allows("anything"));
}

static void
the_first_rule_that_matches_decides(void **state)
{
	add_prefix("good one", true);
	add_prefix("good", false);
	assert_true(allows("good one more"));
	assert_false(allows("good two"));
	assert_false(allows("good"));
	assert_true(allows("goo"));
	assert_true(allows("a good"));
}

static void
a_prefix_of_no_length_is_that_of_any_text(void **state)
{
	add_prefix("keep", true);
	add_prefix("", false);
	assert_true(allows("keep this"));
	assert_false(allows("other"));
	assert_false(allows(""));
}

static void
an_atrace_message_has_any_thread(void **state)
{
	add_atrace("B", "name", false);
	assert_false(allows("B|1234|name"));
	assert_false(allows("B|1|name and more"));
	/* No digits at all are no other number. */
	assert_false(allows("B||name"));
	assert_true(allows("B|12x4|name"));
	assert_true(allows("B|1234name"));
	assert_true(allows("B|1234|nam"));
	assert_true(allows("E|1234|name"));
	assert_true(allows("B|1234"));
	assert_true(allows("B|"));
	assert_true(allows("B"));
	assert_true(allows(""));
}

static void
an_atrace_message_without_a_prefix_is_any_of_its_type(void **state)
{
	add_atrace("E", "", false);
	assert_false(allows("E|1234|"));
	assert_true(allows("E|1234"));
	assert_true(allows("B|1234|"));
}

/* Text ends where its length says. */
static void
bytes_behind_the_text_are_not_looked_at(void **state)
{
	add_prefix("long prefix", false);
	assert_true(print_filter_allows(&filter, "long prefix", 10));
	assert_false(print_filter_allows(&filter, "long prefix", 11));
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		CASE(without_a_rule_that_matches_text_is_allowed),
		CASE(the_first_rule_that_matches_decides),
		CASE(a_prefix_of_no_length_is_that_of_any_text),
		CASE(an_atrace_message_has_any_thread),
		CASE(an_atrace_message_without_a_prefix_is_any_of_its_type),
		CASE(bytes_behind_the_text_are_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
