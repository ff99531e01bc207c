#include "transport/base/glob.h"

#include <string.h>

bool
glob_match(const char *pattern, const char *name)
{
	const char *star = NULL, *retry = NULL;

	while (*name != '\0') {
		if (*pattern == '*') {
			star = ++pattern;
			retry = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star != NULL) {
			/* The last star takes one more. */
			pattern = star;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool
glob_is_pattern(const char *text)
{
	return strpbrk(text, "*?") != NULL;
}
