/*
 * packet_check: the verdict does not depend on how a packet is cut into
 * slices, and is that of a slow check written another way.
 *
 * Input: a byte that says how many cuts, that many bytes of distances between
 * them, the packet.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "service/packet/packet_time.h"
#include "tests/fuzz/messages/messages.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_check.h"
#include "transport/wire/pb_reader.h"

#define MAX_CUTS 15u

static bool
is_trusted(uint32_t field)
{
	switch (field) {
	case 3: case 10: case 33: case 35: case 36: case 50: case 69: case 79:
	case 98: case 124: case 125: case 133:
		return true;
	default:
		return false;
	}
}

static enum packet_verdict
slow_check(const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	size_t tag;

	if (len == 0)
		return PACKET_EMPTY;
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		for (tag = 1; f.start[tag - 1] >= 0x80; tag++)
			;
		if (tag > 5 || is_trusted(f.number))
			return PACKET_INVALID;
	}
	return r.bad ? PACKET_INVALID : PACKET_OK;
}

void
fuzz_packet_check(const uint8_t *data, size_t size)
{
	struct tb_slice s[MAX_CUTS + 1], *bytes;
	const uint8_t *cuts;
	enum packet_verdict want;
	size_t n_cuts, n = 0, i, at = 0;
	bool other = false;

	if (size == 0)
		return;
	n_cuts = data[0] % (MAX_CUTS + 1);
	if (size < 1 + n_cuts)
		return;
	cuts = data + 1;
	data += 1 + n_cuts;
	size -= 1 + n_cuts;
	want = slow_check(data, size);

	s[0] = (struct tb_slice){ data, size };
	if (packet_check(s, 1, size) != want)
		abort();
	for (i = 0; i < n_cuts; i++) {
		s[n].data = data + at;
		s[n].len = cuts[i] < size - at ? cuts[i] : size - at;
		at += s[n++].len;
	}
	s[n++] = (struct tb_slice){ data + at, size - at };
	if (packet_check(s, n, size) != want)
		abort();

	if ((bytes = malloc((size + 1) * sizeof(*bytes))) == NULL)
		return;
	for (i = 0; i < size; i++)
		bytes[i] = (struct tb_slice){ data + i, 1 };
	if (packet_check(bytes, size, size) != want)
		abort();
	free(bytes);
	/* For the sanitizers: it reads nested messages, too. */
	(void)packet_time_of(data, size, &other);
	if (want == PACKET_INVALID && packet_time_of(data, size, &other).clock
	    != 0 && !pb_well_formed(data, size))
		abort();
}
