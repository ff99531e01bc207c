#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "relay/outbox/spool_format.h"
#include "tests/fuzz/outbox/outbox.h"

/* Whatever a segment's file holds: every step ends, and within the file. */

struct bytes {
	const uint8_t *data;
	size_t len;
};

static bool
read_head(void *arg, uint64_t at, uint8_t head[SPOOL_HEAD_BYTES])
{
	const struct bytes *b = arg;

	if (at > b->len || b->len - at < SPOOL_HEAD_BYTES)
		return false;
	memcpy(head, b->data + at, SPOOL_HEAD_BYTES);
	return true;
}

/* Heads get their checksum right in places, so that more than it is reached. */
static void
mend(uint8_t *data, size_t len)
{
	struct spool_record r;
	uint8_t head[SPOOL_HEAD_BYTES];
	size_t at;

	for (at = 0; at + SPOOL_HEAD_BYTES <= len; at += SPOOL_ALIGN) {
		if (data[at] != 'm')
			continue;
		memset(&r, 0, sizeof(r));
		memcpy(r.tag, data + at + 1, sizeof(r.tag));
		memcpy(&r.channel, data + at + 20, 4);
		memcpy(&r.len, data + at + 24, 4);
		memcpy(&r.first, data + at + 28, 8);
		memcpy(&r.last, data + at + 36, 8);
		r.crc = (uint32_t)at;
		spool_put_head(head, &r);
		memcpy(data + at, head, sizeof(head));
	}
}

void
fuzz_outbox_spool(const uint8_t *data, size_t size)
{
	struct bytes b;
	struct spool_walk w = { .read = read_head, .arg = &b };
	struct spool_record r;
	enum spool_step step;
	uint64_t where, before = 0;
	uint8_t *copy;

	if ((copy = malloc(size + 1)) == NULL)
		return;
	memcpy(copy, data, size);
	mend(copy, size);
	b.data = copy;
	b.len = size;
	w.end = size;
	while ((step = spool_step(&w, &r, &where)) != SPOOL_STEP_END) {
		if (where < before || where >= size || w.at <= where)
			abort();
		if (step == SPOOL_STEP_RECORD && (r.len > LINK_BLOCK_MAX ||
		    r.len == 0 || where + SPOOL_HEAD_BYTES + r.len > size))
			abort();
		before = where;
	}
	free(copy);
}
