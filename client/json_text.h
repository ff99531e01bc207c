/* json_text: a string as JSON has it. */
#ifndef CLIENT_JSON_TEXT_H
#define CLIENT_JSON_TEXT_H

#include <stdio.h>

/*
 * With its quotes.  What is not UTF-8 in it, byte by byte, becomes U+FFFD, and
 * what is not safe to show on a terminal its number: names come from peers.
 */
void json_text(FILE *out, const char *text);
/* A member of an object that is not its first: `, "key": "text"`; NULL: none. */
void json_entry(FILE *out, const char *key, const char *text);

#endif /* CLIENT_JSON_TEXT_H */
