/*
 * shown: whether a text is in the form in which what others wrote is shown.
 */
#ifndef TESTS_FUZZ_SHOWN_H
#define TESTS_FUZZ_SHOWN_H

#include <stdbool.h>
#include <string.h>

#include "protos/utf8.h"

/* Printable to its end; a character that is cut off there is not. */
static inline bool
is_shown(const char *text)
{
	size_t len = strlen(text), at = 0, n;

	while ((n = utf8_printable(text + at, len - at)) > 0)
		at += n;
	return at == len;
}

#endif /* TESTS_FUZZ_SHOWN_H */
