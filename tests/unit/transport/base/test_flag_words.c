/* The first word of a command: which it is, and what is said of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/base/flag_words.h"

static const struct {
	const char *word;
	double other; /* as tables have */
} table[] = {
	{ "init", 1 },
	{ "issue", 2 },
	{ "show", 3 },
};

static void
assert_says(const char *word, const char *sentence)
{
	char err[200] = "";
	size_t at;

	assert_int_equal(flag_words_find(&FLAG_WORDS("cert", table), word, &at, err,
	    sizeof(err)), -1);
	assert_string_equal(err, sentence);
}

static void
a_word_is_found_in_its_line(void **state)
{
	char err[200];
	size_t i, at;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(flag_words_find(&FLAG_WORDS("cert", table),
		    table[i].word, &at, err, sizeof(err)), 0);
		assert_int_equal(at, i);
	}
}

static void
another_word_is_told_what_is_meant(void **state)
{
	assert_says(NULL, "say what to do: init, issue or show; see "
	    "tributary cert --help");
	assert_says("isue", "there is no command cert isue; did you mean issue?");
	assert_says("revoke", "there is no command cert revoke: say init, issue "
	    "or show");
	assert_says("", "there is no command cert : say init, issue or show");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_found_in_its_line),
		cmocka_unit_test(another_word_is_told_what_is_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
