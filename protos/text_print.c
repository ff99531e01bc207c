#include "protos/text_print.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/field_values.h"
#include "protos/text_float.h"
#include "protos/utf8.h"
#include "protos/varint.h"

#define INDENT "  "

static void print_message(FILE *f, const ProtobufCMessage *m, unsigned indent);

static void
print_indent(FILE *f, unsigned indent)
{
	while (indent-- > 0)
		fputs(INDENT, f);
}

/* The byte as an escape, if it needs one or if whole characters are asked. */
static void
print_byte(FILE *f, char c)
{
	static const char letters[] = "nrt\"'\\";
	static const char meant[] = "\n\r\t\"'\\";
	const char *at = c == '\0' ? NULL : strchr(meant, c);

	if (at != NULL)
		fprintf(f, "\\%c", letters[at - meant]);
	else if (c >= ' ' && c < 0x7f)
		putc(c, f);
	else
		/* All three digits: what follows may be a digit. */
		fprintf(f, "\\%03o", (unsigned)(unsigned char)c);
}

/* In quotes; utf8 keeps whole printable characters beyond ASCII. */
static void
print_quoted(FILE *f, const char *s, size_t len, bool utf8)
{
	size_t n;

	putc('"', f);
	while (len > 0) {
		n = utf8 ? utf8_printable(s, len) : 1;
		if (n > 1) {
			fwrite(s, 1, n, f);
		} else {
			n = 1;
			print_byte(f, *s);
		}
		s += n;
		len -= n;
	}
	putc('"', f);
}

static void
print_enum(FILE *f, const ProtobufCEnumDescriptor *e, int value)
{
	const ProtobufCEnumValue *v;

	v = protobuf_c_enum_descriptor_get_value(e, value);
	if (v != NULL)
		fputs(v->name, f);
	else
		fprintf(f, "%d", value);
}

static void
print_float(FILE *f, double v, bool single)
{
	char buf[TEXT_FLOAT_MAX];

	text_float_print(v, single, buf);
	fputs(buf, f);
}

/* A value that is no message, at p. */
static void
print_scalar(FILE *f, const ProtobufCFieldDescriptor *d, const void *p)
{
	const ProtobufCBinaryData *bytes;

	switch (d->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		fprintf(f, "%" PRId32, *(const int32_t *)p);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		fprintf(f, "%" PRId64, *(const int64_t *)p);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		fprintf(f, "%" PRIu32, *(const uint32_t *)p);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		fprintf(f, "%" PRIu64, *(const uint64_t *)p);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		print_float(f, *(const float *)p, true);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		print_float(f, *(const double *)p, false);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		fputs(*(const protobuf_c_boolean *)p ? "true" : "false", f);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		print_enum(f, d->descriptor, *(const int *)p);
		break;
	case PROTOBUF_C_TYPE_STRING:
		print_quoted(f, *(char *const *)p, strlen(*(char *const *)p),
		    true);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		bytes = p;
		print_quoted(f, (const char *)bytes->data, bytes->len, false);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		break; /* not a scalar: print_value() */
	}
}

static void
print_value(FILE *f, const ProtobufCFieldDescriptor *d, const void *p,
    unsigned indent)
{
	print_indent(f, indent);
	fputs(d->name, f);
	if (d->type == PROTOBUF_C_TYPE_MESSAGE) {
		fputs(" {\n", f);
		print_message(f, *(ProtobufCMessage *const *)p, indent + 1);
		print_indent(f, indent);
		fputs("}\n", f);
	} else {
		fputs(": ", f);
		print_scalar(f, d, p);
		putc('\n', f);
	}
}

static void
print_field(FILE *f, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *d, unsigned indent)
{
	size_t i, n = field_values_count(m, d);

	for (i = 0; i < n; i++)
		print_value(f, d, field_values_at(m, d, i), indent);
}

static uint64_t
read_fixed(const uint8_t *p, size_t len)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < len && i < 8; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static void
print_unknown(FILE *f, const ProtobufCMessageUnknownField *u, unsigned indent)
{
	const uint8_t *end = u->data + u->len, *p;
	uint64_t v = 0;

	print_indent(f, indent);
	fprintf(f, "%" PRIu32 ": ", u->tag);
	switch (u->wire_type) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		(void)pb_varint(u->data, end, &v);
		fprintf(f, "%" PRIu64, v);
		break;
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		v = read_fixed(u->data, u->len);
		fprintf(f, "0x%016" PRIx64, v);
		break;
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		v = read_fixed(u->data, u->len);
		fprintf(f, "0x%08" PRIx64, v);
		break;
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		/* protobuf-c keeps the length in front of the bytes. */
		if ((p = pb_varint(u->data, end, &v)) == NULL)
			p = end;
		print_quoted(f, (const char *)p, (size_t)(end - p), false);
		break;
	}
	putc('\n', f);
}

static void
print_message(FILE *f, const ProtobufCMessage *m, unsigned indent)
{
	unsigned i;

	for (i = 0; i < m->descriptor->n_fields; i++)
		print_field(f, m, &m->descriptor->fields[i], indent);
	for (i = 0; i < m->n_unknown_fields; i++)
		print_unknown(f, &m->unknown_fields[i], indent);
}

int
text_print(FILE *f, const ProtobufCMessage *m, unsigned indent)
{
	print_message(f, m, indent);
	return ferror(f) ? -1 : 0;
}
