/*
 * A decompressor with a hostile peer.  Input, first byte:
 *	even: blocks of length (2 bytes), raw size (3), and that many bytes
 *	odd: level, then pieces of length (2) and bytes, compressed honestly,
 *	     with the byte at a place (2) of each changed by xor (1)
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/input.h"
#include "tests/fuzz/messages/messages.h"
#include "transport/link/link_zstd.h"

/* Bound the time of one input. */
#define BLOCKS_MAX 64

/* An exact copy, so that a byte too many is seen. */
static int
decompress(struct link_decompressor *d, const uint8_t *data, size_t len,
    size_t raw, const uint8_t **out)
{
	uint8_t *copy = input_copy(data, len);
	unsigned sum = 0;
	size_t i;
	int rc;

	rc = link_decompress(d, copy, len, raw, out);
	CHECK(rc == 0 || rc == -1);
	for (i = 0; rc == 0 && i < raw; i++)
		sum += (*out)[i];
	CHECK(sum != UINT32_MAX);
	free(copy);
	return rc;
}

static void
run_raw(struct link_decompressor *d, struct input *in)
{
	const uint8_t *data, *out;
	size_t len, raw;
	int i, rc, before = 0;

	for (i = 0; i < BLOCKS_MAX && in->left > 0; i++) {
		len = input_number(in, 2);
		raw = input_number(in, 3) % (LINK_BLOCK_MAX + 2);
		data = input_bytes(in, &len);
		rc = decompress(d, data, len, raw, &out);
		CHECK(before == 0 || rc != 0); /* wrong once, wrong for good */
		before = rc;
	}
}

static void
run_harmed(struct link_decompressor *d, struct input *in)
{
	struct link_compressor *c =
	    link_compressor_new((int)(input_number(in, 1) % 19) + 1);
	const uint8_t *data, *out, *small;
	size_t len, small_len, place;
	uint8_t harm, *copy;
	bool honest = true;
	int i, rc;

	CHECK(c != NULL);
	for (i = 0; i < BLOCKS_MAX && in->left > 0; i++) {
		place = input_number(in, 2);
		harm = (uint8_t)input_number(in, 1);
		len = input_number(in, 2);
		data = input_bytes(in, &len);
		if (len == 0)
			break;
		CHECK(link_compress(c, data, len, &small, &small_len) == 0);
		CHECK(small_len <= LINK_ZSTD_BLOCK_MAX);
		copy = input_copy(small, small_len);
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
	struct input in = { data, size };

	CHECK(d != NULL);
	if (input_number(&in, 1) % 2 == 0)
		run_raw(d, &in);
	else
		run_harmed(d, &in);
	link_decompressor_free(d);
}
