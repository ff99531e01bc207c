#include "transport/link/link_zstd.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/*
 * The logarithms of tables that levels above 3 would make as large as for
 * files: 2^16 entries keep any level below 2 MiB, and reach over the window.
 */
#define FAST_TABLE_LOG 14
#define TABLE_LOG      16
#define LEVEL_FAST_MAX 2
/* From here on three bytes are looked up in one more table of 512 KiB. */
#define LEVEL_SHORT_MATCHES 14
#define MIN_MATCH           4

/* The first bytes of a stream; all else is a format that we do not speak. */
#define MAGIC_BYTES 4u
static const uint8_t magic[MAGIC_BYTES] = { 0x28, 0xb5, 0x2f, 0xfd };

struct link_compressor {
	ZSTD_CCtx *ctx;
	bool bad;
	uint8_t out[LINK_ZSTD_BLOCK_MAX];
};

struct link_decompressor {
	ZSTD_DCtx *ctx;
	bool begun;
	bool bad;
	/* One more, to see that there was more. */
	uint8_t out[LINK_BLOCK_MAX + 1];
};

static int
set_up(ZSTD_CCtx *ctx, int level)
{
	int table = level <= LEVEL_FAST_MAX ? FAST_TABLE_LOG : TABLE_LOG;
	const struct { ZSTD_cParameter name; int value; } set[] = {
		{ ZSTD_c_compressionLevel, level },
		{ ZSTD_c_windowLog, LINK_ZSTD_WINDOW_LOG },
		{ ZSTD_c_hashLog, table },
		{ ZSTD_c_chainLog, table },
		/* 0: as the level has it */
		{ ZSTD_c_minMatch,
		    level >= LEVEL_SHORT_MATCHES ? MIN_MATCH : 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(ctx, set[i].name,
		    set[i].value)))
			return -1;
	return 0;
}

struct link_compressor *
link_compressor_new(int level)
{
	struct link_compressor *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	if ((c->ctx = ZSTD_createCCtx()) == NULL || set_up(c->ctx, level) != 0) {
		link_compressor_free(c);
		return NULL;
	}
	return c;
}

void
link_compressor_free(struct link_compressor *c)
{
	if (c == NULL)
		return;
	ZSTD_freeCCtx(c->ctx);
	free(c);
}

int
link_compress(struct link_compressor *c, const void *data, size_t len,
    const uint8_t **out, size_t *out_len)
{
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer to = { c->out, sizeof(c->out), 0 };
	size_t left;

	if (c->bad || len > LINK_BLOCK_MAX)
		return -1;
	/* One call does it all, as there is room for the worst case. */
	left = ZSTD_compressStream2(c->ctx, &to, &in, ZSTD_e_flush);
	if (left != 0 || in.pos != len) {
		c->bad = true;
		return -1;
	}
	*out = c->out;
	*out_len = to.pos;
	return 0;
}

struct link_decompressor *
link_decompressor_new(void)
{
	struct link_decompressor *d;

	if ((d = calloc(1, sizeof(*d))) == NULL)
		return NULL;
	if ((d->ctx = ZSTD_createDCtx()) == NULL ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(d->ctx, ZSTD_d_windowLogMax,
	    LINK_ZSTD_WINDOW_LOG))) {
		link_decompressor_free(d);
		return NULL;
	}
	return d;
}

void
link_decompressor_free(struct link_decompressor *d)
{
	if (d == NULL)
		return;
	ZSTD_freeDCtx(d->ctx);
	free(d);
}

/* Whether the stream can go on behind it. */
static bool
run(struct link_decompressor *d, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
	size_t left;

	while (in->pos < in->size) {
		if (out->pos == out->size)
			return false;
		/* Makes no endless loop of no progress: that is an error. */
		left = ZSTD_decompressStream(d->ctx, out, in);
		/* 0: its end, but a stream lasts as long as its connection. */
		if (ZSTD_isError(left) || left == 0)
			return false;
	}
	return true;
}

int
link_decompress(struct link_decompressor *d, const void *data, size_t len,
    size_t raw_size, const uint8_t **out)
{
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer to = { d->out, raw_size + 1, 0 };

	if (d->bad)
		return -1;
	d->bad = true;
	if (raw_size > LINK_BLOCK_MAX || len > LINK_ZSTD_BLOCK_MAX)
		return -1;
	if (!d->begun && (len < MAGIC_BYTES ||
	    memcmp(data, magic, MAGIC_BYTES) != 0))
		return -1;
	d->begun = true;
	if (!run(d, &in, &to) || to.pos != raw_size)
		return -1;
	d->bad = false;
	*out = d->out;
	return 0;
}
