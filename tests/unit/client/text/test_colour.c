#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "client/text/colour.h"
#include "client/text/terminal.h"
#include "client/text/text_cell.h"

static void
colours_are_for_terminals_whose_user_wants_them(void **state)
{
	(void)state;
	assert_true(colour_is_on_as(true, "xterm", NULL));
	assert_true(colour_is_on_as(true, "xterm", ""));
	assert_false(colour_is_on_as(true, "xterm", "1"));
	assert_false(colour_is_on_as(true, "xterm", "0"));
	assert_false(colour_is_on_as(true, "dumb", NULL));
	assert_false(colour_is_on_as(true, "", NULL));
	assert_false(colour_is_on_as(true, NULL, NULL));
	assert_false(colour_is_on_as(false, "xterm", NULL));
}

static void
a_line_is_redrawn_without_colours_too(void **state)
{
	(void)state;
	assert_true(terminal_redraws_as(true, "vt100"));
	assert_false(terminal_redraws_as(true, "dumb"));
	assert_false(terminal_redraws_as(false, "vt100"));
}

static void
the_locale_of_the_user_tells_utf8(void **state)
{
	(void)state;
	setenv("LC_ALL", "C.UTF-8", 1);
	assert_true(terminal_has_utf8());
	setenv("LC_ALL", "C", 1);
	assert_false(terminal_has_utf8());
	setenv("LC_ALL", "no_SUCH.UTF-8", 1);
	assert_false(terminal_has_utf8());
	unsetenv("LC_ALL");
}

static char *
cell(bool coloured, enum colour c)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_false(colour_is_on(out));
	text_cell_put_in(out, "\xe4\xb8\xad", 4, coloured, c);
	fclose(out);
	return text;
}

static void
a_cell_is_as_wide_with_a_colour_as_without(void **state)
{
	char *text;

	(void)state;
	text = cell(false, COLOUR_BAD);
	assert_string_equal(text, "\xe4\xb8\xad    ");
	free(text);
	text = cell(true, COLOUR_BAD);
	assert_string_equal(text, "\033[31m\xe4\xb8\xad\033[0m    ");
	free(text);
	text = cell(true, COLOUR_NONE);
	assert_string_equal(text, "\xe4\xb8\xad    ");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    colours_are_for_terminals_whose_user_wants_them),
		cmocka_unit_test(a_line_is_redrawn_without_colours_too),
		cmocka_unit_test(the_locale_of_the_user_tells_utf8),
		cmocka_unit_test(a_cell_is_as_wide_with_a_colour_as_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
