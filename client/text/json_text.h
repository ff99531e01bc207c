/* json_text: a string as JSON has it. */
#ifndef CLIENT_TEXT_JSON_TEXT_H
#define CLIENT_TEXT_JSON_TEXT_H

#include <stdio.h>

/* As json_print_string() has it. */
void json_text(FILE *out, const char *text);
/* A member of an object that is not its first: `, "key": "text"`; NULL: none. */
void json_entry(FILE *out, const char *key, const char *text);

#endif /* CLIENT_TEXT_JSON_TEXT_H */
