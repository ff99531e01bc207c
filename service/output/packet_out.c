#include "service/output/packet_out.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "service/sink/file_sink.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Around a slice's bytes: two tags, two 3-byte lengths, the flag's two */
#define SLICE_OVERHEAD 10u
/* Tag and length before a packet in a file. */
#define PACKET_HEADER_MAX 11u

/*
 * A reply is closed with at least this much free, so that a packet is cut only
 * if it is larger.  (A cut costs a second copy.)
 */
#define REPLY_SPARE (16u * 1024u)

_Static_assert(PACKET_REPLY_MAX < 1u << 21, "a length in a reply has 3 bytes");

struct packet_out {
	struct sink_batch *batch; /* file: borrowed, or NULL */
	uint8_t *reply;           /* reply: PACKET_REPLY_MAX bytes, else NULL */
	size_t len;               /* of reply */
	uint8_t *rest; /* of a cut packet, trailer included; NULL: none */
	size_t rest_len;
	size_t rest_sent;
};

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

static bool
put_file(struct packet_out *o, const struct packet_parts *k)
{
	struct sink_batch *b = o->batch;
	size_t most = k->size + PACKET_HEADER_MAX + PACKET_TRAILER_ROOM;
	uint8_t *p;

	if (UNLIKELY(b->cap - b->len < most) && !file_sink_reserve(b, most))
		return false;
	p = b->data + b->len;
	*p++ = PB_TAG(Trace_packet, PB_BYTES);
	p += pb_encode_varint(p, packet_parts_size(k));
	p = packet_parts_put(p, k);
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
	/* packet_trailer_put() writes more than it keeps. */
	o->rest = malloc(k->size - head + PACKET_TRAILER_ROOM);
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
	q = packet_trailer_put(q, k->trailer, k->loss);
	o->rest_len = (size_t)(q - o->rest);
	o->rest_sent = 0;
	return true;
}

static bool
put_reply(struct packet_out *o, const struct packet_parts *k)
{
	size_t body = packet_parts_size(k);
	size_t fits = PACKET_REPLY_MAX - o->len - SLICE_OVERHEAD;
	uint8_t *p;

	/* The slack is for packet_trailer_put(), as above. */
	if (UNLIKELY(body + PACKET_TRAILER_MAX > fits))
		return put_cut(o, k, k->size < fits ? k->size : fits);
	p = begin_slice(o, body, true);
	end_slice(o, packet_parts_put(p, k), true);
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
	size_t body = size + packet_trailer_size(trailer, loss);

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
