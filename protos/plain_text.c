#include "protos/plain_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"

void
plain_text_put(FILE *out, const char *text)
{
	char one[UTF8_SHOWN];
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		if (*text == '\n' || *text == '\t') {
			fputc(*text, out);
			n = 1;
			continue;
		}
		n = utf8_show(text, left, "", one);
		fputs(one, out);
	}
}

void
plain_printf(FILE *out, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) >= 0)
		plain_text_put(out, text);
	va_end(ap);
	free(text);
}
