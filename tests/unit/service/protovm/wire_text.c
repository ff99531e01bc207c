#include "tests/unit/service/protovm/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/protovm.pb-c.h"
#include "protos/text_error.h"
#include "protos/text_parse.h"
#include "transport/wire/pb_reader.h"

static const char *
skip_spaces(const char *p)
{
	while (*p == ' ')
		p++;
	return p;
}

static const char *message(const char *p, struct pb_writer *out);

static const char *
value(const char *p, uint32_t field, struct pb_writer *out)
{
	const char *begin = p + 1;
	uint64_t v;
	size_t mark;
	char *end;

	if (*p == '{') {
		mark = pb_nest_begin(out, field);
		p = message(begin, out);
		pb_nest_end(out, mark);
		assert_int_equal(*p, '}');
		return p + 1;
	}
	if (*p == '\'') {
		p = strchr(begin, '\'');
		assert_non_null(p);
		pb_put_bytes(out, field, begin, (size_t)(p - begin));
		return p + 1;
	}
	v = strtoull(*p == 'i' || *p == 'l' ? begin : p, &end, 0);
	assert_true(end > p);
	if (*p == 'i' || *p == 'l') {
		pb_put_varint(out, (uint64_t)field << 3 |
			(*p == 'i' ? PB_FIXED32 : PB_FIXED64));
		pb_put_raw(out, &v, *p == 'i' ? 4 : 8);
	} else {
		pb_put_uint(out, field, v);
	}
	return end;
}

static const char *
message(const char *p, struct pb_writer *out)
{
	unsigned long field;
	char *end;

	for (p = skip_spaces(p); *p != '\0' && *p != '}'; p = skip_spaces(p)) {
		field = strtoul(p, &end, 10);
		assert_int_equal(*end, ':');
		p = value(end + 1, (uint32_t)field, out);
	}
	return p;
}

void
wire_text(const char *text, struct pb_writer *out)
{
	assert_int_equal(*message(text, out), '\0');
	assert_false(out->failed);
}

struct protovm_program *
wire_text_program(const char *text, char *err, size_t err_size)
{
	struct protovm_program *p;
	struct text_error e = { 0 };
	uint8_t *wire;
	size_t len;

	if (text_parse(&perfetto__protos__vm_program__descriptor, text,
		strlen(text), &wire, &len, &e) != 0)
		fail_msg("%u: %s", (unsigned)e.line, e.message);
	p = protovm_program_new(wire, len, err, err_size);
	free(wire);
	return p;
}

void
wire_text_load(struct protovm *vm, const char *state)
{
	struct pb_writer w;

	pb_writer_init(&w);
	wire_text(state, &w);
	assert_int_equal(protovm_set_state(vm, w.data, w.len), 0);
	pb_writer_done(&w);
}

enum protovm_verdict
wire_text_apply(struct protovm *vm, const char *packet)
{
	enum protovm_verdict v;
	struct pb_writer w;
	uint8_t *copy;

	pb_writer_init(&w);
	wire_text(packet, &w);
	copy = malloc(w.len + (w.len == 0));
	assert_non_null(copy);
	if (w.len > 0)
		memcpy(copy, w.data, w.len);
	v = protovm_apply(vm, copy, w.len);
	free(copy);
	pb_writer_done(&w);
	return v;
}

static void
print_hex(const char *name, const struct pb_writer *w)
{
	size_t i;

	fprintf(stderr, "%s:", name);
	for (i = 0; i < w->len; i++)
		fprintf(stderr, " %02x", w->data[i]);
	fprintf(stderr, "\n");
}

void
wire_text_expect(const struct protovm *vm, const char *state)
{
	struct pb_writer want, got;

	pb_writer_init(&want);
	pb_writer_init(&got);
	wire_text(state, &want);
	protovm_state(vm, &got);
	if (want.len != got.len ||
	    (got.len > 0 && memcmp(want.data, got.data, got.len) != 0)) {
		print_hex("got", &got);
		print_hex("want", &want);
		fail_msg("the state is not %s", state);
	}
	pb_writer_done(&want);
	pb_writer_done(&got);
}
