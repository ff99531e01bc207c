#include "client/json_text.h"

#include <string.h>

#include "protos/utf8.h"

/* Of a character of 1 to 3 bytes. */
static unsigned
code_of(const char *s, size_t n)
{
	const unsigned char *c = (const unsigned char *)s;

	if (n == 1)
		return c[0];
	if (n == 2)
		return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
	return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

void
json_text(FILE *out, const char *text)
{
	size_t left = strlen(text), n;

	putc('"', out);
	for (; left > 0; text += n, left -= n) {
		n = utf8_char(text, left);
		if (n == 0) {
			fputs("\\ufffd", out);
			n = 1;
		} else if (*text == '"' || *text == '\\') {
			fprintf(out, "\\%c", *text);
		} else if (utf8_printable(text, left) == 0) {
			/* People look at it, too: nothing for the terminal. */
			fprintf(out, "\\u%04x", code_of(text, n));
		} else {
			fwrite(text, 1, n, out);
		}
	}
	putc('"', out);
}

void
json_entry(FILE *out, const char *key, const char *text)
{
	if (text == NULL)
		return;
	fprintf(out, ", \"%s\": ", key);
	json_text(out, text);
}
