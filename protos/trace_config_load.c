#include "protos/trace_config_load.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "protos/trace_config.pb-c.h"
#include "protos/utf8.h"

/*
 * A text may have slips (a stray control character, an umlaut of Latin-1): at
 * most one byte in this many.
 */
#define SLIPS 16

/* Counts the bytes that are no part of UTF-8 text, white space included. */
static size_t
count_odd_bytes(const uint8_t *buf, size_t len)
{
	const char *s = (const char *)buf;
	size_t odd = 0, n;

	for (; len > 0; s += n, len -= n) {
		n = utf8_char(s, len);
		if (n == 0 || (n == 1 && ((unsigned char)*s < ' ' ||
		    *s == 0x7f) && memchr("\t\n\v\f\r", *s, 5) == NULL)) {
			odd++;
			n = 1;
		}
	}
	return odd;
}

static bool
is_binary(const uint8_t *buf, size_t len)
{
	Perfetto__Protos__TraceConfig *c;

	c = perfetto__protos__trace_config__unpack(NULL, len, buf);
	if (c == NULL)
		return false;
	perfetto__protos__trace_config__free_unpacked(c, NULL);
	return true;
}

static int
load_text(const struct trace_config_input *in, uint8_t **out, size_t *out_len,
    struct text_error *err)
{
	return text_parse(&perfetto__protos__trace_config__descriptor,
	    (const char *)in->data, in->len, out, out_len, err);
}

static int
load_binary(const struct trace_config_input *in, uint8_t **out,
    size_t *out_len, char *err, size_t err_size)
{
	uint8_t *copy;

	if ((copy = malloc(in->len)) == NULL) {
		snprintf(err, err_size, "%s: error: out of memory", in->name);
		return -1;
	}
	memcpy(copy, in->data, in->len);
	*out = copy;
	*out_len = in->len;
	return 0;
}

static int
fail_empty(const char *name, char *err, size_t err_size)
{
	snprintf(err, err_size, "%s: error: the config is empty", name);
	return -1;
}

int
trace_config_load(const struct trace_config_input *in, uint8_t **out,
    size_t *out_len, char *err, size_t err_size)
{
	struct text_error text_err;
	size_t text_len, odd;
	uint8_t *text;

	if (in->len > TRACE_CONFIG_LOAD_MAX) {
		snprintf(err, err_size,
		    "%s: error: a trace config is at most %u bytes long",
		    in->name, TRACE_CONFIG_LOAD_MAX);
		return -1;
	}
	if (in->len == 0)
		return fail_empty(in->name, err, err_size);
	if (load_text(in, &text, &text_len, &text_err) == 0) {
		if (text_len == 0) {
			free(text);
			return fail_empty(in->name, err, err_size);
		}
		*out = text;
		*out_len = text_len;
		return 0;
	}
	odd = count_odd_bytes(in->data, in->len);
	if (odd > 0 && is_binary(in->data, in->len))
		return load_binary(in, out, out_len, err, err_size);
	if (odd > in->len / SLIPS) {
		snprintf(err, err_size, "%s: error: this is no trace config, "
		    "neither as protobuf text nor in binary", in->name);
		return -1;
	}
	text_error_format(&text_err, in->name, (const char *)in->data, in->len,
	    err, err_size);
	return -1;
}
