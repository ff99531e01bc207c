#include "client/text/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
terminal_redraws_as(bool is_terminal, const char *term)
{
	return is_terminal && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0;
}

bool
terminal_redraws(int fd)
{
	return terminal_redraws_as(isatty(fd) != 0, getenv("TERM"));
}

bool
terminal_has_utf8(void)
{
	/* The program itself stays in the C locale, for its parsers. */
	locale_t user = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8;

	if (user == (locale_t)0)
		return false;
	utf8 = strcmp(nl_langinfo_l(CODESET, user), "UTF-8") == 0;
	freelocale(user);
	return utf8;
}
