#include "service/packet/session_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/filter/message_filter.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_parts.h"
#include "transport/packet/packet_stats.h"
#include "transport/wire/pb_reader.h"

/* Memory beyond this is freed when a shorter packet comes. */
#define KEEP_BYTES (256u * 1024u)

struct session_filter {
	struct message_filter *rules;
	uint8_t *joined; /* a packet that is in pieces */
	size_t cap;
	uint64_t no_memory; /* packets that could not be put together */
	uint64_t *discarded; /* bytes, by buffer */
	size_t n_buffers;
};

/* TraceConfig.trace_filter, its chains, their rules, the strings of a rule. */
static const uint64_t path_to_strings[] = {
	1ull << TraceConfig_trace_filter,
	1ull << TraceFilter_string_filter_chain |
	    1ull << TraceFilter_string_filter_chain_v54,
	1ull << StringFilterChain_rules,
	1ull << StringFilterRule_regex_pattern |
	    1ull << StringFilterRule_atrace_payload_starts_with |
	    1ull << StringFilterRule_name,
};
#define PATH_DEPTH (sizeof(path_to_strings) / sizeof(*path_to_strings))

/*
 * Whether a string of the rules has a zero byte.  Decoded strings end at the
 * first: a pattern that is cut there would redact less than it was meant to.
 */
static bool
has_zeroes(const uint8_t *data, size_t len, size_t depth)
{
	struct pb_reader r;
	struct pb_field f;

	if (depth == PATH_DEPTH)
		return memchr(data, '\0', len) != NULL;
	PB_FOREACH(&f, &r, data, len)
		if (f.wire == PB_BYTES && f.number < 64 &&
		    (path_to_strings[depth] >> f.number & 1) != 0 &&
		    has_zeroes(f.data, f.len, depth + 1))
			return true;
	return false;
}

struct session_filter *
session_filter_new(const struct config *c, char *err, size_t err_size)
{
	struct session_filter *f;

	if (has_zeroes(c->bytes, c->len, 0)) {
		snprintf(err, err_size, "Trace filter has invalid string "
		    "filtering rules: a zero byte in a string of theirs");
		return NULL;
	}
	snprintf(err, err_size, "No memory for the trace filter");
	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->n_buffers = c->pb->n_buffers;
	f->discarded = calloc(f->n_buffers + 1, sizeof(*f->discarded));
	if (f->discarded == NULL)
		goto fail;
	f->rules = message_filter_new(c->pb->trace_filter, err, err_size);
	if (f->rules == NULL)
		goto fail;
	return f;

fail:
	session_filter_free(f);
	return NULL;
}

void
session_filter_free(struct session_filter *f)
{
	if (f == NULL)
		return;
	message_filter_free(f->rules);
	free(f->joined);
	free(f->discarded);
	free(f);
}

static bool
make_room(struct session_filter *f, size_t size)
{
	if (f->cap > KEEP_BYTES && size <= KEEP_BYTES) {
		free(f->joined);
		f->joined = NULL;
		f->cap = 0;
	}
	if (f->joined != NULL && size <= f->cap)
		return true;
	free(f->joined);
	f->joined = malloc(size);
	f->cap = f->joined == NULL ? 0 : size;
	return f->joined != NULL;
}

/* The packet in one piece.  NULL: no memory. */
static const uint8_t *
join(struct session_filter *f, const struct packet_parts *k, size_t *len)
{
	if (k->n == 1 && k->trailer == NULL && k->loss == 0) {
		*len = k->size;
		return k->slices->data;
	}
	if (!make_room(f, k->size + PACKET_TRAILER_ROOM))
		return NULL;
	*len = (size_t)(packet_parts_put(f->joined, k) - f->joined);
	return f->joined;
}

struct tb_slice
session_filter_packet(struct session_filter *f,
    const struct packet_parts *packet, size_t buffer)
{
	static const uint8_t nothing[1];
	struct tb_slice left = { .data = nothing, .len = 0 };
	const uint8_t *data, *out;
	size_t len, out_len;

	data = join(f, packet, &len);
	if (data == NULL) {
		f->no_memory++;
		return left;
	}
	if (!message_filter_packet(f->rules, data, len, &out, &out_len))
		return left;
	if (buffer < f->n_buffers)
		f->discarded[buffer] += len - out_len;
	if (out_len > 0)
		left = (struct tb_slice){ .data = out, .len = out_len };
	return left;
}

uint64_t
session_filter_ns(const struct session_filter *f)
{
	return message_filter_stats(f->rules)->time_taken_ns;
}

void
session_filter_stats(const struct session_filter *f,
    struct packet_filter_stats *out)
{
	const struct message_filter_stats *st = message_filter_stats(f->rules);

	*out = (struct packet_filter_stats){
		.input_packets = st->input_packets + f->no_memory,
		.input_bytes = st->input_bytes,
		.output_bytes = st->output_bytes,
		.errors = st->errors + f->no_memory,
		.time_taken_ns = st->time_taken_ns,
		.discarded = f->discarded,
		.n_buffers = f->n_buffers,
	};
}
