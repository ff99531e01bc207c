/*
 * colour: the meaning of a piece of text, as a colour of the terminal's theme.
 *
 * Colours add nothing that the words do not say.  Files and pipes get none,
 * nor do terminals where NO_COLOR is set (https://no-color.org).
 */
#ifndef CLIENT_TEXT_COLOUR_H
#define CLIENT_TEXT_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

enum colour {
	COLOUR_NONE,
	COLOUR_GOOD,
	COLOUR_WARNING,
	COLOUR_BAD,
	COLOUR_HEADING,
	COLOUR_DIM,
};

/*
 * Whether text on this stream is to have colours; to be asked once a stream,
 * and given to the functions below as `on`.
 */
bool colour_is_on(FILE *stream);

/* Escape sequences before and behind the text; "" where there are none. */
const char *colour_begin(bool on, enum colour c);
const char *colour_end(bool on, enum colour c);
/* Prints text between the two. */
void colour_put(FILE *out, bool on, enum colour c, const char *text);

/*
 * colour_is_on() with its facts given; term and no_color are variables of the
 * environment, NULL: not set.  Pure.
 */
bool colour_is_on_as(bool is_terminal, const char *term, const char *no_color);

#endif /* CLIENT_TEXT_COLOUR_H */
