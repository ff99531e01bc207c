#include "protos/utf8.h"

#include <stdint.h>
#include <stdio.h>
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

/* True: steers a terminal, turns the direction of a line, or is not seen. */
static bool
is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad },
		{ 0x61c, 0x61c }, { 0x180e, 0x180e }, { 0x200b, 0x200f },
		{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
		{ 0xfff9, 0xfffb },
	};
	size_t i;

	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}

size_t
utf8_printable(const char *s, size_t len)
{
	uint32_t c;
	size_t n;

	n = decode(s, len, &c);
	return n == 0 || is_hidden(c) ? 0 : n;
}

size_t
utf8_show(const char *s, size_t len, const char *also, char out[UTF8_SHOWN])
{
	static const char hex[] = "0123456789abcdef";
	size_t n = utf8_printable(s, len);

	if (n > 0 && strchr(also, *s) == NULL) {
		memcpy(out, s, n);
		out[n] = '\0';
		return n;
	}
	out[0] = '\\';
	out[1] = 'x';
	out[2] = hex[(uint8_t)*s >> 4];
	out[3] = hex[*s & 15];
	out[4] = '\0';
	return 1;
}

char *
utf8_escape(char *out, size_t size, const char *s, size_t len,
    const char *also)
{
	char one[UTF8_SHOWN];
	size_t n = 0, cut = 0, took, need;

	if (size == 0)
		return out;
	for (; len > 0; s += took, len -= took) {
		took = utf8_show(s, len, also, one);
		need = strlen(one);
		if (n + need >= size) {
			snprintf(out + cut, size - cut, "...");
			return out;
		}
		memcpy(out + n, one, need);
		n += need;
		if (n + 3 < size)
			cut = n; /* the dots fit behind this */
	}
	out[n] = '\0';
	return out;
}
