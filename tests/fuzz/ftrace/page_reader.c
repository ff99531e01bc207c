/*
 * Any bytes as a page, of a kernel of 64 and of 32 bits: records follow each
 * other within what the page says that it has, and are read to its end, or up
 * to a fault.
 */
#include <stdlib.h>

#include "client/ftrace/page/page_reader.h"
#include "tests/fuzz/ftrace/ftrace.h"

static void
check_page(const uint8_t *data, size_t size, const struct page_layout *layout)
{
	struct page_reader r;
	struct page_record record;
	const uint8_t *at = data + layout->data_offset;

	if (!page_reader_init(&r, data, size, layout)) {
		if (r.fault == PAGE_SOUND || page_reader_next(&r, &record))
			abort();
		return;
	}
	if (r.used > size - layout->data_offset || (!r.lost && r.n_lost != 0))
		abort();
	while (page_reader_next(&r, &record)) {
		if (r.fault != PAGE_SOUND || record.data < at + 4 ||
		    record.len < 2 || record.len > r.used)
			abort();
		at = record.data + record.len;
		if (at > data + layout->data_offset + r.used)
			abort();
	}
	if (page_reader_next(&r, &record))
		abort();
}

void
fuzz_page_reader(const uint8_t *data, size_t size)
{
	static const struct page_layout wide = { 8, 8, 16, 4096 };
	static const struct page_layout narrow = { 8, 4, 12, 4096 };

	check_page(data, size, &wide);
	check_page(data, size, &narrow);
}
