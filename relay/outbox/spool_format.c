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

static uint8_t *
put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *
put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static const uint8_t *
get32(const uint8_t *p, uint32_t *v)
{
	memcpy(v, p, sizeof(*v));
	return p + sizeof(*v);
}

static const uint8_t *
get64(const uint8_t *p, uint64_t *v)
{
	memcpy(v, p, sizeof(*v));
	return p + sizeof(*v);
}

void
spool_put_head(uint8_t out[SPOOL_HEAD_BYTES], const struct spool_record *r)
{
	uint8_t *p = out;

	memset(out, 0, SPOOL_HEAD_BYTES);
	p = put32(p, MAGIC);
	memcpy(p, r->tag, LINK_ID_BYTES);
	p += LINK_ID_BYTES;
	p = put32(p, r->channel);
	p = put32(p, r->len);
	p = put64(p, r->first);
	p = put64(p, r->last);
	p = put64(p, r->time_ms);
	p = put32(p, r->closes ? CLOSES : 0);
	p = put32(p, r->chunks);
	p = put32(p, r->packets);
	p = put32(p, r->bytes);
	put32(p, r->crc);
	put32(out + SPOOL_HEAD_BYTES - 4, spool_crc(out, SPOOL_HEAD_BYTES - 4));
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
	uint8_t alive[SPOOL_HEAD_BYTES];
	struct spool_record r;

	if (memcmp(in, spool_dead, SPOOL_DEAD_BYTES) != 0)
		return 0;
	memcpy(alive, in, sizeof(alive));
	put32(alive, MAGIC);
	return spool_read_head(alive, &r) == SPOOL_RECORD ? r.len : 0;
}

enum spool_head
spool_read_head(const uint8_t in[SPOOL_HEAD_BYTES], struct spool_record *r)
{
	const uint8_t *p = in;
	uint32_t magic, flags, crc;

	if (is_zero(in, SPOOL_HEAD_BYTES) ||
	    memcmp(in, spool_dead, SPOOL_DEAD_BYTES) == 0)
		return SPOOL_NOTHING;
	get32(in + SPOOL_HEAD_BYTES - 4, &crc);
	p = get32(p, &magic);
	if (magic != MAGIC || crc != spool_crc(in, SPOOL_HEAD_BYTES - 4))
		return SPOOL_DAMAGED;
	memcpy(r->tag, p, LINK_ID_BYTES);
	p += LINK_ID_BYTES;
	p = get32(p, &r->channel);
	p = get32(p, &r->len);
	p = get64(p, &r->first);
	p = get64(p, &r->last);
	p = get64(p, &r->time_ms);
	p = get32(p, &flags);
	p = get32(p, &r->chunks);
	p = get32(p, &r->packets);
	p = get32(p, &r->bytes);
	get32(p, &r->crc);
	r->closes = (flags & CLOSES) != 0;
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
