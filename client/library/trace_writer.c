#include "client/library/trace_writer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/library/commit_batch.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

/*
 * Bytes of the size before a fragment that is continued in a next chunk: always
 * 4, so that SHM_SIZE_DROP_PACKET can overwrite it where no chunk is free.
 */
#define FRAGMENT_SIZE_BYTES 4u
/* Fewer payload bytes at the end of a chunk are left unused. */
#define FRAGMENT_MIN 16u

/* TracePacket fields, encoded: two bytes of tag, one or two of value. */
#define EXTRA_MAX 8u
static const uint8_t first_on_sequence[] = { 0xb8, 0x05, 1 }; /* 87 */
/* 42: DATA_LOSS_PRESENT | DATA_LOSS_SMB_FULL = 257 */
static const uint8_t previous_dropped[] = { 0xd0, 0x02, 0x81, 0x02 };

/* Backoff of a stalling writer between two attempts. */
#define STALL_FIRST_NS (50 * 1000L)
#define STALL_LAST_NS  (5 * 1000 * 1000L)

struct trace_writer {
	struct commit_batch *batch; /* borrowed; NULL: detached */
	uint16_t id;
	uint32_t buffer;
	enum trace_writer_policy policy;
	uint32_t next_chunk_id;

	bool has_slot; /* the four below are of the chunk being written */
	struct shm_slot slot;
	size_t used;
	unsigned fragments;

	bool started; /* a packet was written */
	bool lossy;   /* the last packet was dropped */
	bool stalled_in_vain; /* and no chunk was acquired since */
	uint64_t dropped;
};

/* Unwritten rest of a packet: the caller's bytes, then appended fields. */
struct rest {
	const uint8_t *data;
	size_t len;
	const uint8_t *extra;
	size_t extra_len;
};

struct trace_writer *
trace_writer_new(struct commit_batch *b, uint16_t id, uint32_t buffer,
    enum trace_writer_policy policy)
{
	struct trace_writer *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->batch = b;
	w->id = id;
	w->buffer = buffer;
	w->policy = policy;
	return w;
}

void
trace_writer_free(struct trace_writer *w)
{
	if (w == NULL)
		return;
	trace_writer_flush(w);
	free(w);
}

void
trace_writer_detach(struct trace_writer *w)
{
	w->batch = NULL;
	w->has_slot = false;
}

uint16_t
trace_writer_id(const struct trace_writer *w)
{
	return w->id;
}

uint64_t
trace_writer_dropped(const struct trace_writer *w)
{
	return w->dropped;
}

void
trace_writer_flush(struct trace_writer *w)
{
	if (!w->has_slot)
		return;
	w->has_slot = false;
	commit_batch_add(w->batch, &w->slot, w->used, w->buffer);
}

static bool
try_acquire(struct trace_writer *w, uint8_t flags, struct shm_slot *out)
{
	if (!shm_acquire(commit_batch_shm(w->batch), SHM_DIV1, w->id,
	    w->next_chunk_id, flags, out))
		return false;
	w->next_chunk_id++;
	w->stalled_in_vain = false;
	return true;
}

/*
 * Waits until the service has freed a chunk or, under emulation, the socket has
 * taken one.  A stuck service delays the thread once, not for each packet.
 */
static bool
stall(struct trace_writer *w, uint8_t flags, struct shm_slot *out)
{
	struct timespec ts = { 0, STALL_FIRST_NS };
	uint64_t until = loop_now_ms() + TRACE_WRITER_STALL_MS;

	if (w->stalled_in_vain)
		return false;
	do {
		nanosleep(&ts, NULL);
		commit_batch_push(w->batch);
		if (try_acquire(w, flags, out))
			return true;
		if (ts.tv_nsec < STALL_LAST_NS)
			ts.tv_nsec *= 2;
	} while (loop_now_ms() < until);
	w->stalled_in_vain = true;
	return false;
}

static bool
acquire(struct trace_writer *w, uint8_t flags, struct shm_slot *out)
{
	if (try_acquire(w, flags, out))
		return true;
	/* Queued chunks become free once the service or socket takes them. */
	commit_batch_send(w->batch);
	if (try_acquire(w, flags, out))
		return true;
	return w->policy == TRACE_WRITER_STALL && stall(w, flags, out);
}

static void
use_slot(struct trace_writer *w, const struct shm_slot *slot)
{
	w->slot = *slot;
	w->has_slot = true;
	w->used = 0;
	w->fragments = 0;
}

static void
put_size(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n | 0x80);
	p[1] = (uint8_t)(n >> 7 | 0x80);
	p[2] = (uint8_t)(n >> 14 | 0x80);
	p[3] = (uint8_t)(n >> 21 & 0x7f);
}

/* Copies the next n bytes of the packet into the chunk, as a fragment. */
static void
put_fragment(struct trace_writer *w, struct rest *r, size_t n)
{
	uint8_t *p = w->slot.payload + w->used;
	size_t part = n < r->len ? n : r->len;

	if (part > 0) {
		memcpy(p, r->data, part);
		r->data += part;
		r->len -= part;
	}
	memcpy(p + part, r->extra, n - part);
	r->extra += n - part;
	r->extra_len -= n - part;
	w->used += n;
	w->fragments++;
	shm_add_fragment(commit_batch_shm(w->batch), &w->slot);
}

/* Whether a packet of n bytes should begin in the current chunk. */
static bool
can_begin(const struct trace_writer *w, size_t n)
{
	size_t room;

	if (!w->has_slot || w->fragments == SHM_FRAGMENTS_MAX)
		return false;
	room = w->slot.len - w->used;
	if (pb_varint_size(n) + n <= room)
		return true;
	/* Wasting under a quarter of a chunk is cheaper than fragmenting. */
	if (FRAGMENT_SIZE_BYTES + n <= w->slot.len && room < w->slot.len / 4)
		return false;
	return room >= FRAGMENT_SIZE_BYTES + FRAGMENT_MIN;
}

/*
 * Fills the chunk with a part of the packet and goes on to the next chunk.
 * false: no chunk is free; the part is marked with SHM_SIZE_DROP_PACKET, and
 * the chunk, with the whole packets before it, is queued.
 */
static bool
fragment(struct trace_writer *w, struct rest *r)
{
	uint8_t *size = w->slot.payload + w->used;
	size_t n = w->slot.len - w->used - FRAGMENT_SIZE_BYTES;
	struct shm_slot next;

	put_size(size, (uint32_t)n);
	w->used += FRAGMENT_SIZE_BYTES;
	put_fragment(w, r, n);
	if (!acquire(w, SHM_FIRST_CONTINUES_FROM_PREV, &next)) {
		put_size(size, SHM_SIZE_DROP_PACKET);
		trace_writer_flush(w);
		return false;
	}
	shm_set_flag(commit_batch_shm(w->batch), &w->slot,
	    SHM_LAST_CONTINUES_ON_NEXT);
	trace_writer_flush(w);
	use_slot(w, &next);
	return true;
}

static bool
write_rest(struct trace_writer *w, struct rest *r)
{
	struct shm_slot slot;
	size_t n;

	n = r->len + r->extra_len;
	if (!can_begin(w, n)) {
		trace_writer_flush(w);
		if (!acquire(w, 0, &slot))
			return false;
		use_slot(w, &slot);
	}
	while (pb_varint_size(n) + n > w->slot.len - w->used) {
		if (!fragment(w, r))
			return false;
		n = r->len + r->extra_len;
	}
	w->used += pb_encode_varint(w->slot.payload + w->used, n);
	put_fragment(w, r, n);
	return true;
}

bool
trace_writer_write(struct trace_writer *w, const void *packet, size_t len)
{
	uint8_t extra[EXTRA_MAX];
	struct rest r = { packet, len, extra, 0 };

	if (!w->started) {
		memcpy(extra, first_on_sequence, sizeof(first_on_sequence));
		r.extra_len += sizeof(first_on_sequence);
	}
	if (w->lossy) {
		memcpy(extra + r.extra_len, previous_dropped,
		    sizeof(previous_dropped));
		r.extra_len += sizeof(previous_dropped);
	}
	if (w->batch == NULL || len > TRACE_WRITER_PACKET_MAX ||
	    !write_rest(w, &r)) {
		w->lossy = true;
		w->dropped++;
		return false;
	}
	w->started = true;
	w->lossy = false;
	return true;
}
