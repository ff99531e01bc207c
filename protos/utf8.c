#include "protos/utf8.h"

#include <stdint.h>
#include <string.h>

/* Decodes the character at s; its length, or 0. */
static size_t
decode(const char *s, size_t len, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t first;
	uint32_t c;
	size_t n, i;

	if (len == 0)
		return 0;
	first = (uint8_t)s[0];
	if (first < 0x80) {
		*out = first;
		return 1;
	}
	n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (first < 0xc2 || first > 0xf4 || n > len)
		return 0;
	c = first & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((uint8_t)s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*out = c;
	return n;
}

size_t
utf8_char(const char *s, size_t len)
{
	uint32_t c;

	return decode(s, len, &c);
}

size_t
utf8_printable(const char *s, size_t len)
{
	uint32_t c;
	size_t n;

	n = decode(s, len, &c);
	if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0))
		return 0;
	if (c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

void
utf8_sanitize(const char *s, size_t len, char *out, size_t size)
{
	size_t n = 0, fits = 0, c;

	while (len > 0) {
		c = utf8_printable(s, len);
		if (n + (c > 0 ? c : 1) >= size) {
			/* The last place that leaves room for the dots. */
			strcpy(out + fits, "...");
			return;
		}
		if (c > 0) {
			memcpy(out + n, s, c);
		} else {
			out[n] = '?';
			c = 1;
		}
		n += c;
		s += c;
		len -= c;
		if (n + 4 <= size)
			fits = n;
	}
	out[n] = '\0';
}
