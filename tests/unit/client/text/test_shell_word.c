#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/text/shell_word.h"

static void
what_a_shell_would_misread_is_quoted(void **state)
{
	char out[64];

	assert_string_equal(shell_word("/a/b-1.x", out, sizeof(out)),
	    "/a/b-1.x");
	assert_string_equal(shell_word("a b", out, sizeof(out)), "'a b'");
	assert_string_equal(shell_word("O'H $x", out, sizeof(out)),
	    "'O'\\''H $x'");
	assert_string_equal(shell_word("", out, sizeof(out)), "''");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_shell_would_misread_is_quoted),
	};

	return cmocka_run_group_tests_name("shell_word", tests, NULL, NULL);
}
