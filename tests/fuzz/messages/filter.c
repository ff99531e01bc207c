/*
 * A trace filter of the input's making, and a packet for it:
 *
 *	flags      1: bytes as they are, else words that get their checksum
 *	           2: with an overlay   4: with a string rule
 *	policy     of the rule
 *	length and bytes of the bytecode, the overlay, the pattern (a byte of
 *	length for the last, two for the others), then the packet.
 *
 * What comes out is a packet, not longer than what went in, that the same
 * filter lets through as it is (string rules may find something anew).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protos/trace_config.pb-c.h"
#include "service/filter/message_filter.h"
#include "tests/fuzz/messages/messages.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

enum { AS_IT_IS = 1, OVERLAY = 2, RULE = 4 };

typedef Perfetto__Protos__TraceConfig__TraceFilter filter_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterChain chain_pb;
typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule rule_pb;

struct input {
	const uint8_t *p;
	const uint8_t *end;
};

static size_t
take_number(struct input *in, unsigned bytes)
{
	size_t v = 0;

	for (; bytes > 0 && in->p < in->end; bytes--)
		v = v << 8 | *in->p++;
	return v;
}

static const uint8_t *
take(struct input *in, unsigned bytes, size_t *len)
{
	const uint8_t *p;

	*len = take_number(in, bytes);
	if (*len > (size_t)(in->end - in->p))
		*len = (size_t)(in->end - in->p);
	p = in->p;
	in->p += *len;
	return p;
}

/* The words there are, and their checksum behind them. */
static void
add_checksum(struct pb_writer *out, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t v, sum = 0xcbf29ce484222325ull;
	unsigned shift;

	while (p < end && (p = pb_varint(p, end, &v)) != NULL) {
		v = (uint32_t)v;
		pb_put_varint(out, v);
		for (shift = 0; shift < 32; shift += 8)
			sum = (sum ^ (v >> shift & 0xff)) * 0x100000001b3ull;
	}
	pb_put_varint(out, (uint32_t)sum);
}

static ProtobufCBinaryData
code(struct pb_writer *w, struct input *in, unsigned flags)
{
	const uint8_t *p;
	size_t len;

	pb_writer_init(w);
	p = take(in, 2, &len);
	if (flags & AS_IT_IS)
		pb_put_raw(w, p, len);
	else
		add_checksum(w, p, len);
	return (ProtobufCBinaryData){ .len = w->len, .data = w->data };
}

static void
check(struct message_filter *f, const uint8_t *data, size_t len,
    bool has_rules)
{
	const struct message_filter_stats *st = message_filter_stats(f);
	const uint8_t *out;
	uint8_t *copy;
	size_t n, again;

	/* Of its very size, so that a sanitizer sees one byte too far. */
	if ((copy = malloc(len + (len == 0))) == NULL)
		return;
	memcpy(copy, data, len);
	if (!message_filter_packet(f, copy, len, &out, &n)) {
		if (st->errors != 1 || st->output_bytes != 0)
			abort();
		free(copy);
		return;
	}
	if (n > len || st->output_bytes != n || st->errors != 0)
		abort();
	free(copy);
	if ((copy = malloc(n + (n == 0))) == NULL)
		return;
	if (n > 0)
		memcpy(copy, out, n);
	if (!pb_well_formed(copy, n) ||
	    !message_filter_packet(f, copy, n, &out, &again) || again != n)
		abort();
	if (!has_rules && n > 0 && memcmp(copy, out, n) != 0)
		abort();
	free(copy);
}

void
fuzz_filter(const uint8_t *data, size_t size)
{
	filter_pb pb = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__INIT;
	chain_pb chain = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_CHAIN__INIT;
	rule_pb rule = PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_RULE__INIT;
	rule_pb *rules[] = { &rule };
	struct input in = { data, data + size };
	struct pb_writer base, overlay;
	struct message_filter *f;
	const uint8_t *p;
	char pattern[256], err[512] = "";
	unsigned flags;
	size_t len;

	flags = (unsigned)take_number(&in, 1);
	rule.policy = (int)take_number(&in, 1);
	pb.bytecode_v2 = code(&base, &in, flags);
	pb.bytecode_overlay_v54 = code(&overlay, &in, flags);
	if (!(flags & OVERLAY))
		pb.bytecode_overlay_v54.len = 0;
	p = take(&in, 1, &len);
	memcpy(pattern, p, len);
	pattern[len] = '\0';
	rule.regex_pattern = pattern;
	chain.n_rules = 1;
	chain.rules = rules;
	if (flags & RULE)
		pb.string_filter_chain = &chain;
	f = message_filter_new(&pb, err, sizeof(err));
	if (f == NULL && err[0] == '\0')
		abort();
	if (f != NULL)
		check(f, in.p, (size_t)(in.end - in.p), flags & RULE);
	message_filter_free(f);
	pb_writer_done(&base);
	pb_writer_done(&overlay);
}
