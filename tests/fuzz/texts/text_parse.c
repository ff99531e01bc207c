/*
 * Text format from anywhere.  What is accepted must print and read back as
 * the same message; what is refused must say where, in printable words.  It is
 * read as each of several types.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/settings.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "protos/text_print.h"
#include "protos/trace_config.pb-c.h"
#include "protos/trace_packet.pb-c.h"
#include "protos/trace_stats.pb-c.h"
#include "protos/utf8.h"
#include "tests/fuzz/texts/texts.h"
#include "tests/unit/protos/print_string.h"

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
			    #cond); \
			abort(); \
		} \
	} while (0)

static const ProtobufCMessageDescriptor *const types[] = {
	&perfetto__protos__trace_config__descriptor,
	&perfetto__protos__test_config__dummy_fields__descriptor,
	&perfetto__protos__trace_stats__descriptor,
	&perfetto__protos__trace_packet__descriptor,
	&tributary__settings__descriptor,
};

static void
check_printable(const char *s)
{
	size_t len = strlen(s), n;

	for (; len > 0; s += n, len -= n) {
		n = utf8_printable(s, len);
		CHECK(n > 0 || *s == '\n' || *s == '\t');
		if (n == 0)
			n = 1;
	}
}

static void
check_error(const struct text_error *err, const char *text, size_t len)
{
	char buf[TEXT_ERROR_FORMAT_SIZE];

	CHECK(err->message[0] != '\0');
	CHECK((err->line == 0) == (err->column == 0));
	CHECK(err->line <= len + 1 && err->column <= len + 1);
	CHECK(strlen(err->word) < sizeof(err->word));
	text_error_format(err, "f", text, len, buf, sizeof(buf));
	CHECK(strlen(buf) < sizeof(buf));
	check_printable(buf);
	/* However little room there is. */
	text_error_format(err, "f", text, len, buf, len % sizeof(buf) + 1);
	CHECK(strlen(buf) <= len % sizeof(buf));
}

static void
check_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t n = protobuf_c_message_get_packed_size(a);
	uint8_t *a_bytes = malloc(n + 1), *b_bytes = malloc(n + 1);

	CHECK(a_bytes != NULL && b_bytes != NULL);
	CHECK(protobuf_c_message_get_packed_size(b) == n);
	CHECK(protobuf_c_message_pack(a, a_bytes) == n);
	CHECK(protobuf_c_message_pack(b, b_bytes) == n);
	CHECK(memcmp(a_bytes, b_bytes, n) == 0);
	free(a_bytes);
	free(b_bytes);
}

static void
check_round_trip(const ProtobufCMessage *m)
{
	struct text_error err;
	ProtobufCMessage *again;
	char *s;

	CHECK((s = print_string(m)) != NULL);
	check_printable(s);
	/* Indentation may carry the text over the limit: that is no fault. */
	if (strlen(s) <= TEXT_PARSE_MAX_INPUT) {
		again = text_parse_message(m->descriptor, s, strlen(s), &err);
		CHECK(again != NULL);
		check_same(m, again);
		protobuf_c_message_free_unpacked(again, NULL);
	}
	free(s);
}

static void
parse_as(const ProtobufCMessageDescriptor *d, const char *text, size_t size)
{
	struct text_error err;
	ProtobufCMessage *m;

	memset(&err, 0x55, sizeof(err));
	m = text_parse_message(d, text, size, &err);
	if (m == NULL) {
		check_error(&err, text, size);
		return;
	}
	check_round_trip(m);
	protobuf_c_message_free_unpacked(m, NULL);
}

void
fuzz_text_parse(const uint8_t *data, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		parse_as(types[i], (const char *)data, size);
}
