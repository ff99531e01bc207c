/*
 * plain_text: sentences for people that quote untrusted text: arguments, names,
 * messages of a collector.
 */
#ifndef PROTOS_PLAIN_TEXT_H
#define PROTOS_PLAIN_TEXT_H

#include <stdio.h>

/*
 * Writes text so that it cannot control a terminal: newlines and tabs stay,
 * other characters that are not printable are written as by utf8_show().
 */
void plain_text_put(FILE *out, const char *text);

/* plain_text_put() with a format; without memory nothing is written. */
void plain_printf(FILE *out, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif /* PROTOS_PLAIN_TEXT_H */
