#include "protos/text_value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protos/nearest.h"
#include "protos/text_float.h"
#include "protos/text_scan.h"
#include "protos/wire_out.h"

/* Values of an enum that an error names all, when none is near. */
#define LIST_MAX 8

/* A number as it was written: its sign, and one token over both. */
struct number {
	struct text_token t; /* type is that of the part after the sign */
	struct text_token digits;
	bool negative;
};

static struct number
take_number(struct text_scan *s)
{
	struct number n = { .t = s->t };

	n.negative = text_scan_accept(s, '-');
	n.digits = s->t;
	if (n.negative && n.digits.type != TEXT_TOKEN_END) {
		n.t.type = n.digits.type;
		n.t.problem = n.digits.problem;
		n.t.len = (size_t)(n.digits.start + n.digits.len - n.t.start);
	}
	text_scan_next(s);
	return n;
}

static bool
read_signed(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    int64_t min, int64_t max, int64_t *out)
{
	struct number n = take_number(s);
	uint64_t v = 0;
	bool fits = n.digits.type == TEXT_TOKEN_INT &&
	    text_lex_int(&n.digits, &v);

	/* -min is one more than max, and may not exist as an int64_t. */
	if (fits && v <= (uint64_t)max) {
		*out = n.negative ? -(int64_t)v : (int64_t)v;
		return true;
	}
	if (fits && n.negative && v == (uint64_t)max + 1) {
		*out = min;
		return true;
	}
	return text_scan_unexpected(s, &n.t,
	    "%s wants a whole number from %" PRId64 " to %" PRId64, f->name,
	    min, max);
}

static bool
read_unsigned(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    uint64_t max, uint64_t *out)
{
	struct number n = take_number(s);

	if (!n.negative && n.digits.type == TEXT_TOKEN_INT &&
	    text_lex_int(&n.digits, out) && *out <= max)
		return true;
	return text_scan_unexpected(s, &n.t,
	    "%s wants a whole number from 0 to %" PRIu64, f->name, max);
}

static bool
word_is(const struct text_token *t, const char *word)
{
	return t->type == TEXT_TOKEN_WORD && t->len == strlen(word) &&
	    strncasecmp(t->start, word, t->len) == 0;
}

/* A decimal integer, a float, inf or nan. */
static bool
float_value(const struct text_token *t, double *out)
{
	if (word_is(t, "inf") || word_is(t, "infinity")) {
		*out = INFINITY;
		return true;
	}
	if (word_is(t, "nan")) {
		*out = NAN;
		return true;
	}
	/* 0x10 and 010 are whole numbers only. */
	if (t->type == TEXT_TOKEN_INT && t->len > 1 && *t->start == '0')
		return false;
	return (t->type == TEXT_TOKEN_INT || t->type == TEXT_TOKEN_FLOAT) &&
	    text_float_parse(t->start, t->len, out);
}

static bool
read_float(struct text_scan *s, const ProtobufCFieldDescriptor *f, double *out)
{
	struct number n = take_number(s);

	if (!float_value(&n.digits, out))
		return text_scan_unexpected(s, &n.t, "%s wants %s", f->name,
		    text_value_wanted(f));
	/* There is one nan in text. */
	if (n.negative && !isnan(*out))
		*out = -*out;
	return true;
}

/* true, false, True, False, t, f, 1 or 0, as protobuf has it. */
static bool
read_bool(struct text_scan *s, const ProtobufCFieldDescriptor *f, bool *out)
{
	static const char *const words[] = { "false", "true", "False", "True",
	    "f", "t" };
	struct text_token t = s->t;
	uint64_t v;
	size_t i;

	text_scan_next(s);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (t.type == TEXT_TOKEN_WORD && t.len == strlen(words[i]) &&
		    memcmp(t.start, words[i], t.len) == 0) {
			*out = i % 2 == 1;
			return true;
		}
	}
	if (t.type == TEXT_TOKEN_INT && text_lex_int(&t, &v) && v <= 1) {
		*out = v == 1;
		return true;
	}
	return text_scan_unexpected(s, &t, "%s wants %s", f->name,
	    text_value_wanted(f));
}

/* "A, B or C" of the names of e, or "" when they are too many. */
static void
list_values(const ProtobufCEnumDescriptor *e, char *out, size_t size)
{
	size_t n = 0;
	unsigned i;

	out[0] = '\0';
	if (e->n_values > LIST_MAX)
		return;
	for (i = 0; i < e->n_values && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i == 0 ? "" :
		    i + 1 < e->n_values ? ", " : " or ", e->values[i].name);
}

static bool
fail_enum_name(struct text_scan *s, const struct text_token *t,
    const ProtobufCFieldDescriptor *f)
{
	const ProtobufCEnumDescriptor *e = f->descriptor;
	const char *type = text_scan_type_name(e->name, e->package_name);
	struct nearest near;
	char list[200];
	unsigned i;

	nearest_init(&near, t->start, t->len);
	for (i = 0; i < e->n_value_names; i++)
		nearest_offer(&near, e->values_by_name[i].name);
	if (nearest_best(&near) != NULL)
		return text_scan_fail(s, t,
		    "'%.*s' is not a value of %s; did you mean '%s'?",
		    (int)(t->len < 64 ? t->len : 64), t->start, type,
		    nearest_best(&near));
	list_values(e, list, sizeof(list));
	return text_scan_fail(s, t, "'%.*s' is not a value of %s%s%s",
	    (int)(t->len < 64 ? t->len : 64), t->start, type,
	    *list == '\0' ? "" : ", which can be ", list);
}

static bool
read_enum_number(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    int64_t *out)
{
	const ProtobufCEnumDescriptor *e = f->descriptor;
	struct number n = take_number(s);
	uint64_t v;

	if (n.digits.type != TEXT_TOKEN_INT || !text_lex_int(&n.digits, &v) ||
	    v > INT32_MAX)
		return text_scan_unexpected(s, &n.t, "%s wants a value of %s",
		    f->name, text_scan_type_name(e->name, e->package_name));
	*out = n.negative ? -(int64_t)v : (int64_t)v;
	if (protobuf_c_enum_descriptor_get_value(e, (int)*out) != NULL)
		return true;
	return text_scan_fail(s, &n.t, "%s has no value %" PRId64,
	    text_scan_type_name(e->name, e->package_name), *out);
}

static bool
read_enum(struct text_scan *s, const ProtobufCFieldDescriptor *f, int64_t *out)
{
	const ProtobufCEnumDescriptor *e = f->descriptor;
	const char *type = text_scan_type_name(e->name, e->package_name);
	struct text_token t = s->t;
	unsigned i;

	if (t.type == TEXT_TOKEN_INT || text_scan_is(s, '-'))
		return read_enum_number(s, f, out);
	text_scan_next(s);
	if (t.type != TEXT_TOKEN_WORD)
		return text_scan_unexpected(s, &t,
		    "%s wants the name of a value of %s, without quotes",
		    f->name, type);
	for (i = 0; i < e->n_value_names; i++) {
		const ProtobufCEnumValueIndex *v = &e->values_by_name[i];

		if (strlen(v->name) == t.len &&
		    memcmp(v->name, t.start, t.len) == 0) {
			*out = e->values[v->index].value;
			return true;
		}
	}
	return fail_enum_name(s, &t, f);
}

/* Appends the current token, a string, to what is written of f. */
static bool
append_string(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    struct wire_out *out)
{
	uint8_t *to;
	size_t n;

	if ((to = wire_out_reserve(out, s->t.len)) == NULL)
		return true; /* the parser looks at out before long */
	n = text_lex_string(&s->t, to);
	/* A NUL would end the string for all that is written in C. */
	if (f->type == PROTOBUF_C_TYPE_STRING && memchr(to, '\0', n) != NULL)
		return text_scan_fail(s, &s->t, "%s cannot hold a NUL byte",
		    f->name);
	wire_out_add(out, n);
	return true;
}

/* One or more strings in a row, which make one. */
static bool
read_string(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    struct wire_out *out)
{
	size_t mark = wire_out_open(out);

	do {
		if (s->t.type != TEXT_TOKEN_STRING)
			return text_scan_unexpected(s, &s->t, "%s wants %s",
			    f->name, text_value_wanted(f));
		if (!append_string(s, f, out))
			return false;
		text_scan_next(s);
	} while (s->t.type == TEXT_TOKEN_STRING);
	wire_out_close(out, mark);
	return true;
}

static uint64_t
zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

/* The fixed-size encoding of a float or double. */
static void
put_float(struct wire_out *out, double v, bool single)
{
	uint64_t bits;
	uint32_t bits32;
	float narrow;

	if (single) {
		narrow = text_float_narrow(v);
		memcpy(&bits32, &narrow, sizeof(bits32));
		wire_out_fixed(out, bits32, sizeof(bits32));
	} else {
		memcpy(&bits, &v, sizeof(bits));
		wire_out_fixed(out, bits, sizeof(bits));
	}
}

bool
text_value_read(struct text_scan *s, const ProtobufCFieldDescriptor *f,
    struct wire_out *out)
{
	int64_t i = 0;
	uint64_t u = 0;
	double d = 0;
	bool b = false, ok = false;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
		if ((ok = read_signed(s, f, INT32_MIN, INT32_MAX, &i)))
			wire_out_varint(out, (uint64_t)i);
		return ok;
	case PROTOBUF_C_TYPE_INT64:
		if ((ok = read_signed(s, f, INT64_MIN, INT64_MAX, &i)))
			wire_out_varint(out, (uint64_t)i);
		return ok;
	case PROTOBUF_C_TYPE_SINT32:
		if ((ok = read_signed(s, f, INT32_MIN, INT32_MAX, &i)))
			wire_out_varint(out, zigzag(i));
		return ok;
	case PROTOBUF_C_TYPE_SINT64:
		if ((ok = read_signed(s, f, INT64_MIN, INT64_MAX, &i)))
			wire_out_varint(out, zigzag(i));
		return ok;
	case PROTOBUF_C_TYPE_SFIXED32:
		if ((ok = read_signed(s, f, INT32_MIN, INT32_MAX, &i)))
			wire_out_fixed(out, (uint64_t)i, 4);
		return ok;
	case PROTOBUF_C_TYPE_SFIXED64:
		if ((ok = read_signed(s, f, INT64_MIN, INT64_MAX, &i)))
			wire_out_fixed(out, (uint64_t)i, 8);
		return ok;
	case PROTOBUF_C_TYPE_UINT32:
		if ((ok = read_unsigned(s, f, UINT32_MAX, &u)))
			wire_out_varint(out, u);
		return ok;
	case PROTOBUF_C_TYPE_UINT64:
		if ((ok = read_unsigned(s, f, UINT64_MAX, &u)))
			wire_out_varint(out, u);
		return ok;
	case PROTOBUF_C_TYPE_FIXED32:
		if ((ok = read_unsigned(s, f, UINT32_MAX, &u)))
			wire_out_fixed(out, u, 4);
		return ok;
	case PROTOBUF_C_TYPE_FIXED64:
		if ((ok = read_unsigned(s, f, UINT64_MAX, &u)))
			wire_out_fixed(out, u, 8);
		return ok;
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		if ((ok = read_float(s, f, &d)))
			put_float(out, d, f->type == PROTOBUF_C_TYPE_FLOAT);
		return ok;
	case PROTOBUF_C_TYPE_BOOL:
		if ((ok = read_bool(s, f, &b)))
			wire_out_varint(out, b);
		return ok;
	case PROTOBUF_C_TYPE_ENUM:
		if ((ok = read_enum(s, f, &i)))
			wire_out_varint(out, (uint64_t)i);
		return ok;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
		return read_string(s, f, out);
	case PROTOBUF_C_TYPE_MESSAGE:
		break; /* the caller's */
	}
	return false;
}

const char *
text_value_wanted(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		return "a number";
	case PROTOBUF_C_TYPE_BOOL:
		return "true or false";
	case PROTOBUF_C_TYPE_ENUM:
		return "the name of a value";
	case PROTOBUF_C_TYPE_STRING:
		return "a string in quotes";
	case PROTOBUF_C_TYPE_BYTES:
		return "bytes, as a string in quotes";
	case PROTOBUF_C_TYPE_MESSAGE:
		return "a message in { }";
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		break;
	}
	return "a whole number";
}
