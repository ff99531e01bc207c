/*
 * A decompressor with a hostile peer.  Input, first byte:
 *	even: blocks of length (2 bytes), raw size (3), and that many bytes
 *	odd: level, then pieces of length (2) and bytes, compressed honestly,
 *	     with the byte at a place (2) of each changed by xor (1)
 */
#include "tests/fuzz/messages/messages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/link_zstd.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			abort();                                               \
	} while (0)

/* Bound the time of one input. */
#define BLOCKS_MAX 64

static const uint8_t *in;
static size_t left;

static size_t
take(size_t bytes)
{
	size_t v = 0;

	while (bytes-- > 0) {
		v = v << 8 | (left > 0 ? *in : 0);
		if (left > 0) {
			in++;
			left--;
		}
	}
	return v;
}

static const uint8_t *
take_bytes(size_t *len)
{
	const uint8_t *at = in;

	if (*len > left)
		*len = left;
	in += *len;
	left -= *len;
	return at;
}

/* An exact copy, so that a byte too many is seen. */
static int
decompress(struct link_decompressor *d, const uint8_t *data, size_t len,
    size_t raw, const uint8_t **out)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	unsigned sum = 0;
	size_t i;
	int rc;

	CHECK(copy != NULL);
	memcpy(copy, data, len);
	rc = link_decompress(d, copy, len, raw, out);
	CHECK(rc == 0 || rc == -1);
	for (i = 0; rc == 0 && i < raw; i++)
		sum += (*out)[i];
	CHECK(sum != UINT32_MAX);
	free(copy);
	return rc;
}

static void
run_raw(struct link_decompressor *d)
{
	const uint8_t *data, *out;
	size_t len, raw;
	int i, rc, before = 0;

	for (i = 0; i < BLOCKS_MAX && left > 0; i++) {
		len = take(2);
		raw = take(3) % (LINK_BLOCK_MAX + 2);
		data = take_bytes(&len);
		rc = decompress(d, data, len, raw, &out);
		CHECK(before == 0 || rc != 0); /* wrong once, wrong for good */
		before = rc;
	}
}

static void
run_harmed(struct link_decompressor *d)
{
	struct link_compressor *c =
	    link_compressor_new((int)(take(1) % 19) + 1);
	const uint8_t *data, *out, *small;
	size_t len, small_len, place;
	uint8_t harm, *copy;
	bool honest = true;
	int i, rc;

	CHECK(c != NULL);
	for (i = 0; i < BLOCKS_MAX && left > 0; i++) {
		place = take(2);
		harm = (uint8_t)take(1);
		len = take(2);
		data = take_bytes(&len);
		if (len == 0)
			break;
		CHECK(link_compress(c, data, len, &small, &small_len) == 0);
		CHECK(small_len <= LINK_ZSTD_BLOCK_MAX);
		CHECK((copy = malloc(small_len)) != NULL);
		memcpy(copy, small, small_len);
		copy[place % small_len] ^= harm;
		honest = honest && harm == 0;
		rc = decompress(d, copy, small_len, len, &out);
		CHECK(!honest || (rc == 0 && memcmp(out, data, len) == 0));
		free(copy);
		if (rc != 0)
			break;
	}
	link_compressor_free(c);
}

void
fuzz_link_zstd(const uint8_t *data, size_t size)
{
	struct link_decompressor *d = link_decompressor_new();

	CHECK(d != NULL);
	in = data;
	left = size;
	if (take(1) % 2 == 0)
		run_raw(d);
	else
		run_harmed(d);
	link_decompressor_free(d);
}
