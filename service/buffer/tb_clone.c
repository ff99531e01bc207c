/*
 * Copies for snapshots.  Everything in the ring refers by offset and index, so
 * a copy is the ring's chunks at the same places, and the sequences.  Nothing
 * can change in a copy but by reading: no stall in it is ever woken.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "service/buffer/tb_state.h"

/*
 * The walk begins with the oldest record: free space is not copied, and with it
 * go the places inside it that a stall may still refer to.
 */
static void
reset_reader(struct trace_buffer *copy)
{
	struct tb_reader *rd = &copy->reader;

	rd->at = copy->top == copy->size ?
	    tb_write_position(copy) - copy->size : 0;
	rd->wake = rd->run = TB_NO_POSITION;
}

/* A copy of all but the ring.  NULL: no memory. */
static struct trace_buffer *
copy_state(const struct trace_buffer *tb)
{
	struct trace_buffer *copy;

	if ((copy = malloc(sizeof(*copy))) == NULL)
		return NULL;
	*copy = *tb;
	copy->ring = NULL;
	copy->slices = NULL;
	copy->slices_cap = 0;
	copy->overwrite_fn = NULL;
	copy->read_only = true;
	reset_reader(copy);
	copy->stats.bytes_read = 0;
	copy->stats.chunks_read = 0;
	copy->stats.readaheads_succeeded = 0;
	copy->stats.readaheads_failed = 0;
	if (!tb_sequences_copy(&copy->seqs, &tb->seqs)) {
		free(copy);
		return NULL;
	}
	if (!tb_reserve_slices(copy, 1)) {
		trace_buffer_free(copy);
		return NULL;
	}
	return copy;
}

/*
 * Copies the records from off to end.  Of those without a chunk only the begin:
 * what was read stays unmapped in the copy.
 */
static void
copy_records(struct trace_buffer *to, const struct trace_buffer *from,
    uint64_t off, uint64_t end)
{
	uint64_t begin = off, size;
	const struct tb_record *r;

	for (; off < end; off += size) {
		r = tb_record_at(from, off);
		size = tb_record_size(r);
		if (r->kind == TB_CHUNK)
			continue;
		memcpy(to->ring + begin, from->ring + begin,
		    off - begin + TB_ALIGN);
		begin = off + size;
	}
	memcpy(to->ring + begin, from->ring + begin, end - begin);
}

struct trace_buffer *
trace_buffer_clone(const struct trace_buffer *tb)
{
	struct trace_buffer *copy;

	if ((copy = copy_state(tb)) == NULL)
		return NULL;
	if ((copy->ring = tb_ring_map(tb->size)) == NULL) {
		trace_buffer_free(copy);
		return NULL;
	}
	copy_records(copy, tb, 0, tb->wr);
	copy_records(copy, tb, tb->wr, tb->top);
	return copy;
}

/* As if all chunks of s had been read. */
static void
forget_chunks(struct trace_buffer *tb, struct tb_sequence *s)
{
	const struct tb_record *last;

	s->loss = 0;
	s->n_lost_before = s->lost_before = 0;
	s->stalled_at = TB_NO_POSITION;
	if (s->len == 0)
		return;
	last = tb_chunk_at(tb, s, s->len - 1);
	s->last = last->id;
	s->flags = (s->flags | TB_SEQ_CONSUMED) & ~(uint32_t)TB_SEQ_TAIL_OPEN;
	if ((last->flags & TB_INCOMPLETE) != 0) {
		s->flags |= TB_SEQ_TAIL_OPEN;
		s->tail = last->used;
	}
	tb_queue_clear(&tb->seqs, s);
}

static void
forget_all(struct trace_buffer *tb)
{
	uint32_t i;

	/* A free slot has no chunks. */
	for (i = 0; i < tb->seqs.n_slots; i++)
		forget_chunks(tb, tb_sequence_at(&tb->seqs, i));
	tb->base = tb->wr = tb->top = 0;
	tb->reader.at = tb->reader.floor = 0;
	tb->reader.wake = tb->reader.run = TB_NO_POSITION;
	tb->unread = tb->held = 0;
	if (tb->seqs.shares != NULL)
		tb_shares_clear(tb->seqs.shares);
	tb->stopped = false;
}

struct trace_buffer *
trace_buffer_take(struct trace_buffer *tb)
{
	struct trace_buffer *taken;
	uint8_t *fresh;

	if ((fresh = tb_ring_map(tb->size)) == NULL)
		return NULL;
	if ((taken = copy_state(tb)) == NULL) {
		tb_ring_unmap(fresh, tb->size);
		return NULL;
	}
	/* Forgetting looks at the chunks, then they change hands. */
	forget_all(tb);
	taken->ring = tb->ring;
	tb->ring = fresh;
	return taken;
}

void
trace_buffer_clear(struct trace_buffer *tb)
{
	uint64_t top = tb->top;

	forget_all(tb);
	/* An unused buffer costs nothing. */
	if (top > 0)
		madvise(tb->ring, top, MADV_DONTNEED);
}
