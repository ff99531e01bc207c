#include "client/json_text.h"

#include <string.h>

#include "protos/utf8.h"

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
		} else if ((unsigned char)*text < 0x20) {
			fprintf(out, "\\u%04x", (unsigned)*text);
		} else {
			fwrite(text, 1, n, out);
		}
	}
	putc('"', out);
}
