#include "client/tracing/consumer/slice_joiner.h"

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Larger memory is freed after its packet, not kept for the next. */
#define PARTIAL_KEPT (1u << 20)

struct slice {
	const uint8_t *data;
	size_t len;
	bool last;
};

void
slice_joiner_done(struct slice_joiner *j)
{
	pb_writer_done(&j->partial);
	j->error = NULL;
}

static void
fail(struct slice_joiner *j, const char *error)
{
	j->error = error;
	pb_writer_done(&j->partial);
}

/* false: malformed. */
static bool
read_slice(const struct pb_field *encoded, struct slice *s)
{
	struct pb_reader r;
	struct pb_field f;

	*s = (struct slice){ .data = (const uint8_t *)"" };
	PB_FOREACH(&f, &r, encoded->data, encoded->len) {
		if (f.number == Slice_data && f.wire == PB_BYTES) {
			s->data = f.data;
			s->len = f.len;
		} else if (f.number == Slice_last_slice_for_packet) {
			s->last = f.value != 0;
		}
	}
	return !r.bad;
}

static bool
take(struct slice_joiner *j, const struct slice *s, slice_joiner_fn fn,
    void *arg)
{
	struct pb_writer packet;
	bool more;

	if (s->last && j->partial.len == 0)
		return fn(arg, s->data, s->len);
	if (s->len > SLICE_JOINER_MAX_PACKET - j->partial.len) {
		fail(j, "a packet of the trace is too large to be read");
		return true;
	}
	pb_put_raw(&j->partial, s->data, s->len);
	if (j->partial.failed) {
		fail(j, "out of memory for a packet of the trace");
		return true;
	}
	if (!s->last)
		return true;
	/* fn may free j: the packet's memory is moved out of j before. */
	packet = j->partial;
	pb_writer_init(&j->partial);
	more = fn(arg, packet.data, packet.len);
	if (more && packet.cap <= PARTIAL_KEPT) {
		pb_writer_reset(&packet);
		j->partial = packet;
	} else {
		pb_writer_done(&packet);
	}
	return more;
}

bool
slice_joiner_feed(struct slice_joiner *j, const uint8_t *msg, size_t len,
    slice_joiner_fn fn, void *arg)
{
	struct pb_reader r;
	struct pb_field f;
	struct slice s;

	pb_init(&r, msg, len);
	while (j->error == NULL && pb_next(&r, &f)) {
		if (f.number != ReadBuffersResponse_slices ||
		    f.wire != PB_BYTES)
			continue;
		if (!read_slice(&f, &s))
			r.bad = true;
		else if (!take(j, &s, fn, arg))
			return false;
		if (r.bad)
			break;
	}
	if (r.bad)
		fail(j, "an answer of the collector is malformed");
	return true;
}

const char *
slice_joiner_error(const struct slice_joiner *j)
{
	if (j->error == NULL && j->partial.len > 0)
		return "the collector ended its answer within a packet";
	return j->error;
}
