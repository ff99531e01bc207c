/*
 * text_print: messages as protobuf text format, for people.
 *
 * What it prints, text_parse reads back as the same message, save for what
 * text cannot say: unknown fields are printed as `number: value`, and enum
 * values without a name as numbers.  Safe on a terminal: what a peer wrote
 * into a string is escaped.
 */
#ifndef PROTOS_TEXT_PRINT_H
#define PROTOS_TEXT_PRINT_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

/*
 * One line per field, each indented by indent levels of two spaces and more
 * inside of messages.  0, or -1 when f has failed.
 */
int text_print(FILE *f, const ProtobufCMessage *m, unsigned indent)
    __attribute__((__warn_unused_result__));

/* text_print() into a string that the caller frees; NULL: out of memory. */
char *text_print_string(const ProtobufCMessage *m)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_PRINT_H */
