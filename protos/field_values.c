#include "protos/field_values.h"

#include <stdbool.h>

/* Bytes from one element of a repeated field to the next. */
static size_t
element_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return 4;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		break;
	}
	return sizeof(void *);
}

static bool
is_pointer(const ProtobufCFieldDescriptor *d)
{
	return d->type == PROTOBUF_C_TYPE_STRING ||
	    d->type == PROTOBUF_C_TYPE_MESSAGE;
}

/* Whether the singular field d of m is given. */
static bool
is_given(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *d)
{
	const char *base = (const char *)m;
	const void *quantifier = base + d->quantifier_offset;

	if ((d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
	    *(const uint32_t *)quantifier != d->id)
		return false;
	if (is_pointer(d))
		return *(void *const *)(base + d->offset) != NULL;
	return (d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 ||
	    d->label != PROTOBUF_C_LABEL_OPTIONAL ||
	    *(const protobuf_c_boolean *)quantifier;
}

size_t
field_values_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *d)
{
	if (d->label != PROTOBUF_C_LABEL_REPEATED)
		return is_given(m, d);
	return *(const size_t *)((const char *)m + d->quantifier_offset);
}

const void *
field_values_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *d,
    size_t i)
{
	const char *at = (const char *)m + d->offset;

	if (d->label != PROTOBUF_C_LABEL_REPEATED)
		return at;
	return *(const char *const *)at + i * element_size(d->type);
}
