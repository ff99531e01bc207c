/*
 * packet_boundary: what it keeps are whole Trace.packet fields, as many as
 * there are.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/messages/messages.h"
#include "transport/sink/packet_boundary.h"
#include "transport/wire/pb_reader.h"

void
fuzz_packet_boundary(const uint8_t *data, size_t size)
{
	struct pb_reader r;
	struct pb_field f;
	size_t want = 0;

	pb_init(&r, data, size);
	/* A tag is written in one byte: the walk takes no other spelling */
	while (pb_next(&r, &f) && f.start[0] == 0x0a)
		want = (size_t)(r.p - data);
	if (packet_boundary(data, size) != want)
		abort();
	if (packet_boundary(data, want) != want)
		abort();
}
