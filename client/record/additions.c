#include "client/record/additions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "protos/utf8.h"
#include "transport/base/failure.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static const uint32_t statsd_fields[N_STATSD] = {
	[STATSD_ALERT_ID] = StatsdMetadata_triggering_alert_id,
	[STATSD_CONFIG_UID] = StatsdMetadata_triggering_config_uid,
	[STATSD_CONFIG_ID] = StatsdMetadata_triggering_config_id,
	[STATSD_SUBSCRIPTION_ID] =
	    StatsdMetadata_triggering_subscription_id,
};

/* All of text; false: it is no number, or needs more than 64 bits. */
static bool
parse_int64(const char *text, int64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0';
}

/* "007" and "+7" are names of something, not numbers. */
static bool
is_plain_number(const char *text, int64_t *v)
{
	char again[32];

	if (!parse_int64(text, v))
		return false;
	snprintf(again, sizeof(again), "%" PRId64, *v);
	return strcmp(text, again) == 0;
}

static size_t
key_len(const char *attribute)
{
	return strcspn(attribute, "=");
}

static bool
is_utf8(const char *text)
{
	size_t len = strlen(text), n;

	for (; len > 0; text += n, len -= n)
		if ((n = utf8_char(text, len)) == 0)
			return false;
	return true;
}

int
record_additions_attribute(struct record_additions *a, const char *text,
    char *err, size_t err_size)
{
	if (key_len(text) == 0)
		return FAILURE(err, err_size, "--add-attribute wants "
		    "KEY=VALUE, and \"%.60s\" has no key", text);
	if (!is_utf8(text))
		return FAILURE(err, err_size, "--add-attribute wants UTF-8");
	if (a->n_attributes == RECORD_ATTRIBUTES_MAX)
		return FAILURE(err, err_size, "--add-attribute is given more "
		    "than %u times: put attributes into the config "
		    "(trace_attributes)", RECORD_ATTRIBUTES_MAX);
	a->attributes[a->n_attributes++] = text;
	return 0;
}

int
record_additions_statsd(struct record_additions *a, enum record_statsd which,
    const char *flag, const char *text, char *err, size_t err_size)
{
	int64_t v;

	if (!parse_int64(text, &v) || (which == STATSD_CONFIG_UID &&
	    (v < INT32_MIN || v > INT32_MAX)))
		return FAILURE(err, err_size, "%s wants a number, not "
		    "\"%.60s\"", flag, text);
	a->statsd[which] = v;
	a->has_statsd[which] = true;
	return 0;
}

static bool
any_statsd(const struct record_additions *a)
{
	size_t i;

	for (i = 0; i < N_STATSD; i++)
		if (a->has_statsd[i])
			return true;
	return false;
}

bool
record_additions_any(const struct record_additions *a)
{
	return a->n_attributes > 0 || any_statsd(a);
}

/* Whether a flag after the first `from` is about the same key. */
static bool
is_replaced(const struct record_additions *a, size_t from, const void *key,
    size_t len)
{
	size_t i;

	for (i = from; i < a->n_attributes; i++)
		if (key_len(a->attributes[i]) == len &&
		    memcmp(a->attributes[i], key, len) == 0)
			return true;
	return false;
}

static void
put_attribute(struct pb_writer *out, const char *text)
{
	size_t mark = pb_nest_begin(out, TraceAttributes_attribute),
	    len = key_len(text);
	const char *value = text[len] == '=' ? text + len + 1 : "";
	int64_t v;

	pb_put_bytes(out, Attribute_key, text, len);
	if (is_plain_number(value, &v))
		pb_put_int(out, Attribute_long_value, v);
	else
		pb_put_string(out, Attribute_string_value, value);
	pb_nest_end(out, mark);
}

/* The config's own attributes, without keys that a flag sets. */
static int
keep_attributes(const struct record_additions *a, const struct pb_field *all,
    struct pb_writer *out)
{
	struct pb_reader r, inner;
	struct pb_field f, part, key;

	PB_FOREACH(&f, &r, all->data, all->len) {
		key.data = (const uint8_t *)"";
		key.len = 0;
		if (f.number == TraceAttributes_attribute &&
		    f.wire == PB_BYTES) {
			PB_FOREACH(&part, &inner, f.data, f.len)
				if (part.number == Attribute_key &&
				    part.wire == PB_BYTES)
					key = part;
		}
		if (!is_replaced(a, 0, key.data, key.len))
			pb_put_raw(out, f.start, (size_t)(r.p - f.start));
	}
	return r.bad ? -1 : 0;
}

static void
put_statsd(const struct record_additions *a, struct pb_writer *out)
{
	size_t mark = pb_nest_begin(out, TraceConfig_statsd_metadata), i;

	for (i = 0; i < N_STATSD; i++)
		if (a->has_statsd[i])
			pb_put_int(out, statsd_fields[i], a->statsd[i]);
	pb_nest_end(out, mark);
}

int
record_additions_put(const struct record_additions *a, const uint8_t *config,
    size_t len, struct pb_writer *out)
{
	struct pb_writer kept;
	struct pb_reader r;
	struct pb_field f;
	size_t mark, i;
	int ret = 0;

	pb_writer_init(&kept);
	pb_init(&r, config, len);
	while (ret == 0 && pb_next(&r, &f)) {
		if (f.number == TraceConfig_trace_attributes &&
		    f.wire == PB_BYTES && a->n_attributes > 0)
			ret = keep_attributes(a, &f, &kept);
		else if (f.number != TraceConfig_statsd_metadata ||
		    !any_statsd(a))
			pb_put_raw(out, f.start, (size_t)(r.p - f.start));
	}
	if (any_statsd(a))
		put_statsd(a, out);
	if (a->n_attributes > 0) {
		mark = pb_nest_begin(out, TraceConfig_trace_attributes);
		if (kept.len > 0)
			pb_put_raw(out, kept.data, kept.len);
		for (i = 0; i < a->n_attributes; i++)
			if (!is_replaced(a, i + 1, a->attributes[i],
			    key_len(a->attributes[i])))
				put_attribute(out, a->attributes[i]);
		pb_nest_end(out, mark);
	}
	if (kept.failed || out->failed || r.bad)
		ret = -1;
	pb_writer_done(&kept);
	return ret;
}
