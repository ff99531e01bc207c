/*
 * text_value: reads one scalar of protobuf text format, of a field's type.
 * A part of the parser: see text_scan.h.
 */
#ifndef PROTOS_TEXT_VALUE_H
#define PROTOS_TEXT_VALUE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct text_scan;
struct wire_out;

/*
 * Reads the value of a field that is not a message and writes it without its
 * tag.  False, with the error filled in, when it does not fit the field.  Lack
 * of memory is no such error: it returns true, and out keeps the failure.
 */
bool text_value_read(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    struct wire_out *out) __attribute__((__warn_unused_result__));

/* "a whole number", "true or false": what the field wants, for a sentence. */
const char *text_value_wanted(const ProtobufCFieldDescriptor *f);

#endif /* PROTOS_TEXT_VALUE_H */
