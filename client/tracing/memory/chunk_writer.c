#include "client/tracing/memory/chunk_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tracing/memory/own_memory.h"
#include "transport/wire/pb_writer.h"

/*
 * Bytes of the size before a fragment that a next chunk continues: always 4, so
 * that SHM_SIZE_DROP_PACKET can replace it where no chunk is free.
 */
#define SIZE_BYTES 4u
/* Fewer bytes of a packet at the end of a chunk are not worth a fragment. */
#define FRAGMENT_MIN 16u

/* TracePacket fields, encoded: 87 = true; 42 = PRESENT | SMB_FULL = 257. */
static const uint8_t first_on_sequence[] = { 0xb8, 0x05, 1 };
static const uint8_t previous_dropped[] = { 0xd0, 0x02, 0x81, 0x02 };

/* Rest of a packet: the caller's bytes, then the marks. */
struct rest {
	const uint8_t *data;
	size_t len;
	uint8_t marks[sizeof(first_on_sequence) + sizeof(previous_dropped)];
	const uint8_t *mark;
	size_t mark_len;
};

int
chunk_writer_init(struct chunk_writer *w, struct chunk_memory *m,
    uint32_t buffer, enum tributary_full_policy policy)
{
	memset(w, 0, sizeof(*w));
	if ((w->id = chunk_memory_begin_writer(m, buffer)) == 0)
		return -1;
	w->memory = chunk_memory_ref(m);
	w->buffer = buffer;
	w->policy = (uint8_t)policy;
	return 0;
}

void
chunk_writer_done(struct chunk_writer *w)
{
	chunk_writer_flush(w);
	chunk_memory_end_writer(w->memory, w->id);
	chunk_memory_unref(w->memory);
	w->memory = NULL;
}

static void
hand_over(struct chunk_writer *w)
{
	chunk_memory_commit(w->memory, &w->slot,
	    (size_t)(w->at - w->slot.payload), w->buffer);
	w->at = w->end = NULL;
	w->fragments = 0;
}

/*
 * The count is one more than there are packets, until the chunk is complete: a
 * service that reads it then, as the program was killed in between, finds an
 * empty fragment there, which is no packet.
 */
void
chunk_writer_flush(struct chunk_writer *w)
{
	if (w->at == NULL)
		return;
	*w->at = 0;
	shm_set_packets(&w->slot, (uint16_t)(w->fragments + 1), w->flags);
	chunk_memory_complete(w->memory, &w->slot);
	shm_set_packets(&w->slot, w->fragments, w->flags);
	hand_over(w);
}

/* The chunk's last fragment is a part of a packet. */
static void
flush_part(struct chunk_writer *w)
{
	shm_set_packets(&w->slot, w->fragments, w->flags);
	chunk_memory_complete(w->memory, &w->slot);
	hand_over(w);
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool
may_wait(const struct chunk_writer *w)
{
	return w->policy != TRIBUTARY_FULL_DROP && !w->stalled_in_vain;
}

/*
 * The writer holds no chunk.  A service that is stuck delays a stalling writer
 * once, not every packet.
 */
static bool
wait_for_chunk(struct chunk_writer *w, uint8_t flags, struct shm_slot *out)
{
	enum chunk_acquire got = CHUNK_NONE_FREE;
	uint64_t until = now_ms() + TRIBUTARY_STALL_MS;
	bool for_ever = w->policy == TRIBUTARY_FULL_WAIT;
	int saved = errno;
	long wait_ns = 0;

	__atomic_store_n(&w->waits, 1, __ATOMIC_RELEASE);
	while (got == CHUNK_NONE_FREE && (for_ever || now_ms() < until)) {
		chunk_memory_wait(w->memory, &wait_ns);
		got = chunk_memory_acquire(w->memory, w->id, w->next_chunk,
		    flags, out);
	}
	__atomic_store_n(&w->waits, 0, __ATOMIC_RELEASE);
	if (got == CHUNK_NONE_FREE && w->policy == TRIBUTARY_FULL_ABORT)
		abort();
	w->stalled_in_vain = got != CHUNK_ACQUIRED;
	errno = saved;
	return got == CHUNK_ACQUIRED;
}

/* Without waiting. */
static enum chunk_acquire
try(struct chunk_writer *w, uint8_t flags, struct shm_slot *out)
{
	enum chunk_acquire got = chunk_memory_acquire(w->memory, w->id,
	    w->next_chunk, flags, out);

	if (got == CHUNK_ACQUIRED)
		w->stalled_in_vain = false;
	return got;
}

static void
use(struct chunk_writer *w, const struct shm_slot *slot, uint8_t flags)
{
	w->slot = *slot;
	w->at = slot->payload;
	w->end = slot->payload + slot->len - 1;
	w->fragments = 0;
	w->flags = flags;
	w->next_chunk++;
}

/* A chunk, the writer has none.  false: there is none to be had. */
static bool
acquire(struct chunk_writer *w, uint8_t flags)
{
	enum chunk_acquire got;
	struct shm_slot slot;

	got = try(w, flags, &slot);
	if (got == CHUNK_CLOSED || (got == CHUNK_NONE_FREE && (!may_wait(w) ||
	    !wait_for_chunk(w, flags, &slot))))
		return false;
	use(w, &slot, flags);
	return true;
}

static void
put_size(uint8_t *p, uint32_t n)
{
	p[0] = (uint8_t)(n | 0x80);
	p[1] = (uint8_t)(n >> 7 | 0x80);
	p[2] = (uint8_t)(n >> 14 | 0x80);
	p[3] = (uint8_t)(n >> 21 & 0x7f);
}

/* The next n bytes of the packet, as a fragment whose size is written. */
static void
put_bytes(struct chunk_writer *w, struct rest *r, size_t n)
{
	size_t part = n < r->len ? n : r->len;

	memcpy(w->at, r->data, part);
	memcpy(w->at + part, r->mark, n - part);
	r->data += part;
	r->len -= part;
	r->mark += n - part;
	r->mark_len -= n - part;
	w->at += n;
	w->fragments++;
}

static size_t
left(const struct rest *r)
{
	return r->len + r->mark_len;
}

/* Whether a packet of n bytes is to begin in the chunk at hand. */
static bool
can_begin(const struct chunk_writer *w, size_t n)
{
	size_t room = (size_t)(w->end - w->at);

	if (w->at == NULL || w->fragments >= SHM_FRAGMENTS_MAX - 1)
		return false;
	if (pb_varint_size(n) + n <= room)
		return true;
	/* Under a quarter of a chunk unused is cheaper than two fragments. */
	if (SIZE_BYTES + n <= w->slot.len && room < w->slot.len / 4)
		return false;
	return room >= SIZE_BYTES + FRAGMENT_MIN;
}

/*
 * Fills the chunk with a part of the packet, and goes on to the next.  false: no
 * chunk is free.  Where the writer does not wait the part says so; who waits
 * hands over first, and says so in the next chunk (mend()).
 */
static bool
cut(struct chunk_writer *w, struct rest *r)
{
	uint8_t *size = w->at;
	size_t n = (size_t)(w->end - w->at) - SIZE_BYTES;
	enum chunk_acquire got;
	struct shm_slot next;

	put_size(size, (uint32_t)n);
	w->at += SIZE_BYTES;
	put_bytes(w, r, n);
	got = try(w, SHM_FIRST_CONTINUES_FROM_PREV, &next);
	if (got == CHUNK_NONE_FREE && may_wait(w)) {
		w->flags |= SHM_LAST_CONTINUES_ON_NEXT;
		flush_part(w);
		w->torn = !acquire(w, SHM_FIRST_CONTINUES_FROM_PREV);
		return !w->torn;
	}
	if (got != CHUNK_ACQUIRED) {
		put_size(size, SHM_SIZE_DROP_PACKET);
		flush_part(w);
		return false;
	}
	w->flags |= SHM_LAST_CONTINUES_ON_NEXT;
	flush_part(w);
	use(w, &next, SHM_FIRST_CONTINUES_FROM_PREV);
	return true;
}

/* Gives up the packet whose beginning was handed over. */
static bool
mend(struct chunk_writer *w)
{
	if (!acquire(w, SHM_FIRST_CONTINUES_FROM_PREV))
		return false;
	put_size(w->at, SHM_SIZE_DROP_PACKET);
	w->at += SIZE_BYTES;
	w->fragments = 1;
	flush_part(w);
	w->torn = false;
	return true;
}

static bool
put_rest(struct chunk_writer *w, struct rest *r)
{
	if (w->torn && !mend(w))
		return false;
	if (!can_begin(w, left(r))) {
		chunk_writer_flush(w);
		if (!acquire(w, 0))
			return false;
	}
	while (pb_varint_size(left(r)) + left(r) > (size_t)(w->end - w->at))
		if (!cut(w, r))
			return false;
	w->at += pb_encode_varint(w->at, left(r));
	put_bytes(w, r, left(r));
	shm_set_packets(&w->slot, (uint16_t)(w->fragments + 1), w->flags);
	return true;
}

static void
add_mark(struct rest *r, const uint8_t *mark, size_t len)
{
	memcpy(r->marks + r->mark_len, mark, len);
	r->mark_len += len;
}

void
chunk_writer_count_drop(struct chunk_writer *w, uint64_t n)
{
	w->plain = false;
	w->lossy = true;
	__atomic_store_n(&w->dropped, w->dropped + n, __ATOMIC_RELAXED);
}

static bool
put(struct chunk_writer *w, const uint8_t *packet, size_t len)
{
	struct rest r = { .data = packet, .len = len };
	int cancel;
	bool ok;

	r.mark = r.marks;
	if (!w->started)
		add_mark(&r, first_on_sequence, sizeof(first_on_sequence));
	if (w->lossy)
		add_mark(&r, previous_dropped, sizeof(previous_dropped));
	if (len > CHUNK_WRITER_PACKET_MAX || !own_try_enter())
		return false;
	/* Waiting and waking are where a thread could be cancelled. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ok = put_rest(w, &r);
	(void)pthread_setcancelstate(cancel, &cancel);
	own_leave();
	return ok;
}

bool
chunk_writer_put(struct chunk_writer *w, const uint8_t *packet, size_t len)
{
	if (!put(w, packet, len)) {
		chunk_writer_count_drop(w, 1);
		return false;
	}
	w->started = w->plain = true;
	w->lossy = false;
	return true;
}
