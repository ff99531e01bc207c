#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/buffer/tb_state.h"

#define RING_MAX (UINT64_C(1) << 44)
/*
 * Larger rings ask for huge pages: a walk through the ring then misses the
 * memory mapping's cache 512 times less.  Smaller ones would map more than they
 * use.
 */
#define HUGE_PAGES_FROM (UINT64_C(16) << 20)

uint8_t *
tb_ring_map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Only a hint: failure is ignored. */
	if (size >= HUGE_PAGES_FROM)
		(void)madvise(p, size, MADV_HUGEPAGE);
	return p;
}

void
tb_ring_unmap(uint8_t *ring, uint64_t size)
{
	if (ring != NULL)
		munmap(ring, size);
}

struct trace_buffer *
trace_buffer_new(uint64_t size, enum tb_policy policy)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct trace_buffer *tb;

	if (size > RING_MAX)
		return NULL;
	if ((tb = calloc(1, sizeof(*tb))) == NULL)
		return NULL;
	tb->size = size == 0 ? page : (size + page - 1) / page * page;
	tb->policy = policy;
	tb->reader.wake = tb->reader.run = TB_NO_POSITION;
	tb->reader.pass = 1;
	tb->stats.buffer_size = tb->size;
	if (!tb_sequences_init(&tb->seqs) || !tb_reserve_slices(tb, 1) ||
	    (tb->ring = tb_ring_map(tb->size)) == NULL) {
		trace_buffer_free(tb);
		return NULL;
	}
	return tb;
}

void
trace_buffer_free(struct trace_buffer *tb)
{
	if (tb == NULL)
		return;
	tb_stop_copying(tb);
	tb_ring_unmap(tb->ring, tb->size);
	tb_sequences_done(&tb->seqs);
	free(tb->slices);
	free(tb);
}

bool
trace_buffer_guarantee(struct trace_buffer *tb, uint64_t share,
    uint32_t percent)
{
	struct tb_sequences *t = &tb->seqs;

	if (t->shares == NULL && percent == 0)
		return true;
	if (t->shares == NULL)
		t->shares = tb_shares_new(tb->size, tb->policy == TB_DISCARD);
	return t->shares != NULL && tb_shares_set(t->shares, share, percent);
}

void
trace_buffer_watch(struct trace_buffer *tb, const struct tb_watch *watch)
{
	if (!tb->read_only)
		tb->watch = watch;
}

void
trace_buffer_retire(struct trace_buffer *tb, uint64_t producer)
{
	if (tb->seqs.shares != NULL)
		tb_shares_retire(tb->seqs.shares, producer);
}

uint64_t
trace_buffer_unread(const struct trace_buffer *tb)
{
	return tb->unread;
}

/*
 * Whether overwriting a record loses something.  A chunk that was read so far
 * still forces what comes before it in its sequence.
 */
static bool
is_needed(const struct trace_buffer *tb, const struct tb_record *r)
{
	return r->kind == TB_CHUNK && (tb_has_unread(r) ||
	    r != tb_front(tb, tb_sequence_of(tb, r)));
}

/* Whether overwriting the records from off to end loses something. */
static bool
loses_between(const struct trace_buffer *tb, uint64_t off, uint64_t end)
{
	const struct tb_record *r;

	for (; off < end && off < tb->top; off += tb_record_size(r)) {
		r = tb_record_at(tb, off);
		if (is_needed(tb, r))
			return true;
	}
	return false;
}

/* Bytes from off to what is needed, or to the end; at most `most`. */
static uint64_t
room_from(const struct trace_buffer *tb, uint64_t off, uint64_t most)
{
	uint64_t begin = off;
	const struct tb_record *r;

	for (; off < tb->top && off - begin < most; off += tb_record_size(r)) {
		r = tb_record_at(tb, off);
		if (is_needed(tb, r))
			return off - begin;
	}
	/* Behind what was ever written there is only room. */
	if (off >= tb->top)
		off = tb->size;
	return off - begin < most ? off - begin : most;
}

uint64_t
trace_buffer_room(const struct trace_buffer *tb, uint64_t most)
{
	uint64_t room = room_from(tb, tb->wr, most);

	if (room == tb->size - tb->wr && room < most)
		room += room_from(tb, 0, most - room);
	return room < tb->size ? room : tb->size;
}

bool
trace_buffer_would_lose(const struct trace_buffer *tb, size_t len)
{
	uint64_t bytes, to_end = tb->size - tb->wr;

	if (len > TB_CHUNK_MAX || (bytes = tb_outer_size(len)) > tb->size ||
	    tb->stopped)
		return true;
	if (bytes <= to_end)
		return tb->policy == TB_RING &&
		    loses_between(tb, tb->wr, tb->wr + bytes);
	return tb->policy == TB_DISCARD ||
	    loses_between(tb, tb->wr, tb->size) ||
	    loses_between(tb, 0, bytes);
}

bool
trace_buffer_may_add(const struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t chunk_id)
{
	const struct tb_sequence *s;
	const struct tb_record *r;
	uint32_t place;

	if ((s = tb_sequences_find(&tb->seqs, producer, writer)) == NULL)
		return false;
	place = tb_queue_search(tb, s, chunk_id);
	if (place < s->len) {
		r = tb_chunk_at(tb, s, place);
		return r->id == chunk_id && (r->flags &
		    (TB_INCOMPLETE | TB_NEEDS_PATCHING)) != 0;
	}
	return chunk_id == s->last && (s->flags & TB_SEQ_TAIL_OPEN) != 0;
}

const struct tb_stats *
trace_buffer_stats(const struct trace_buffer *tb)
{
	return &tb->stats;
}

size_t
trace_buffer_sequences(const struct trace_buffer *tb)
{
	return tb->seqs.count;
}

/* Bytes still to be written: a clone has none to copy if it took its ring. */
static uint64_t
to_come(const struct trace_buffer *tb)
{
	const struct tb_copying *c = &tb->copying;

	if (!tb->read_only)
		return tb->size - tb->top;
	return c->source == NULL || c->source == tb ? 0 : c->end - c->at;
}

struct tb_memory
trace_buffer_memory(const struct trace_buffer *tb)
{
	return (struct tb_memory){ tb->ring, tb->size, tb->top, to_come(tb) };
}
