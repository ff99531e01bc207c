#include "protos/text_settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protos/field_values.h"
#include "protos/text_error.h"
#include "protos/text_file.h"
#include "protos/text_parse.h"

int
text_settings_complain(const struct text_settings *t, const char *what,
    const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(t->err, t->err_size, "%s: error: %s: %s", t->name, what, why);
	return -1;
}

static uint64_t
get_number(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	const char *at = (const char *)m + f->offset;

	if (f->type == PROTOBUF_C_TYPE_UINT64)
		return *(const uint64_t *)at;
	if (f->type == PROTOBUF_C_TYPE_BOOL)
		return *(const protobuf_c_boolean *)at != 0;
	return *(const uint32_t *)at;
}

static void
put_number(char *at, size_t size, uint64_t v)
{
	if (size == sizeof(uint64_t))
		*(uint64_t *)at = v;
	else if (size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)v;
	else
		*(bool *)at = v != 0;
}

int
text_settings_copy(const struct text_settings *t, const char *prefix,
    const struct text_setting *table, size_t n, const ProtobufCMessage *from,
    void *to)
{
	const ProtobufCFieldDescriptor *f;
	const struct text_setting *row;
	char what[64];
	uint64_t v;

	for (row = table; row < table + n; row++) {
		f = protobuf_c_message_descriptor_get_field_by_name(
		    from->descriptor, row->field);
		if (field_values_count(from, f) == 0)
			continue;
		v = get_number(from, f);
		snprintf(what, sizeof(what), "%s%s", prefix, row->field);
		if (row->is_limit && v == 0)
			return text_settings_complain(t, what, "0 is not "
			    "accepted: it would refuse everything; leave the "
			    "field out for the default");
		if (row->most != 0 && v > row->most)
			return text_settings_complain(t, what, "%llu is over "
			    "the most that is possible, %llu",
			    (unsigned long long)v,
			    (unsigned long long)row->most);
		put_number((char *)to + row->to, row->size, v);
	}
	return 0;
}

int
text_settings_parse(const struct text_settings *t,
    const struct text_settings_kind *kind, const char *text, size_t len,
    void *settings)
{
	struct text_error where;
	ProtobufCMessage *m;
	int rc;

	m = text_parse_message(kind->descriptor, text, len, &where);
	if (m == NULL) {
		text_error_format(&where, t->name, text, len, t->err,
		    t->err_size);
		return -1;
	}
	rc = kind->apply(t, m, settings);
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}

int
text_settings_read(const struct text_settings *t,
    const struct text_settings_kind *kind, void *settings)
{
	size_t len;
	char *text;
	int rc;

	if ((text = text_file_read(t->name, &len, t->err, t->err_size)) == NULL)
		return -1;
	rc = text_settings_parse(t, kind, text, len, settings);
	free(text);
	return rc;
}
