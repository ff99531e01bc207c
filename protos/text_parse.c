#include "protos/text_parse.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/nearest.h"
#include "protos/text_error.h"
#include "protos/text_scan.h"
#include "protos/text_value.h"
#include "protos/unpack.h"
#include "protos/wire_out.h"

/* Fields of one message whose second value is noticed; ours have fewer. */
#define SEEN_FIELDS 512
#define WORD_BITS   64

/* Longest field name that is looked up, with its NUL. */
#define NAME_SIZE 128

struct parse {
	struct text_scan scan;
	struct wire_out out;
	unsigned depth;
};

/* A message being filled. */
struct body {
	const ProtobufCMessageDescriptor *d;
	struct text_token open; /* opening bracket; length 0 at the top */
	char close;             /* closing bracket; 0 at the top */
	uint64_t seen[SEEN_FIELDS / WORD_BITS];
};

static bool parse_body(struct parse *p, struct body *b);

static const char *
type_name(const ProtobufCMessageDescriptor *d)
{
	return text_scan_type_name(d->name, d->package_name);
}

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *d, const struct text_token *t)
{
	char name[NAME_SIZE];

	if (t->len >= sizeof(name))
		return NULL;
	memcpy(name, t->start, t->len);
	name[t->len] = '\0';
	return protobuf_c_message_descriptor_get_field_by_name(d, name);
}

/* A message field of d whose type has the field that t names, or NULL. */
static const ProtobufCFieldDescriptor *
find_home(const ProtobufCMessageDescriptor *d, const struct text_token *t)
{
	unsigned i;

	for (i = 0; i < d->n_fields; i++) {
		if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE &&
		    find_field(d->fields[i].descriptor, t) != NULL)
			return &d->fields[i];
	}
	return NULL;
}

static bool
fail_unknown_field(struct parse *p, const ProtobufCMessageDescriptor *d,
    const struct text_token *t)
{
	int len = (int)(t->len < NAME_SIZE ? t->len : NAME_SIZE);
	const ProtobufCFieldDescriptor *home;
	struct nearest near;
	unsigned i;

	if ((home = find_home(d, t)) != NULL)
		return text_scan_fail(&p->scan, t,
		    "%s has no field '%.*s'; it belongs inside '%s { }'",
		    type_name(d), len, t->start, home->name);
	nearest_init(&near, t->start, t->len);
	for (i = 0; i < d->n_fields; i++)
		nearest_offer(&near, d->fields[i].name);
	if (nearest_best(&near) != NULL)
		return text_scan_fail(&p->scan, t,
		    "%s has no field '%.*s'; did you mean '%s'?", type_name(d),
		    len, t->start, nearest_best(&near));
	return text_scan_fail(&p->scan, t, "%s has no field '%.*s'",
	    type_name(d), len, t->start);
}

static bool
is_seen(const struct body *b, size_t i)
{
	return i < SEEN_FIELDS && (b->seen[i / WORD_BITS] &
	    UINT64_C(1) << (i % WORD_BITS)) != 0;
}

/* The member of f's oneof that was given before f, or NULL. */
static const ProtobufCFieldDescriptor *
find_rival(const struct body *b, const ProtobufCFieldDescriptor *f)
{
	unsigned i;

	if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
		return NULL;
	for (i = 0; i < b->d->n_fields; i++) {
		const ProtobufCFieldDescriptor *g = &b->d->fields[i];

		/* Members of a oneof share the member that says which it is. */
		if ((g->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
		    g->quantifier_offset == f->quantifier_offset &&
		    is_seen(b, i))
			return g;
	}
	return NULL;
}

/* Notes that f is given, or fails if it may not be given again. */
static bool
note_field(struct parse *p, struct body *b, const ProtobufCFieldDescriptor *f,
    const struct text_token *t)
{
	size_t i = (size_t)(f - b->d->fields);
	const ProtobufCFieldDescriptor *rival;

	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return true;
	if (is_seen(b, i))
		return text_scan_fail(&p->scan, t,
		    "'%s' is given twice, and %s has only one", f->name,
		    type_name(b->d));
	if ((rival = find_rival(b, f)) != NULL)
		return text_scan_fail(&p->scan, t,
		    "%s has either '%s' or '%s', and '%s' is given already",
		    type_name(b->d), rival->name, f->name, rival->name);
	if (i < SEEN_FIELDS)
		b->seen[i / WORD_BITS] |= UINT64_C(1) << (i % WORD_BITS);
	return true;
}

static unsigned
wire_type(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return PROTOBUF_C_WIRE_TYPE_32BIT;
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return PROTOBUF_C_WIRE_TYPE_64BIT;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
		break;
	}
	return PROTOBUF_C_WIRE_TYPE_VARINT;
}

static void
put_tag(struct parse *p, const ProtobufCFieldDescriptor *f, unsigned wire)
{
	wire_out_varint(&p->out, (uint64_t)f->id << 3 | wire);
}

/* { ... } or < ... >, as one value of f. */
static bool
parse_message(struct parse *p, const ProtobufCFieldDescriptor *f)
{
	struct body b = { .d = f->descriptor, .open = p->scan.t };
	size_t mark;

	if (!text_scan_is(&p->scan, '{') && !text_scan_is(&p->scan, '<'))
		return text_scan_unexpected(&p->scan, &p->scan.t,
		    "%s is a message: '{' is wanted", f->name);
	if (p->depth == TEXT_PARSE_MAX_DEPTH)
		return text_scan_fail(&p->scan, &p->scan.t,
		    "messages are nested more than %u deep",
		    TEXT_PARSE_MAX_DEPTH);
	b.close = *p->scan.t.start == '{' ? '}' : '>';
	text_scan_next(&p->scan);
	put_tag(p, f, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	mark = wire_out_open(&p->out);
	p->depth++;
	if (!parse_body(p, &b))
		return false;
	p->depth--;
	wire_out_close(&p->out, mark);
	return true;
}

/* One value of f with its tag. */
static bool
parse_value(struct parse *p, const ProtobufCFieldDescriptor *f)
{
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return parse_message(p, f);
	put_tag(p, f, wire_type(f));
	return text_value_read(&p->scan, f, &p->out);
}

/*
 * The values of a list, up to its ']', each by read.  Whether values have
 * tags is read's business.
 */
static bool
parse_list(struct parse *p, const ProtobufCFieldDescriptor *f,
    const struct text_token *open, bool tagged)
{
	if (text_scan_accept(&p->scan, ']'))
		return true;
	do {
		if (!(tagged ? parse_value(p, f) :
		    text_value_read(&p->scan, f, &p->out)))
			return false;
	} while (text_scan_accept(&p->scan, ','));
	if (!text_scan_accept(&p->scan, ']'))
		return text_scan_unexpected(&p->scan, &p->scan.t,
		    "',' or ']' is wanted in the list of line %u, column %u",
		    open->line, open->column);
	return true;
}

/*
 * A packed field: its values, one or a list, without tags in one piece.  (An
 * empty list leaves an empty piece, which readers take for none.)
 */
static bool
parse_packed(struct parse *p, const ProtobufCFieldDescriptor *f)
{
	struct text_token open = p->scan.t;
	size_t mark;

	put_tag(p, f, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	mark = wire_out_open(&p->out);
	if (!(text_scan_accept(&p->scan, '[') ?
	    parse_list(p, f, &open, false) :
	    text_value_read(&p->scan, f, &p->out)))
		return false;
	wire_out_close(&p->out, mark);
	return true;
}

/* Reads a field's value after its name: one, or a list of them. */
static bool
parse_values(struct parse *p, const ProtobufCFieldDescriptor *f)
{
	struct text_token open = p->scan.t;

	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		if (text_scan_is(&p->scan, '['))
			return text_scan_fail(&p->scan, &open,
			    "%s is one value, not a list", f->name);
		return parse_value(p, f);
	}
	if ((f->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0)
		return parse_packed(p, f);
	if (text_scan_accept(&p->scan, '['))
		return parse_list(p, f, &open, true);
	return parse_value(p, f);
}

/* ':' before a value; a message may do without. */
static bool
parse_colon(struct parse *p, const ProtobufCFieldDescriptor *f,
    const struct text_token *name)
{
	bool colon = text_scan_accept(&p->scan, ':');
	bool brace = text_scan_is(&p->scan, '{') ||
	    text_scan_is(&p->scan, '<');

	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return true;
	if (brace && f->type == PROTOBUF_C_TYPE_BYTES)
		return text_scan_fail(&p->scan, name,
		    "this build has no schema for '%s', so it cannot be "
		    "written as a message: give its encoded bytes in quotes, "
		    "or the whole in binary", f->name);
	if (brace)
		return text_scan_fail(&p->scan, &p->scan.t,
		    "%s is no message: it wants ':' and %s", f->name,
		    text_value_wanted(f));
	if (!colon)
		return text_scan_unexpected(&p->scan, &p->scan.t,
		    "':' is wanted after '%s'", f->name);
	return true;
}

/* The output is looked at once per field: soon enough to stop early. */
static bool
check_output(struct parse *p, const struct text_token *at)
{
	switch (p->out.failed) {
	case WIRE_OUT_OK:
		return true;
	case WIRE_OUT_TOO_LARGE:
		return text_scan_fail(&p->scan, at,
		    "the message is larger than %u bytes",
		    TEXT_PARSE_MAX_OUTPUT);
	case WIRE_OUT_NO_MEMORY:
		break;
	}
	return text_scan_fail(&p->scan, at, "out of memory");
}

static bool
fail_no_name(struct parse *p, const struct body *b)
{
	struct text_token *t = &p->scan.t;

	if (text_scan_is(&p->scan, '['))
		return text_scan_fail(&p->scan, t,
		    "extensions and Any, in '[ ]', are not known here");
	if (t->type == TEXT_TOKEN_INT)
		return text_scan_fail(&p->scan, t,
		    "a field is given by its name, not by its number");
	if (b->close != '\0' && (t->type == TEXT_TOKEN_END ||
	    text_scan_is(&p->scan, '}') || text_scan_is(&p->scan, '>')))
		return text_scan_unexpected(&p->scan, t,
		    "'%c' is wanted for the '%c' of line %u, column %u",
		    b->close, *b->open.start, b->open.line, b->open.column);
	if (text_scan_is(&p->scan, '}') || text_scan_is(&p->scan, '>'))
		return text_scan_fail(&p->scan, t, "'%c' closes nothing",
		    *t->start);
	return text_scan_unexpected(&p->scan, t, "a field of %s is wanted",
	    type_name(b->d));
}

static bool
parse_field(struct parse *p, struct body *b)
{
	const ProtobufCFieldDescriptor *f;
	struct text_token name = p->scan.t;

	if (name.type != TEXT_TOKEN_WORD)
		return fail_no_name(p, b);
	if ((f = find_field(b->d, &name)) == NULL)
		return fail_unknown_field(p, b->d, &name);
	if (!note_field(p, b, f, &name))
		return false;
	text_scan_next(&p->scan);
	if (!parse_colon(p, f, &name) || !parse_values(p, f) ||
	    !check_output(p, &name))
		return false;
	if (!text_scan_accept(&p->scan, ','))
		(void)text_scan_accept(&p->scan, ';');
	return true;
}

static bool
parse_body(struct parse *p, struct body *b)
{
	while (b->close != '\0' ? !text_scan_accept(&p->scan, b->close) :
	    p->scan.t.type != TEXT_TOKEN_END) {
		if (!parse_field(p, b))
			return false;
	}
	return true;
}

/* An error about the text as a whole. */
static int
refuse(struct text_error *err, const char *message)
{
	if (err != NULL) {
		*err = (struct text_error){ .line = 0 };
		snprintf(err->message, sizeof(err->message), "%s", message);
	}
	return -1;
}

int
text_parse(const ProtobufCMessageDescriptor *d, const char *text, size_t len,
    uint8_t **out, size_t *out_len, struct text_error *err)
{
	struct body top = { .d = d };
	struct parse p = { .depth = 0 };
	uint8_t *bytes;
	int ret = -1;

	if (len > TEXT_PARSE_MAX_INPUT)
		return refuse(err, "the text is longer than 4 MiB");
	wire_out_init(&p.out, TEXT_PARSE_MAX_OUTPUT);
	text_scan_init(&p.scan, text, len, err);
	if (!parse_body(&p, &top))
		goto out;
	if ((bytes = wire_out_take(&p.out, out_len)) == NULL) {
		refuse(err, "out of memory");
		goto out;
	}
	*out = bytes;
	ret = 0;
out:
	wire_out_done(&p.out);
	return ret;
}

ProtobufCMessage *
text_parse_message(const ProtobufCMessageDescriptor *d, const char *text,
    size_t len, struct text_error *err)
{
	ProtobufCMessage *m;
	uint8_t *bytes;
	size_t n;

	if (text_parse(d, text, len, &bytes, &n, err) < 0)
		return NULL;
	if ((m = unpack_checked(d, NULL, n, bytes)) == NULL)
		(void)refuse(err, "out of memory");
	free(bytes);
	return m;
}
