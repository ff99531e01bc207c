/*
 * Statistics: the first byte says where the later reading ends, and the earlier
 * one begins.
 */
#include <stdlib.h>

#include "tests/fuzz/segments/segments.h"
#include "transport/packet/stats_span.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

void
fuzz_stats(const uint8_t *data, size_t size)
{
	struct pb_writer span, sum;
	struct stats_reading later, earlier;

	if (size == 0)
		return;
	later.data = data + 1;
	later.len = (size - 1) * data[0] / 255;
	earlier.data = later.data + later.len;
	earlier.len = size - 1 - later.len;
	pb_writer_init(&span);
	pb_writer_init(&sum);
	stats_span_subtract(&span, later, earlier);
	stats_span_add(&sum, earlier,
	    (struct stats_reading){ span.data, span.len });
	if (!span.failed && !pb_well_formed(span.data, span.len))
		abort();
	if (!sum.failed && !pb_well_formed(sum.data, sum.len))
		abort();
	pb_writer_done(&span);
	pb_writer_done(&sum);
}
