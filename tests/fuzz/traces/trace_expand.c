/*
 * trace_expand: any packet can be pushed, in any order; what comes out is
 * bounded, and the same the second time.
 *
 * The first byte says what the rest is: a packet as it is, or the content of a
 * compressed one, which is compressed here, as no fuzzer finds checksums.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "client/trace/packet_expand.h"
#include "tests/fuzz/traces/traces.h"
#include "transport/wire/pb_writer.h"

struct seen {
	uint64_t packets;
	uint64_t bytes;
	uint8_t sum; /* every byte was read */
};

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct seen *s = arg;
	size_t i;

	s->packets++;
	s->bytes += len;
	for (i = 0; i < len; i++)
		s->sum = (uint8_t)(s->sum * 31 + data[i]);
}

static enum packet_expand_result
push(struct packet_expand *x, const uint8_t *data, size_t len,
    struct seen *s)
{
	char err[128] = "";
	enum packet_expand_result r;

	*s = (struct seen){ 0 };
	r = packet_expand_packet(x, data, len, err, sizeof(err));
	if ((r == PACKET_EXPAND_BAD) != (err[0] != '\0') ||
	    (r == PACKET_EXPAND_PLAIN && s->packets != 0) ||
	    (r != PACKET_EXPAND_PLAIN) !=
	    packet_expand_is_compressed(data, len) ||
	    s->bytes > PACKET_EXPAND_MAX_BYTES)
		abort();
	return r;
}

/* data compressed, as the packet's only field. */
static void
wrap(struct pb_writer *w, const uint8_t *data, size_t len, int zstd)
{
	size_t cap = ZSTD_compressBound(len) + compressBound(len), n = 0;
	uint8_t *out = malloc(cap);
	uLongf zn = cap;

	if (out == NULL)
		abort();
	if (zstd)
		n = ZSTD_compress(out, cap, data, len, 1);
	else if (compress2(out, &zn, data, len, 1) == Z_OK)
		n = zn;
	pb_put_bytes(w, zstd ? 133 : 50, out, n);
	free(out);
}

void
fuzz_trace_expand(const uint8_t *data, size_t size)
{
	struct seen now, first;
	struct packet_expand *x = packet_expand_new(inner_cb, &now);
	struct pb_writer w;
	enum packet_expand_result r;

	if (x == NULL)
		abort();
	pb_writer_init(&w);
	if (size > 0 && data[0] % 3 == 0)
		pb_put_raw(&w, data + 1, size - 1);
	else if (size > 0)
		wrap(&w, data + 1, size - 1, data[0] % 3 == 1);
	r = push(x, w.data, w.len, &now);
	memcpy(&first, &now, sizeof(first));
	/* What went wrong before leaves nothing behind. */
	if (packet_expand_bytes(x) < PACKET_EXPAND_ALLOWANCE / 2 &&
	    (push(x, w.data, w.len, &now) != r ||
	    memcmp(&first, &now, sizeof(first)) != 0))
		abort();
	pb_writer_done(&w);
	packet_expand_free(x);
}
