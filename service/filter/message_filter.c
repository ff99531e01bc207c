#include "service/filter/message_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protos/fields.h"
#include "protos/trace_config.pb-c.h"
#include "service/filter/bytecode.h"
#include "service/filter/string_filter.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Messages within messages, as protobuf's own parsers have it. */
#define DEPTH_MAX 100u
/* Memory beyond this is freed when a shorter packet comes. */
#define KEEP_BYTES (256u * 1024u)

/* The bytecode begins at Trace, packets are its field 1. */
#define MESSAGE_TRACE      0u

typedef Perfetto__Protos__TraceConfig__TraceFilter filter_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterChain chain_pb;

struct message_filter {
	struct bytecode *bytecode;
	struct string_filter *strings;
	uint32_t root; /* TracePacket */
	/*
	 * As large as the input: no field gets longer, and neither does the
	 * varint of a length that is written anew.
	 */
	uint8_t *out;
	size_t cap;
	size_t len;
	struct message_filter_stats stats;
};

static int
load_chain(struct string_filter *f, const chain_pb *chain, char *err,
    size_t err_size)
{
	size_t i;

	for (i = 0; chain != NULL && i < chain->n_rules; i++)
		if (string_filter_add(f, chain->rules[i], err, err_size) != 0)
			return -1;
	return 0;
}

static struct bytecode *
load_bytecode(const filter_pb *pb, char *err, size_t err_size)
{
	struct bytecode_source base = {
		.name = "bytecode_v2",
		.data = pb->bytecode_v2.data,
		.len = pb->bytecode_v2.len,
	}, overlay = {
		.name = "bytecode_overlay_v54",
		.data = pb->bytecode_overlay_v54.data,
		.len = pb->bytecode_overlay_v54.len,
	};

	if (base.len == 0) {
		base.name = "bytecode";
		base.data = pb->bytecode.data;
		base.len = pb->bytecode.len;
	}
	return bytecode_load(&base, overlay.len > 0 ? &overlay : NULL, err,
	    err_size);
}

struct message_filter *
message_filter_new(const filter_pb *pb, char *err, size_t err_size)
{
	struct message_filter *f;
	struct field_rule packet;

	snprintf(err, err_size, "No memory for the trace filter");
	if ((f = calloc(1, sizeof(*f))) == NULL ||
	    (f->strings = string_filter_new()) == NULL)
		goto fail;
	if (load_chain(f->strings, pb->string_filter_chain, err,
	    err_size) != 0 || load_chain(f->strings,
	    pb->string_filter_chain_v54, err, err_size) != 0)
		goto fail;
	if ((f->bytecode = load_bytecode(pb, err, err_size)) == NULL)
		goto fail;
	packet = bytecode_rule(f->bytecode, MESSAGE_TRACE, Trace_packet);
	if (packet.action != FIELD_NESTED) {
		snprintf(err, err_size, "Trace filter bytecode invalid: its "
		    "first message is not Trace: field 1 is no message");
		goto fail;
	}
	f->root = packet.argument;
	return f;

fail:
	message_filter_free(f);
	return NULL;
}

void
message_filter_free(struct message_filter *f)
{
	if (f == NULL)
		return;
	bytecode_free(f->bytecode);
	string_filter_free(f->strings);
	free(f->out);
	free(f);
}

static bool
make_room(struct message_filter *f, size_t len)
{
	uint8_t *p;

	f->len = 0;
	if (f->cap > KEEP_BYTES && len <= KEEP_BYTES) {
		free(f->out);
		f->out = NULL;
		f->cap = 0;
	}
	if (f->out != NULL && len <= f->cap)
		return true;
	if ((p = realloc(f->out, len)) == NULL)
		return false;
	f->out = p;
	f->cap = len;
	return true;
}

/* Returns where the payload goes. */
static uint8_t *
put_header(struct message_filter *f, const struct pb_field *field)
{
	uint64_t tag = (uint64_t)field->number << 3 | PB_BYTES;

	f->len += pb_encode_varint(f->out + f->len, tag);
	f->len += pb_encode_varint(f->out + f->len, field->len);
	return f->out + f->len;
}

static void
put_string(struct message_filter *f, const struct pb_field *field,
    uint32_t type)
{
	uint8_t *p = put_header(f, field);

	memcpy(p, field->data, field->len);
	string_filter_apply(f->strings, p, field->len, type);
	f->len += field->len;
}

static bool filter_fields(struct message_filter *f, uint32_t message,
    const uint8_t *data, size_t len, unsigned depth);

static bool
put_nested(struct message_filter *f, const struct pb_field *field,
    uint32_t message, unsigned depth)
{
	size_t body = (size_t)(put_header(f, field) - f->out), len, at;

	if (depth >= DEPTH_MAX ||
	    !filter_fields(f, message, field->data, field->len, depth + 1))
		return false;
	len = f->len - body;
	if (len == field->len)
		return true;
	/* The length is less, and may itself be a byte shorter. */
	at = body - pb_varint_size(field->len);
	memmove(f->out + at + pb_varint_size(len), f->out + body, len);
	f->len = at + pb_encode_varint(f->out + at, len) + len;
	return true;
}

/* False: not well-formed.  Denied fields are not looked into. */
static bool
filter_fields(struct message_filter *f, uint32_t message, const uint8_t *data,
    size_t len, unsigned depth)
{
	struct pb_reader r;
	struct pb_field field;
	struct field_rule rule;
	size_t size;

	PB_FOREACH(&field, &r, data, len) {
		rule = bytecode_rule(f->bytecode, message, field.number);
		switch ((enum field_action)rule.action) {
		case FIELD_DENY:
			break;
		case FIELD_SIMPLE:
			size = (size_t)(r.p - field.start);
			memcpy(f->out + f->len, field.start, size);
			f->len += size;
			break;
		case FIELD_STRING:
			if (field.wire == PB_BYTES)
				put_string(f, &field, rule.argument);
			break;
		case FIELD_NESTED:
			if (field.wire == PB_BYTES && !put_nested(f, &field,
			    rule.argument, depth))
				return false;
			break;
		}
	}
	return !r.bad;
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool
message_filter_packet(struct message_filter *f, const uint8_t *data,
    size_t len, const uint8_t **out, size_t *out_len)
{
	uint64_t start = now_ns();
	bool ok;

	f->stats.input_packets++;
	f->stats.input_bytes += len;
	string_filter_begin(f->strings, len);
	ok = make_room(f, len) && filter_fields(f, f->root, data, len, 0);
	f->stats.time_taken_ns += now_ns() - start;
	if (!ok) {
		f->stats.errors++;
		return false;
	}
	f->stats.output_bytes += f->len;
	*out = f->out;
	*out_len = f->len;
	return true;
}

const struct message_filter_stats *
message_filter_stats(const struct message_filter *f)
{
	return &f->stats;
}
