/*
 * plain_text: sentences for people that quote what others wrote: arguments,
 * names, what a collector says.
 */
#ifndef PROTOS_PLAIN_TEXT_H
#define PROTOS_PLAIN_TEXT_H

#include <stdio.h>

/*
 * Writes text so that it cannot steer a terminal: newlines and tabs stay, what
 * else is not printable is shown as utf8_show() has it.
 */
void plain_text_put(FILE *out, const char *text);

/* plain_text() with a format; without memory nothing is written. */
void plain_printf(FILE *out, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif /* PROTOS_PLAIN_TEXT_H */
