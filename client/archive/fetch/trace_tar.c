#include "client/archive/fetch/trace_tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/archive/fetch/trace_out.h"

#define BLOCK 512u

static const uint8_t zeros[2 * BLOCK];

/* POSIX.1-1988 (ustar): a header of text fields, with a sum of its bytes. */
static void
make_header(uint8_t out[BLOCK], const char *name, uint64_t size)
{
	char *h = (char *)out;
	unsigned sum = 0;
	size_t i;

	memset(out, 0, BLOCK);
	snprintf(h, 100, "%s", name);
	memcpy(h + 100, "0000644", 8);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	snprintf(h + 124, 12, "%011" PRIo64, size & TRACE_TAR_MAX);
	memcpy(h + 136, "00000000000", 12);
	memset(h + 148, ' ', 8);
	h[156] = '0';
	memcpy(h + 257, "ustar\00000", 8);
	for (i = 0; i < BLOCK; i++)
		sum += out[i];
	snprintf(h + 148, 8, "%06o", sum & 0777777);
	h[155] = ' ';
}

uint64_t
trace_tar_begin(struct trace_out *o, const char *name)
{
	uint64_t begin = trace_out_bytes(o);
	uint8_t header[BLOCK];

	make_header(header, name, 0);
	trace_out_put(o, header, sizeof(header));
	return begin;
}

int
trace_tar_end(struct trace_out *o, const char *name, uint64_t begin)
{
	uint64_t size = trace_out_bytes(o) - begin - BLOCK;
	uint8_t header[BLOCK];

	if (size > TRACE_TAR_MAX)
		return -1;
	if (size % BLOCK != 0)
		trace_out_put(o, zeros, BLOCK - (size_t)(size % BLOCK));
	make_header(header, name, size);
	return trace_out_patch(o, begin, header, sizeof(header));
}

void
trace_tar_finish(struct trace_out *o)
{
	trace_out_put(o, zeros, sizeof(zeros));
}
