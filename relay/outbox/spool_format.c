#include "relay/outbox/spool_format.h"

#include <string.h>
#include <zlib.h>

#define MAGIC  0x32505354u /* "TSP2"; "TSP1" had CRC-32C */
#define CLOSES 1u

const uint8_t spool_dead[SPOOL_DEAD_BYTES] = { 'D', 'E', 'A', 'D' };

uint32_t
spool_crc(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

/* The head as it stands in the file. */
struct head {
	uint32_t magic;
	uint8_t tag[LINK_ID_BYTES];
	uint32_t channel;
	uint32_t len;
	uint64_t first;
	uint64_t last;
	uint64_t time_ms;
	uint32_t flags;
	uint32_t chunks;
	uint32_t packets;
	uint32_t bytes;
	uint32_t crc;
	uint8_t zeros[SPOOL_HEAD_BYTES - 76];
	uint32_t own_crc; /* of all before it */
} __attribute__((__packed__));

_Static_assert(sizeof(struct head) == SPOOL_HEAD_BYTES, "a head has no gaps");

void
spool_put_head(uint8_t out[SPOOL_HEAD_BYTES], const struct spool_record *r)
{
	struct head h = {
		.magic = MAGIC,
		.channel = r->channel,
		.len = r->len,
		.first = r->first,
		.last = r->last,
		.time_ms = r->time_ms,
		.flags = r->closes ? CLOSES : 0,
		.chunks = r->chunks,
		.packets = r->packets,
		.bytes = r->bytes,
		.crc = r->crc,
	};

	memcpy(h.tag, r->tag, LINK_ID_BYTES);
	h.own_crc = spool_crc(&h, offsetof(struct head, own_crc));
	memcpy(out, &h, sizeof(h));
}

static bool
is_zero(const uint8_t *p, size_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

/* The length of a dead record's block, which is still there. */
static uint32_t
dead_len(const uint8_t in[SPOOL_HEAD_BYTES])
{
	static const uint32_t magic = MAGIC;
	uint8_t alive[SPOOL_HEAD_BYTES];
	struct spool_record r;

	if (memcmp(in, spool_dead, SPOOL_DEAD_BYTES) != 0)
		return 0;
	memcpy(alive, in, sizeof(alive));
	memcpy(alive, &magic, sizeof(magic));
	return spool_read_head(alive, &r) == SPOOL_RECORD ? r.len : 0;
}

enum spool_head
spool_read_head(const uint8_t in[SPOOL_HEAD_BYTES], struct spool_record *r)
{
	struct head h;

	memcpy(&h, in, sizeof(h));
	if (is_zero(in, SPOOL_HEAD_BYTES) ||
	    memcmp(in, spool_dead, SPOOL_DEAD_BYTES) == 0)
		return SPOOL_NOTHING;
	if (h.magic != MAGIC ||
	    h.own_crc != spool_crc(in, offsetof(struct head, own_crc)))
		return SPOOL_DAMAGED;
	*r = (struct spool_record){
		.channel = h.channel,
		.len = h.len,
		.first = h.first,
		.last = h.last,
		.time_ms = h.time_ms,
		.closes = (h.flags & CLOSES) != 0,
		.chunks = h.chunks,
		.packets = h.packets,
		.bytes = h.bytes,
		.crc = h.crc,
	};
	memcpy(r->tag, h.tag, LINK_ID_BYTES);
	if (r->len == 0 || r->len > LINK_BLOCK_MAX || r->first == 0 ||
	    r->last < r->first || r->last == UINT64_MAX)
		return SPOOL_DAMAGED;
	return SPOOL_RECORD;
}

enum spool_step
spool_step(struct spool_walk *w, struct spool_record *r, uint64_t *where)
{
	uint8_t head[SPOOL_HEAD_BYTES];
	bool was;

	while (w->at < w->end) {
		*where = w->at;
		was = w->damaged;
		w->damaged = false;
		if (w->end - w->at < SPOOL_HEAD_BYTES && w->hole) {
			w->at = w->end; /* the end of a punched-out record */
			return SPOOL_STEP_END;
		}
		w->hole = false;
		if (w->end - w->at < SPOOL_HEAD_BYTES ||
		    !w->read(w->arg, w->at, head)) {
			w->at = w->end;
			return SPOOL_STEP_TORN;
		}
		switch (spool_read_head(head, r)) {
		case SPOOL_RECORD:
			if (SPOOL_HEAD_BYTES + r->len > w->end - w->at) {
				w->at = w->end;
				return SPOOL_STEP_TORN;
			}
			w->at += spool_size(r->len);
			return SPOOL_STEP_RECORD;
		case SPOOL_NOTHING:
			w->at += spool_size(dead_len(head));
			w->hole = true;
			break;
		case SPOOL_DAMAGED:
			w->at += SPOOL_ALIGN;
			w->damaged = true;
			if (!was)
				return SPOOL_STEP_DAMAGE;
			break;
		}
	}
	return SPOOL_STEP_END;
}
