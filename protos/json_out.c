#include "protos/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "protos/field_values.h"
#include "protos/utf8.h"

/* The number of a character of 1 to 3 bytes. */
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

static void
print_string(FILE *out, const char *text)
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
			/* Also read on terminals: no control characters. */
			fprintf(out, "\\u%04x", code_of(text, n));
		} else {
			fwrite(text, 1, n, out);
		}
	}
	putc('"', out);
}

/* Everything before a value: comma, place and key. */
static void
lead(struct json_out *j, const char *key)
{
	if (j->behind)
		putc(',', j->out);
	if (j->row != NULL && j->depth == 1 && key == NULL)
		fputs(j->row, j->out);
	else if (j->row != NULL && j->behind)
		putc(' ', j->out);
	j->behind = true;
	if (key == NULL)
		return;
	print_string(j->out, key);
	fputs(j->row != NULL ? ": " : ":", j->out);
}

static void
begin(struct json_out *j, const char *key, char c)
{
	lead(j, key);
	putc(c, j->out);
	j->depth++;
	j->behind = false;
}

static void
end(struct json_out *j, char c)
{
	j->depth--;
	putc(c, j->out);
	j->behind = true;
}

void
json_object(struct json_out *j, const char *key)
{
	begin(j, key, '{');
}

void
json_object_end(struct json_out *j)
{
	end(j, '}');
}

void
json_array(struct json_out *j, const char *key)
{
	begin(j, key, '[');
}

void
json_array_end(struct json_out *j)
{
	if (j->row != NULL && j->depth == 1 && j->behind)
		putc('\n', j->out);
	end(j, ']');
}

void
json_uint(struct json_out *j, const char *key, uint64_t v)
{
	lead(j, key);
	fprintf(j->out, "%" PRIu64, v);
}

void
json_int(struct json_out *j, const char *key, int64_t v)
{
	lead(j, key);
	fprintf(j->out, "%" PRId64, v);
}

void
json_bool(struct json_out *j, const char *key, bool v)
{
	lead(j, key);
	fputs(v ? "true" : "false", j->out);
}

void
json_null(struct json_out *j, const char *key)
{
	lead(j, key);
	fputs("null", j->out);
}

void
json_number(struct json_out *j, const char *key, double v)
{
	lead(j, key);
	fprintf(j->out, "%.3f", v);
}

void
json_string(struct json_out *j, const char *key, const char *v)
{
	if (v == NULL)
		return;
	lead(j, key);
	print_string(j->out, v);
}

void
json_strings(struct json_out *j, const char *key, char *const *v, size_t n)
{
	size_t i;

	json_array(j, key);
	for (i = 0; i < n; i++)
		json_string(j, NULL, v[i]);
	json_array_end(j);
}

/* ---- messages ---- */

static void
put_bytes(struct json_out *j, const char *key, const ProtobufCBinaryData *b)
{
	size_t i;

	lead(j, key);
	putc('"', j->out);
	for (i = 0; i < b->len; i++)
		fprintf(j->out, "%02x", b->data[i]);
	putc('"', j->out);
}

/* JSON has neither infinity nor NaN. */
static void
put_double(struct json_out *j, const char *key, double v)
{
	if (!isfinite(v)) {
		json_null(j, key);
		return;
	}
	lead(j, key);
	fprintf(j->out, "%.17g", v);
}

static void
put_enum(struct json_out *j, const char *key, const ProtobufCFieldDescriptor *f,
    int v)
{
	const ProtobufCEnumValue *named;

	named = protobuf_c_enum_descriptor_get_value(f->descriptor, v);
	if (named != NULL)
		json_string(j, key, named->name);
	else
		json_int(j, key, v);
}

static void
put_value(struct json_out *j, const char *key,
    const ProtobufCFieldDescriptor *f, const void *at)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		json_int(j, key, *(const int32_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		json_uint(j, key, *(const uint32_t *)at);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		json_int(j, key, *(const int64_t *)at);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		json_uint(j, key, *(const uint64_t *)at);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		put_double(j, key, (double)*(const float *)at);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		put_double(j, key, *(const double *)at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		json_bool(j, key, *(const protobuf_c_boolean *)at);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		put_enum(j, key, f, *(const int *)at);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_string(j, key, *(const char *const *)at);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		put_bytes(j, key, at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		json_message(j, key, *(const ProtobufCMessage *const *)at);
		break;
	}
}

static void
put_list(struct json_out *j, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
	size_t i, n = field_values_count(m, f);

	json_array(j, f->name);
	for (i = 0; i < n; i++)
		put_value(j, NULL, f, field_values_at(m, f, i));
	json_array_end(j);
}

void
json_message(struct json_out *j, const char *key, const ProtobufCMessage *m)
{
	const ProtobufCFieldDescriptor *f;
	unsigned i;

	json_object(j, key);
	for (i = 0; i < m->descriptor->n_fields; i++) {
		f = &m->descriptor->fields[i];
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			put_list(j, m, f);
		else if (field_values_count(m, f) == 1)
			put_value(j, f->name, f, field_values_at(m, f, 0));
	}
	json_object_end(j);
}
