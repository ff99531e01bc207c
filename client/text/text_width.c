#include "client/text/text_width.h"

#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "protos/utf8.h"

/*
 * The locale with the C library's table of widths: not the user's, in which
 * wcwidth() may know nothing but ASCII.  0: there is none, and each character
 * counts as one column.
 */
static locale_t
utf8_locale(void)
{
	static locale_t known;

	if (known == (locale_t)0)
		known = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return known;
}

/* The character of the n bytes at s, which utf8_char() took for one. */
static wchar_t
decode(const char *s, size_t n)
{
	uint32_t c = (uint8_t)s[0];
	size_t i;

	if (n > 1)
		c &= 0x7fu >> n;
	for (i = 1; i < n; i++)
		c = c << 6 | ((uint8_t)s[i] & 0x3f);
	return (wchar_t)c;
}

size_t
text_width_fit(const char *text, int columns, int *width)
{
	locale_t table = utf8_locale(), before = (locale_t)0;
	size_t len = strlen(text), at = 0, n;
	int w;

	if (table != (locale_t)0)
		before = uselocale(table);
	for (*width = 0; at < len; at += n) {
		n = utf8_char(text + at, len - at);
		w = n == 0 ? 1 : wcwidth(decode(text + at, n));
		if (n == 0)
			n = 1;
		/* A character that the table lacks is shown all the same. */
		if (w < 0)
			w = 1;
		if (w > columns - *width)
			break;
		*width += w;
	}
	if (table != (locale_t)0)
		uselocale(before);
	return at;
}

int
text_width(const char *text)
{
	int width;

	(void)text_width_fit(text, INT_MAX, &width);
	return width;
}
