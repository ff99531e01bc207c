/*
 * json_print: a message as one line of JSON, for programs.
 *
 * Field names as in the schema; 64-bit numbers as numbers; bytes in hex; enums
 * by name.  What is left out of a message is left out; repeated fields are
 * always there.
 */
#ifndef PROTOS_JSON_PRINT_H
#define PROTOS_JSON_PRINT_H

#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

/*
 * A string with its quotes.  What is not UTF-8 in it, byte by byte, becomes
 * U+FFFD, and what is not safe to show on a terminal its number: names come
 * from peers.
 */
void json_print_string(FILE *out, const char *text);

/* Without a newline at its end. */
void json_print(FILE *out, const ProtobufCMessage *m);

#endif /* PROTOS_JSON_PRINT_H */
