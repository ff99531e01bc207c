/*
 * Characters in bytes that may or may not be UTF-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "protos/utf8.h"

static void
characters_have_their_length_and_other_bytes_none(void **state)
{
	static const struct {
		const char *s;
		size_t len, n;
	} c[] = {
		{ "", 0, 0 },
		{ "a", 1, 1 },
		{ "\0", 1, 1 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 }, /* U+10FFFF */
		{ "\xc3", 1, 0 },             /* cut */
		{ "\xe2\x82", 2, 0 },
		{ "\xf0\x9f\x98", 3, 0 },
		{ "\xc3" "a", 2, 0 },
		{ "\x80", 1, 0 },             /* continuation */
		{ "\xc0\x80", 2, 0 },         /* overlong */
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xed\xa0\x80", 3, 0 },     /* surrogate */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond U+10FFFF */
		{ "\xff", 1, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(utf8_char(c[i].s, c[i].len), c[i].n);
}

static void
control_characters_are_not_printable(void **state)
{
	assert_int_equal(utf8_printable(" ", 1), 1);
	assert_int_equal(utf8_printable("\xc2\xa0", 2), 2);
	assert_int_equal(utf8_printable("\x1b", 1), 0);
	assert_int_equal(utf8_printable("\n", 1), 0);
	assert_int_equal(utf8_printable("\x7f", 1), 0);
	assert_int_equal(utf8_printable("\xc2\x9b", 2), 0); /* CSI */
	assert_int_equal(utf8_printable("\xe2\x80\xae", 3), 0);
	assert_int_equal(utf8_printable("\xe2\x81\xa6", 3), 0);
	assert_int_equal(utf8_printable("\xd8\x9c", 2), 0); /* U+061C */
	assert_int_equal(utf8_printable("\xe2\x80\x8b", 3), 0); /* U+200B */
	assert_int_equal(utf8_printable("\xef\xbb\xbf", 3), 0); /* U+FEFF */
}

static void
expect_escaped(const char *s, size_t size, const char *expected)
{
	char out[64];

	memset(out, 'x', sizeof(out));
	assert_ptr_equal(utf8_escape(out, size, s, strlen(s), ""), out);
	if (size > 0)
		assert_string_equal(out, expected);
	assert_int_equal(out[size], 'x');
}

static void
escaped_text_fits_and_ends_at_a_character(void **state)
{
	expect_escaped("abc", 4, "abc");
	expect_escaped("abcd", 4, "...");
	expect_escaped("abcdefgh", 8, "abcd...");
	expect_escaped("abcdefg", 8, "abcdefg");
	/* No room for the second letter and the dots. */
	expect_escaped("abc\xc3\xa9\xc3\xa9\xc3\xa9", 8, "abc...");
	expect_escaped("ab\xc3\xa9\xc3\xa9\xc3\xa9", 8, "ab\xc3\xa9...");
	expect_escaped("12\n45678", 8, "12...");
	expect_escaped("", 4, "");
	expect_escaped("abcd", 3, "..");
	expect_escaped("abcd", 1, "");
	expect_escaped("abcd", 0, "");
}

static void
each_byte_of_what_is_not_printable_is_a_number(void **state)
{
	char out[64];

	expect_escaped("a\x1b[1m\xff" "b\n", 32, "a\\x1b[1m\\xffb\\x0a");
	expect_escaped("\xe2\x80\xae" "gpj \xc2\x9b", 32,
	    "\\xe2\\x80\\xaegpj \\xc2\\x9b");
	expect_escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 32,
	    "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	/* Escaped twice is escaped once. */
	expect_escaped("the \"x\" of 'y'\\x0a", 32, "the \"x\" of 'y'\\x0a");
	assert_string_equal(utf8_escape(out, sizeof(out), "a\0\"b\\", 5, "\"\\"),
	    "a\\x00\\x22b\\x5c");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    characters_have_their_length_and_other_bytes_none),
		cmocka_unit_test(control_characters_are_not_printable),
		cmocka_unit_test(escaped_text_fits_and_ends_at_a_character),
		cmocka_unit_test(
		    each_byte_of_what_is_not_printable_is_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
