#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "client/text/text_cell.h"
#include "client/text/text_width.h"
#include "protos/utf8.h"

#define WIDE    "\xe4\xb8\xad"     /* U+4E2D */
#define ACUTE   "\xcc\x81"         /* U+0301, combining */
#define EMOJI   "\xf0\x9f\x98\x80" /* U+1F600 */
#define UMLAUT  "\xc3\xa4"

static void
widths_are_columns(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("robot"), 5);
	assert_int_equal(text_width(UMLAUT), 1);
	assert_int_equal(text_width(WIDE WIDE), 4);
	assert_int_equal(text_width("e" ACUTE), 1);
	assert_int_equal(text_width(EMOJI), 2);
	assert_int_equal(text_width("\xea\xb0\x80"), 2); /* Hangul */
	assert_int_equal(text_width("\xef\xbd\xb1"), 1); /* half-width kana */
	assert_int_equal(text_width("\xff\xe4\xb8"), 3); /* no UTF-8 */
}

static void
the_locale_does_not_matter(void **state)
{
	static const char *const names[] = { "C", "POSIX", "C.UTF-8" };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_non_null(setlocale(LC_ALL, names[i]));
		assert_int_equal(text_width(WIDE UMLAUT), 3);
	}
	setlocale(LC_ALL, "C");
}

static void
nothing_is_cut_in_two(void **state)
{
	int w;

	(void)state;
	assert_int_equal(text_width_fit(WIDE WIDE, 3, &w), 3);
	assert_int_equal(w, 2);
	assert_int_equal(text_width_fit(WIDE, 1, &w), 0);
	assert_int_equal(w, 0);
	/* A mark stays with its letter, and none begins a cell. */
	assert_int_equal(text_width_fit("e" ACUTE ACUTE "x", 1, &w), 5);
	assert_int_equal(w, 1);
	assert_int_equal(text_width_fit(UMLAUT UMLAUT, 1, &w), 2);
	assert_int_equal(text_width_fit("abc", 0, &w), 0);
	assert_int_equal(text_width_fit("abc", 9, &w), 3);
	assert_int_equal(w, 3);
}

static void
a_short_cell_ends_between_characters(void **state)
{
	char out[9];

	(void)state;
	assert_string_equal(text_cell_cut(WIDE WIDE, out, sizeof(out)),
	    WIDE WIDE);
	assert_string_equal(text_cell_cut(WIDE WIDE WIDE, out, sizeof(out)),
	    WIDE "...");
	assert_string_equal(text_cell_cut("\033[31mred", out, sizeof(out)),
	    "\\x1b[...");
	assert_string_equal(text_cell_cut(NULL, out, sizeof(out)), "-");
}

/* Any bytes: what is cut is valid where the whole is, and fits. */
static void
any_beginning_of_any_text_fits(void **state)
{
	static const char text[] = "a" WIDE "\xe4\xb8" ACUTE EMOJI "\xf0\x9f"
	    UMLAUT "\xff" WIDE;
	const char *s;
	size_t n, len;
	int w, columns;

	(void)state;
	for (s = text; *s != '\0'; s++) {
		for (columns = 0; columns < 16; columns++) {
			len = strlen(s);
			n = text_width_fit(s, columns, &w);
			assert_true(n <= len);
			assert_in_range(w, 0, columns);
			if (n < len && utf8_char(s, len) > 1)
				assert_true(n == 0 || n >= utf8_char(s, len));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_are_columns),
		cmocka_unit_test(the_locale_does_not_matter),
		cmocka_unit_test(nothing_is_cut_in_two),
		cmocka_unit_test(a_short_cell_ends_between_characters),
		cmocka_unit_test(any_beginning_of_any_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
