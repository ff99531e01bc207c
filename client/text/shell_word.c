#include "client/text/shell_word.h"

#include <stdio.h>
#include <string.h>

const char *
shell_word(const char *text, char *out, size_t out_size)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
	size_t at = 0;

	if (*text != '\0' && strspn(text, safe) == strlen(text)) {
		snprintf(out, out_size, "%s", text);
		return out;
	}
	at += (size_t)snprintf(out, out_size, "'");
	for (; *text != '\0' && at + 6 < out_size; text++)
		at += (size_t)snprintf(out + at, out_size - at,
		    *text == '\'' ? "'\\''" : "%c", *text);
	snprintf(out + at, out_size - at, "'");
	return out;
}
