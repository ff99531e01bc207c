#include "client/plain_text.h"

#include <string.h>

#include "protos/utf8.h"

void
plain_text_put(FILE *out, const char *text)
{
	size_t left = strlen(text), n;

	while (left > 0) {
		if (*text == '\n' || *text == '\t') {
			fputc(*text, out);
			n = 1;
		} else if ((n = utf8_printable(text, left)) > 0) {
			fwrite(text, 1, n, out);
		} else {
			fputc('?', out);
			n = 1;
		}
		text += n;
		left -= n;
	}
}
