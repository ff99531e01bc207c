/*
 * Part of every program of cmocka's: $TEST_CASE picks cases by their name, with
 * * and ? as in a shell.  Set before main(), so that no main() has to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void
filter_cases(void)
{
	const char *pattern = getenv("TEST_CASE");

	if (pattern != NULL)
		cmocka_set_test_filter(pattern);
}
