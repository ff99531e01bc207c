#include "transport/sink/packet_compressor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "protos/fields.h"
#include "transport/sink/packet_boundary.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define DEFLATE_LEVEL 6

/* Before the compressed bytes: tags of 1 and 2 bytes, varints of at most 10. */
#define HEADER_MAX 23u
/* Most bytes of one call: zlib counts in unsigned ints. */
#define DEFLATE_MOST (1u << 30)

/*
 * From this level on zstd would take tables as for much larger files.  These
 * have 2^17 entries and cost 1 % of the size at most: a batch is no longer.
 */
#define ZSTD_LEVEL_LARGE 4
#define ZSTD_TABLE_LOG   17

/* Bytes kept for the next batch, with room for the packet that ends it. */
#define OUT_KEPT (PACKET_BATCH_BYTES + 64u * 1024u)

struct packet_compressor {
	enum packet_compression_kind kind;
	z_stream deflater;
	bool has_deflater;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* a header's room, then compressed bytes */
	size_t cap;
};

static int
zstd_level(int level)
{
	if (level == 0)
		return ZSTD_CLEVEL_DEFAULT;
	if (level < PACKET_ZSTD_LEVEL_MIN)
		return PACKET_ZSTD_LEVEL_MIN;
	return level > PACKET_ZSTD_LEVEL_MAX ? PACKET_ZSTD_LEVEL_MAX : level;
}

static int
set_up_zstd(struct packet_compressor *c, int level)
{
	const struct { ZSTD_cParameter name; int value; } set[] = {
		{ ZSTD_c_compressionLevel, level },
		{ ZSTD_c_hashLog, ZSTD_TABLE_LOG },
		{ ZSTD_c_chainLog, ZSTD_TABLE_LOG },
	};
	size_t i, n = level < ZSTD_LEVEL_LARGE ? 1 : sizeof(set) /
	    sizeof(set[0]);

	if ((c->zstd = ZSTD_createCCtx()) == NULL)
		return -1;
	for (i = 0; i < n; i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, set[i].name,
		    set[i].value)))
			return -1;
	return 0;
}

struct packet_compressor *
packet_compressor_new(const struct packet_compression *how)
{
	struct packet_compressor *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->kind = how->kind;
	switch (how->kind) {
	case PACKET_PLAIN:
		break;
	case PACKET_DEFLATE:
		if (deflateInit(&c->deflater, DEFLATE_LEVEL) != Z_OK)
			goto fail;
		c->has_deflater = true;
		break;
	case PACKET_ZSTD:
		if (set_up_zstd(c, zstd_level(how->level)) != 0)
			goto fail;
		break;
	}
	return c;

fail:
	packet_compressor_free(c);
	return NULL;
}

void
packet_compressor_free(struct packet_compressor *c)
{
	if (c == NULL)
		return;
	if (c->has_deflater)
		deflateEnd(&c->deflater);
	ZSTD_freeCCtx(c->zstd);
	free(c->out);
	free(c);
}

/* Room for n bytes behind the header; what was there need not stay. */
static bool
make_room(struct packet_compressor *c, size_t n)
{
	size_t cap = n < OUT_KEPT ? OUT_KEPT : n;
	uint8_t *out;

	cap += HEADER_MAX;
	/* Memory for an unusually large packet is freed by the next call. */
	if (c->cap >= cap && (c->cap <= OUT_KEPT + HEADER_MAX ||
	    cap > OUT_KEPT + HEADER_MAX))
		return true;
	if ((out = malloc(cap)) == NULL)
		return c->cap >= cap;
	free(c->out);
	c->out = out;
	c->cap = cap;
	return true;
}

/* 0: it would become more than room bytes, or memory is short. */
static size_t
squeeze_deflate(struct packet_compressor *c, const uint8_t *data, size_t len,
    uint8_t *out, size_t room)
{
	z_stream *z = &c->deflater;

	if (len > DEFLATE_MOST || deflateReset(z) != Z_OK)
		return 0;
	z->next_in = (z_const Bytef *)data;
	z->avail_in = (uInt)len;
	z->next_out = out;
	z->avail_out = (uInt)room;
	return deflate(z, Z_FINISH) == Z_STREAM_END ? room - z->avail_out : 0;
}

static size_t
squeeze(struct packet_compressor *c, const uint8_t *data, size_t len,
    uint8_t *out, size_t room)
{
	size_t n = 0;

	switch (c->kind) {
	case PACKET_PLAIN:
		break;
	case PACKET_DEFLATE:
		n = squeeze_deflate(c, data, len, out, room);
		break;
	case PACKET_ZSTD:
		n = ZSTD_compress2(c->zstd, out, room, data, len);
		break;
	}
	return ZSTD_isError(n) ? 0 : n;
}

/* Trace.packet and TracePacket's field, up to end; returns the first byte. */
static uint8_t *
put_header(uint8_t *end, uint32_t field, size_t len)
{
	uint8_t head[HEADER_MAX], inner[HEADER_MAX];
	size_t n, m;

	m = pb_encode_varint(inner, field << 3 | PB_BYTES);
	m += pb_encode_varint(inner + m, len);
	n = pb_encode_varint(head, Trace_packet << 3 | PB_BYTES);
	n += pb_encode_varint(head + n, m + len);
	memcpy(end - m, inner, m);
	memcpy(end - m - n, head, n);
	return end - m - n;
}

const uint8_t *
packet_compressor_run(struct packet_compressor *c, const uint8_t *data,
    size_t len, size_t *out_len)
{
	uint8_t *body, *begin;
	size_t n;

	*out_len = len;
	if (c->kind == PACKET_PLAIN || len == 0 || !make_room(c, len))
		return data;
	body = c->out + HEADER_MAX;
	if ((n = squeeze(c, data, len, body, len)) == 0)
		return data;
	begin = put_header(body, c->kind == PACKET_ZSTD ?
	    TracePacket_zstd_compressed_packets :
	    TracePacket_compressed_packets, n);
	n += (size_t)(body - begin);
	if (n >= len)
		return data;
	*out_len = n;
	return begin;
}

/* Returns the end of a packet near the middle between two such ends. */
static size_t
middle(const uint8_t *data, size_t low, size_t high)
{
	size_t n = low + packet_boundary(data + low, (high - low) / 2);
	uint64_t size;
	const uint8_t *p;

	if (n > low)
		return n;
	/* A packet that is more than half of it goes alone. */
	p = pb_varint(data + low + 1, data + high, &size);
	return p != NULL ? (size_t)(p - data) + (size_t)size : high;
}

const uint8_t *
packet_compressor_fit(struct packet_compressor *c, const uint8_t *data,
    size_t len, size_t room, size_t *taken, size_t *out_len)
{
	size_t low = 0, high = len, n, at;
	const uint8_t *out;

	out = packet_compressor_run(c, data, len, out_len);
	*taken = len;
	if (*out_len <= room)
		return out;
	/* low fits, high does not. */
	while ((at = middle(data, low, high)) < high) {
		(void)packet_compressor_run(c, data, at, &n);
		if (n <= room)
			low = at;
		else
			high = at;
	}
	*taken = low;
	out = packet_compressor_run(c, data, low, out_len);
	if (*out_len > room)
		*taken = *out_len = 0; /* memory ran short meanwhile */
	return out;
}
