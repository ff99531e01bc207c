#include "protos/json_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "protos/utf8.h"

/* Of a character of 1 to 3 bytes. */
static unsigned
code_of(const char *s, size_t n)
{
	const unsigned char *c = (const unsigned char *)s;

	if (n == 1)
		return c[0];
	if (n == 2)
		return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
	return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

void
json_print_string(FILE *out, const char *text)
{
	size_t left = strlen(text), n;

	putc('"', out);
	for (; left > 0; text += n, left -= n) {
		n = utf8_char(text, left);
		if (n == 0) {
			fputs("\\ufffd", out);
			n = 1;
		} else if (*text == '"' || *text == '\\') {
			fprintf(out, "\\%c", *text);
		} else if (utf8_printable(text, left) == 0) {
			/* People look at it, too: nothing for the terminal. */
			fprintf(out, "\\u%04x", code_of(text, n));
		} else {
			fwrite(text, 1, n, out);
		}
	}
	putc('"', out);
}

static void
print_bytes(FILE *out, const ProtobufCBinaryData *b)
{
	size_t i;

	putc('"', out);
	for (i = 0; i < b->len; i++)
		fprintf(out, "%02x", b->data[i]);
	putc('"', out);
}

/* What is no number in JSON is null. */
static void
print_double(FILE *out, double v)
{
	if (isfinite(v))
		fprintf(out, "%.17g", v);
	else
		fputs("null", out);
}

static void
print_enum(FILE *out, const ProtobufCFieldDescriptor *f, int v)
{
	const ProtobufCEnumValue *named;

	named = protobuf_c_enum_descriptor_get_value(f->descriptor, v);
	if (named != NULL)
		fprintf(out, "\"%s\"", named->name);
	else
		fprintf(out, "%d", v);
}

static void
print_value(FILE *out, const ProtobufCFieldDescriptor *f, const void *at)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		fprintf(out, "%" PRId32, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		fprintf(out, "%" PRIu32, *(const uint32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		fprintf(out, "%" PRId64, *(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		fprintf(out, "%" PRIu64, *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		print_double(out, (double)*(const float *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		print_double(out, *(const double *)at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		fputs(*(const protobuf_c_boolean *)at ? "true" : "false", out);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		print_enum(out, f, *(const int *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_print_string(out, *(const char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		print_bytes(out, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		json_print(out, *(const ProtobufCMessage *const *)at);
		break;
	}
}

static size_t
size_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_ENUM:
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
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	}
	return 0;
}

/* Whether a field that is not repeated is there. */
static bool
is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	const char *base = (const char *)m;

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(base + f->quantifier_offset) ==
		    f->id;
	if (f->type == PROTOBUF_C_TYPE_STRING ||
	    f->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(const void *const *)(base + f->offset) != NULL;
	if (f->label == PROTOBUF_C_LABEL_OPTIONAL)
		return *(const protobuf_c_boolean *)
		    (base + f->quantifier_offset);
	return true;
}

static void
print_list(FILE *out, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
	const char *base = (const char *)m;
	size_t i, n = *(const size_t *)(base + f->quantifier_offset);
	const char *items = *(const char *const *)(base + f->offset);

	putc('[', out);
	for (i = 0; i < n; i++) {
		if (i > 0)
			putc(',', out);
		print_value(out, f, items + i * size_of(f->type));
	}
	putc(']', out);
}

void
json_print(FILE *out, const ProtobufCMessage *m)
{
	const ProtobufCFieldDescriptor *f;
	bool first = true;
	unsigned i;

	putc('{', out);
	for (i = 0; i < m->descriptor->n_fields; i++) {
		f = &m->descriptor->fields[i];
		if (f->label != PROTOBUF_C_LABEL_REPEATED && !is_set(m, f))
			continue;
		fprintf(out, "%s\"%s\":", first ? "" : ",", f->name);
		first = false;
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			print_list(out, m, f);
		else
			print_value(out, f, (const char *)m + f->offset);
	}
	putc('}', out);
}
