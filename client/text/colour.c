#include "client/text/colour.h"

#include <stdlib.h>
#include <unistd.h>

#include "client/text/terminal.h"

bool
colour_is_on_as(bool is_terminal, const char *term, const char *no_color)
{
	return terminal_redraws_as(is_terminal, term) &&
	    (no_color == NULL || no_color[0] == '\0');
}

bool
colour_is_on(FILE *stream)
{
	/* A stream in memory has no descriptor: -1 is no terminal. */
	return colour_is_on_as(isatty(fileno(stream)) != 0, getenv("TERM"),
	    getenv("NO_COLOR"));
}

const char *
colour_begin(bool on, enum colour c)
{
	/* Colours out of the 16 that are the terminal theme's. */
	static const char *const sequences[] = {
		[COLOUR_NONE] = "",
		[COLOUR_GOOD] = "\033[32m",
		[COLOUR_WARNING] = "\033[33m",
		[COLOUR_BAD] = "\033[31m",
		[COLOUR_HEADING] = "\033[1m",
		[COLOUR_DIM] = "\033[2m",
	};

	return on ? sequences[c] : "";
}

const char *
colour_end(bool on, enum colour c)
{
	return on && c != COLOUR_NONE ? "\033[0m" : "";
}

void
colour_put(FILE *out, bool on, enum colour c, const char *text)
{
	fprintf(out, "%s%s%s", colour_begin(on, c), text, colour_end(on, c));
}
