/*
 * Part of every program of cmocka's: `test_x -t NAME`, or $TEST_CASE, picks cases
 * by their name, with * and ? as in a shell.  Set before main(), so that no main()
 * has to: glibc shows constructors the arguments, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

__attribute__((constructor)) static void
filter_cases(int argc, char **argv)
{
	const char *pattern = getenv("TEST_CASE");

#ifdef __GLIBC__
	if (argc >= 3 && strcmp(argv[argc - 2], "-t") == 0)
		pattern = argv[argc - 1];
#endif
	if (pattern != NULL)
		cmocka_set_test_filter(pattern);
}
