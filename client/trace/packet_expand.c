#include "client/trace/packet_expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "client/trace/packet_splitter.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

/* Bytes that are decompressed at a time. */
#define PIECE_BYTES (64u * 1024u)
/* Most bytes of deflate's input, whose lengths are unsigned int. */
#define INPUT_MAX (1u << 30)

static const uint8_t zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

struct packet_expand {
	/* Made with the first packet that needs them. */
	z_stream inflater;
	bool has_inflater;
	ZSTD_DCtx *zstd;
	uint64_t in;  /* compressed bytes so far */
	uint64_t out;
	uint64_t end; /* out may not pass it while in this packet */
	struct packet_splitter cutter;
	packet_expand_fn fn;
	void *arg;
	char *err;
	size_t err_size;
	uint8_t piece[PIECE_BYTES];
};

struct packet_expand *
packet_expand_new(packet_expand_fn fn, void *arg)
{
	struct packet_expand *x;

	if ((x = calloc(1, sizeof(*x))) == NULL)
		return NULL;
	x->fn = fn;
	x->arg = arg;
	return x;
}

void
packet_expand_free(struct packet_expand *x)
{
	if (x == NULL)
		return;
	if (x->has_inflater)
		inflateEnd(&x->inflater);
	ZSTD_freeDCtx(x->zstd);
	packet_splitter_done(&x->cutter);
	free(x);
}

/* The last compressed field: of a oneof, the last member counts. */
static bool
find_compressed(const uint8_t *data, size_t len, struct pb_field *out)
{
	struct pb_reader r;
	struct pb_field f;
	bool found = false;

	PB_FOREACH(&f, &r, data, len) {
		if ((f.number == TracePacket_compressed_packets ||
		    f.number == TracePacket_zstd_compressed_packets) &&
		    f.wire == PB_BYTES) {
			*out = f;
			found = true;
		}
	}
	return found && !r.bad;
}

bool
packet_expand_is_compressed(const uint8_t *data, size_t len)
{
	struct pb_field f;

	return find_compressed(data, len, &f);
}

static int
bad(struct packet_expand *x, const char *why)
{
	snprintf(x->err, x->err_size, "compressed packets %s", why);
	return -1;
}

/* Hands the n decompressed bytes in x->piece to the splitter. */
static int
take_piece(struct packet_expand *x, size_t n)
{
	if (n > x->end - x->out)
		return bad(x, "become larger than any trace's");
	x->out += n;
	/* x->end has bounded the memory of an incomplete packet, too. */
	if (packet_splitter_feed(&x->cutter, x->piece, n, x->fn, x->arg) < 0)
		return bad(x, "hold something else than packets");
	return 0;
}

static int
expand_deflate(struct packet_expand *x, const uint8_t *data, size_t len)
{
	z_stream *z = &x->inflater;
	int rc;

	if (len > INPUT_MAX)
		return bad(x, "are larger than any trace's");
	if (!x->has_inflater) {
		if (inflateInit(z) != Z_OK)
			return bad(x, "could not be read: out of memory");
		x->has_inflater = true;
	} else if (inflateReset(z) != Z_OK) {
		return bad(x, "could not be read");
	}
	z->next_in = (z_const Bytef *)data;
	z->avail_in = (uInt)len;
	do {
		z->next_out = x->piece;
		z->avail_out = sizeof(x->piece);
		rc = inflate(z, Z_NO_FLUSH);
		if (take_piece(x, sizeof(x->piece) - z->avail_out) < 0)
			return -1;
	} while (rc == Z_OK);
	if (rc == Z_BUF_ERROR)
		return bad(x, "end too early");
	if (rc == Z_MEM_ERROR)
		return bad(x, "could not be read: out of memory");
	if (rc != Z_STREAM_END)
		return bad(x, "are damaged");
	return z->avail_in == 0 ? 0 : bad(x, "go on behind their end");
}

static int
expand_zstd(struct packet_expand *x, const uint8_t *data, size_t len)
{
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer out;
	size_t left, before;

	if (x->zstd == NULL) {
		if ((x->zstd = ZSTD_createDCtx()) == NULL ||
		    ZSTD_isError(ZSTD_DCtx_setParameter(x->zstd,
		    ZSTD_d_windowLogMax, PACKET_EXPAND_WINDOW_LOG)))
			return bad(x, "could not be read: out of memory");
	}
	ZSTD_DCtx_reset(x->zstd, ZSTD_reset_session_only);
	/* Several frames in a row are one stream, too. */
	do {
		out = (ZSTD_outBuffer){ x->piece, sizeof(x->piece), 0 };
		before = in.pos;
		left = ZSTD_decompressStream(x->zstd, &out, &in);
		if (take_piece(x, out.pos) < 0)
			return -1;
		if (ZSTD_isError(left))
			return bad(x, "are damaged");
		if (left != 0 && out.pos == 0 && in.pos == before)
			return bad(x, "end too early");
	} while (left != 0 || in.pos < in.size);
	return 0;
}

static int
expand(struct packet_expand *x, const struct pb_field *f)
{
	uint64_t all;

	x->in += f->len;
	all = PACKET_EXPAND_ALLOWANCE + x->in * PACKET_EXPAND_RATIO;
	x->end = all - x->out < PACKET_EXPAND_MAX_BYTES ? all :
	    x->out + PACKET_EXPAND_MAX_BYTES;
	/* Services wrote zstd into the older field before it had its own. */
	if (f->number == TracePacket_zstd_compressed_packets ||
	    (f->len >= sizeof(zstd_magic) &&
	    memcmp(f->data, zstd_magic, sizeof(zstd_magic)) == 0)) {
		if (expand_zstd(x, f->data, f->len) < 0)
			return -1;
	} else if (expand_deflate(x, f->data, f->len) < 0) {
		return -1;
	}
	return x->cutter.tail_len == 0 ? 0 : bad(x, "end within a packet");
}

enum packet_expand_result
packet_expand_packet(struct packet_expand *x, const uint8_t *data, size_t len,
    char *err, size_t err_size)
{
	struct pb_field f;
	int rc;

	if (!find_compressed(data, len, &f))
		return PACKET_EXPAND_PLAIN;
	x->err = err;
	x->err_size = err_size;
	rc = expand(x, &f);
	packet_splitter_done(&x->cutter);
	return rc == 0 ? PACKET_EXPAND_DONE : PACKET_EXPAND_BAD;
}

uint64_t
packet_expand_bytes(const struct packet_expand *x)
{
	return x->out;
}
