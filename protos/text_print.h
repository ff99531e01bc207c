/*
 * text_print: messages as protobuf text format, for people.
 *
 * text_parse() reads the output back as the same message, except for unknown
 * fields, which are printed as `number: value`, and enum values without a name,
 * which are printed as numbers.  Safe on a terminal: strings are escaped.
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

#endif /* PROTOS_TEXT_PRINT_H */
