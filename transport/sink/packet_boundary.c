#include "transport/sink/packet_boundary.h"

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"

size_t
packet_boundary(const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end = data + len, *q;
	uint64_t n;

	while (p < end && *p == PB_TAG(Trace_packet, PB_BYTES)) {
		q = pb_varint(p + 1, end, &n);
		if (q == NULL || n > (uint64_t)(end - q))
			break;
		p = q + n;
	}
	return (size_t)(p - data);
}
