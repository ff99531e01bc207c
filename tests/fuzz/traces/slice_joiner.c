/*
 * slice_joiner: the packets that come out are the slices that went in, strung
 * together.
 */
#include <stdint.h>
#include <stdlib.h>

#include "client/tracing/consumer/slice_joiner.h"
#include "tests/fuzz/traces/traces.h"
#include "transport/wire/pb_reader.h"

static volatile uint8_t touched; /* every byte can be read */

static bool
add_cb(void *arg, const uint8_t *data, size_t len)
{
	uint64_t *bytes = arg;
	size_t i;

	for (i = 0; i < len; i++)
		touched ^= data[i];
	*bytes += len;
	return true;
}

/* Bytes of all data in the slices of well-formed messages. */
static uint64_t
bytes_in(const uint8_t *data, size_t size, bool *bad)
{
	struct pb_reader r, rs;
	struct pb_field slice, f;
	uint64_t bytes = 0, here;

	pb_init(&r, data, size);
	while (pb_next(&r, &slice)) {
		if (slice.number != 2 || slice.wire != PB_BYTES)
			continue;
		here = 0;
		pb_init(&rs, slice.data, slice.len);
		while (pb_next(&rs, &f)) {
			if (f.number == 1 && f.wire == PB_BYTES)
				here = f.len; /* the last one counts */
		}
		*bad |= rs.bad;
		bytes += here;
	}
	*bad |= r.bad;
	return bytes;
}

/* The input is cut in two messages at the place that its first byte says. */
void
fuzz_slice_joiner(const uint8_t *data, size_t size)
{
	struct slice_joiner j = { .error = NULL };
	uint64_t out = 0, in;
	bool bad = false;
	size_t cut;

	if (size == 0)
		return;
	cut = data[0] < size ? data[0] : size - 1;
	data++;
	size--;
	in = bytes_in(data, cut, &bad) + bytes_in(data + cut, size - cut, &bad);
	if (!slice_joiner_feed(&j, data, cut, add_cb, &out) ||
	    !slice_joiner_feed(&j, data + cut, size - cut, add_cb, &out))
		abort();
	if (out + j.partial.len > in)
		abort();
	if (!bad && out + j.partial.len != in)
		abort();
	if (bad && slice_joiner_error(&j) == NULL)
		abort();
	slice_joiner_done(&j);
}
