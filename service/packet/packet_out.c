#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/buffer/trace_buffer.h"
#include "service/packet/packet_out.h"
#include "service/sink/file_sink.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"


/* Tag and 5-byte varint: previous_packet_dropped at its longest. */
#define LOSS_MAX 7u
/* Around a slice's bytes: two tags, two 3-byte lengths, the flag's two */
#define SLICE_OVERHEAD 10u
/* Tag and length before a packet in a file. */
#define PACKET_HEADER_MAX 11u

/*
 * A reply is closed with at least this much free, so that a packet is cut only
 * if it is larger.  (A cut costs a second copy.)
 */
#define REPLY_SPARE (16u * 1024u)

_Static_assert(PACKET_TRAILER_ROOM == PACKET_TRAILER_MAX + LOSS_MAX,
    "packet_trailer_put() writes as much");
_Static_assert(PACKET_REPLY_MAX < 1u << 21, "a length in a reply has 3 bytes");

struct packet_out {
	struct sink_batch *batch; /* file: borrowed, or NULL */
	uint8_t *reply;           /* reply: PACKET_REPLY_MAX bytes, else NULL */
	size_t len;               /* of reply */
	uint8_t *rest; /* of a cut packet, trailer included; NULL: none */
	size_t rest_len;
	size_t rest_sent;
};

static uint8_t *
put_varint_field(uint8_t *p, uint32_t field, uint64_t v)
{
	p += pb_encode_varint(p, (uint64_t)field << 3);
	return p + pb_encode_varint(p, v);
}

void
packet_trailer_init(struct packet_trailer *t, int32_t uid, int32_t pid,
    uint32_t sequence, uint32_t machine)
{
	uint8_t *p = t->bytes;

	memset(t->bytes, 0, sizeof(t->bytes));
	*p++ = PB_TAG(TracePacket_trusted_uid, PB_VARINT);
	p += pb_encode_varint(p, (uint64_t)(int64_t)uid);
	*p++ = PB_TAG(TracePacket_trusted_packet_sequence_id, PB_VARINT);
	p += pb_encode_varint(p, sequence);
	if (pid > 0)
		p = put_varint_field(p, TracePacket_trusted_pid, (uint64_t)pid);
	if (machine != 0)
		p = put_varint_field(p, TracePacket_machine_id, machine);
	t->len = (size_t)(p - t->bytes);
}

/* The trailer, then the loss.  Room for PACKET_TRAILER_MAX + LOSS_MAX at p. */
static inline uint8_t *
put_trailer(uint8_t *p, const struct packet_trailer *t, uint32_t loss)
{
	if (LIKELY(t != NULL)) {
		/* All of it, with the zeroes behind: a copy without a call */
		memcpy(p, t->bytes, PACKET_TRAILER_MAX);
		p += t->len;
	}
	if (UNLIKELY(loss != 0))
		p = put_varint_field(p, TracePacket_previous_packet_dropped,
		    loss);
	return p;
}

uint8_t *
packet_trailer_put(uint8_t *p, const struct packet_trailer *t, uint32_t loss)
{
	return put_trailer(p, t, loss);
}

static inline size_t
trailer_size(const struct packet_trailer *t, uint32_t loss)
{
	size_t n = t != NULL ? t->len : 0;

	if (UNLIKELY(loss != 0))
		n += 2 + pb_varint_size(loss);
	return n;
}

struct packet_out *
packet_out_new_file(void)
{
	return calloc(1, sizeof(struct packet_out));
}

struct packet_out *
packet_out_new_reply(void)
{
	struct packet_out *o;

	if ((o = calloc(1, sizeof(*o))) == NULL)
		return NULL;
	if ((o->reply = malloc(PACKET_REPLY_MAX)) == NULL) {
		free(o);
		return NULL;
	}
	return o;
}

void
packet_out_free(struct packet_out *o)
{
	if (o == NULL)
		return;
	free(o->reply);
	free(o->rest);
	free(o);
}

void
packet_out_set_batch(struct packet_out *o, struct sink_batch *b)
{
	o->batch = b;
}

bool
packet_out_room(const struct packet_out *o)
{
	if (o->reply == NULL)
		return o->batch != NULL && o->batch->len < o->batch->nominal;
	return o->rest == NULL && o->len <= PACKET_REPLY_MAX - REPLY_SPARE;
}

/* Returns where they end. */
static uint8_t *
put_slices(uint8_t *p, const struct packet_parts *k)
{
	size_t i;

	for (i = 0; i < k->n; i++) {
		memcpy(p, k->slices[i].data, k->slices[i].len);
		p += k->slices[i].len;
	}
	return p;
}

static bool
put_file(struct packet_out *o, const struct packet_parts *k)
{
	struct sink_batch *b = o->batch;
	size_t most = k->size + PACKET_HEADER_MAX + PACKET_TRAILER_MAX +
	    LOSS_MAX;
	uint8_t *p;

	if (UNLIKELY(b->cap - b->len < most) && !file_sink_reserve(b, most))
		return false;
	p = b->data + b->len;
	*p++ = PB_TAG(Trace_packet, PB_BYTES);
	p += pb_encode_varint(p, k->size + trailer_size(k->trailer, k->loss));
	p = put_slices(p, k);
	p = put_trailer(p, k->trailer, k->loss);
	b->len = (size_t)(p - b->data);
	return true;
}

/* Begins a slice of n bytes; returns where they go.  Fits, and is < 2 MiB. */
static uint8_t *
begin_slice(struct packet_out *o, size_t n, bool last)
{
	uint8_t *p = o->reply + o->len;
	size_t inner = 1 + pb_varint_size(n) + n + (last ? 2 : 0);

	*p++ = PB_TAG(ReadBuffersResponse_slices, PB_BYTES);
	p += pb_encode_varint(p, inner);
	*p++ = PB_TAG(Slice_data, PB_BYTES);
	return p + pb_encode_varint(p, n);
}

/* p: the byte after the slice's data. */
static void
end_slice(struct packet_out *o, uint8_t *p, bool last)
{
	if (last) {
		*p++ = PB_TAG(Slice_last_slice_for_packet, PB_VARINT);
		*p++ = 1;
	}
	o->len = (size_t)(p - o->reply);
}

/*
 * The first `head` bytes go into this reply, everything after them is kept.
 * Nothing has happened when memory is missing.
 */
static bool
put_cut(struct packet_out *o, const struct packet_parts *k, size_t head)
{
	uint8_t *p, *q;
	size_t i, take;

	assert(o->rest == NULL);
	/* put_trailer() writes more than it keeps */
	o->rest = malloc(k->size - head + PACKET_TRAILER_MAX + LOSS_MAX);
	if (o->rest == NULL)
		return false;
	p = begin_slice(o, head, false);
	q = o->rest;
	for (i = 0; i < k->n; i++) {
		take = k->slices[i].len < head ? k->slices[i].len : head;
		memcpy(p, k->slices[i].data, take);
		p += take;
		head -= take;
		memcpy(q, k->slices[i].data + take, k->slices[i].len - take);
		q += k->slices[i].len - take;
	}
	end_slice(o, p, false);
	q = put_trailer(q, k->trailer, k->loss);
	o->rest_len = (size_t)(q - o->rest);
	o->rest_sent = 0;
	return true;
}

static bool
put_reply(struct packet_out *o, const struct packet_parts *k)
{
	size_t body = k->size + trailer_size(k->trailer, k->loss);
	size_t fits = PACKET_REPLY_MAX - o->len - SLICE_OVERHEAD;
	uint8_t *p;

	/* The slack is for put_trailer(), which writes more than it keeps */
	if (UNLIKELY(body + PACKET_TRAILER_MAX > fits))
		return put_cut(o, k, k->size < fits ? k->size : fits);
	p = begin_slice(o, body, true);
	p = put_slices(p, k);
	end_slice(o, put_trailer(p, k->trailer, k->loss), true);
	return true;
}

bool
packet_out_put(struct packet_out *o, const struct packet_parts *packet)
{
	return o->reply == NULL ? put_file(o, packet) : put_reply(o, packet);
}

bool
packet_out_put_whole(struct packet_out *o, const struct tb_slice *s)
{
	return packet_out_put(o, &(struct packet_parts){ .slices = s, .n = 1,
	    .size = s->len });
}

size_t
packet_out_size(size_t size, const struct packet_trailer *trailer,
    uint32_t loss)
{
	size_t body = size + trailer_size(trailer, loss);

	return 1 + pb_varint_size(body) + body;
}

bool
packet_out_empty(const struct packet_out *o)
{
	if (o->reply == NULL)
		return o->batch == NULL || o->batch->len == 0;
	return o->len == 0 && o->rest == NULL;
}

const uint8_t *
packet_out_reply(const struct packet_out *o, size_t *len)
{
	*len = o->len;
	return o->reply;
}

bool
packet_out_pending(const struct packet_out *o)
{
	return o->rest != NULL;
}

void
packet_out_next(struct packet_out *o)
{
	size_t n, fits = PACKET_REPLY_MAX - SLICE_OVERHEAD;
	bool last = true;
	uint8_t *p;

	o->len = 0;
	if (o->rest == NULL)
		return;
	n = o->rest_len - o->rest_sent;
	if (n > fits) {
		n = fits;
		last = false;
	}
	p = begin_slice(o, n, last);
	memcpy(p, o->rest + o->rest_sent, n);
	end_slice(o, p + n, last);
	o->rest_sent += n;
	if (last) {
		free(o->rest);
		o->rest = NULL;
	}
}
