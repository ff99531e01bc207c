/*
 * plain_text: sentences for people that quote what others wrote: arguments,
 * names, what a collector says.
 */
#ifndef CLIENT_PLAIN_TEXT_H
#define CLIENT_PLAIN_TEXT_H

#include <stdio.h>

/*
 * Writes text so that it cannot steer a terminal: newlines and tabs stay, each
 * byte of any other control character, of one that turns the direction of
 * writing, or of what is not UTF-8, becomes '?'.
 */
void plain_text_put(FILE *out, const char *text);

#endif /* CLIENT_PLAIN_TEXT_H */
