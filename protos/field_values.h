/*
 * field_values: the values of a field in an unpacked message of any type, found
 * by its descriptor.  Knows no text form.
 */
#ifndef PROTOS_FIELD_VALUES_H
#define PROTOS_FIELD_VALUES_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* How many values m has of field d: 0 or 1, unless d is repeated. */
size_t field_values_count(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *d);
/*
 * Points at value i (below the count), in m's own memory: a number, an enum's
 * int, a char *, a ProtobufCMessage *, or a ProtobufCBinaryData, as d->type
 * says.
 */
const void *field_values_at(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *d, size_t i);

#endif /* PROTOS_FIELD_VALUES_H */
