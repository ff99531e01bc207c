/*
 * Compacting: chunks that cannot be read yet are moved to just behind the write
 * cursor, so that the free space around them can be written without losing
 * them.
 *
 * A chunk whose last packet goes on in a chunk that is still to come stays
 * where it is while the ring around it is read and reused; sooner or later it
 * is next to be overwritten although almost all of the ring is free.  For a
 * buffer that is drained into a file that would be a needless loss.
 *
 * Chunks that were read are not kept for clones: they would be in the way.
 *
 * All chunks slide towards the write cursor in ring order, over space that is
 * free: no memory is needed, and the order of the ring does not change.
 */
#include <string.h>

#include "transport/buffer/tb_state.h"

static void
set_free(struct trace_buffer *tb, uint64_t off, uint64_t bytes)
{
	if (bytes > 0)
		tb_record_init(tb_record_at(tb, off), TB_FREE, bytes);
}

/*
 * The chunk at offset `from` becomes the newest of the ring.  first: position
 * from which on chunks were moved.
 */
static void
slide(struct trace_buffer *tb, uint64_t from, uint64_t first)
{
	struct tb_record *r = tb_record_at(tb, from);
	struct tb_sequence *s = tb_sequence_of(tb, r);
	uint64_t bytes = tb_record_size(r), gap;
	uint32_t i = tb_queue_search(tb, s, r->id);

	if (bytes > tb->size - tb->wr)
		tb_wrap(tb); /* the rest of the ring is free: r is not in it */
	if (from != tb->wr) {
		gap = from > tb->wr ? from - tb->wr : 0;
		memmove(tb->ring + tb->wr, r, bytes);
		if (gap > 0) {
			set_free(tb, tb->wr + bytes, gap);
		} else {
			set_free(tb, from, bytes);
			set_free(tb, tb->wr + bytes,
			    tb->size - tb->wr - bytes);
		}
		s->queue[(s->head + i) & s->mask] = tb->wr;
		tb->stats.chunks_relocated++;
		tb->stats.bytes_read += bytes;
		tb->stats.bytes_written += bytes;
	}
	/* The first chunk of a stalled sequence moved: note where it is now. */
	if (s->stalled_at < first)
		s->stalled_at = tb_write_position(tb);
	tb->wr += bytes;
	s->end = tb_write_position(tb);
}

/* Restarts all walks: chunks are only behind `first`. */
static void
restart_readers(struct tb_reader *rd, uint64_t first)
{
	rd->at = rd->floor = first;
	rd->run = TB_NO_POSITION;
	if (rd->wake != TB_NO_POSITION)
		rd->wake = first;
}

bool
trace_buffer_compact(struct trace_buffer *tb)
{
	uint64_t at, first, off, bytes;
	struct tb_record *r;

	if (tb->policy != TB_RING || tb->read_only ||
	    tb->held > tb->size / 2)
		return false;
	if (tb->top != tb->size)
		tb_wrap(tb); /* the first lap: its end was never written */
	first = tb_write_position(tb);
	off = tb->wr;
	for (at = first - tb->size; at != first; at += bytes) {
		off = off == tb->size ? 0 : off;
		r = tb_record_at(tb, off);
		bytes = tb_record_size(r);
		tb_let_copy(tb, at + 1);
		if (r->kind == TB_CHUNK) {
			slide(tb, off, first);
		} else {
			if (r->kind == TB_PADDING)
				tb->stats.padding_bytes_cleared += bytes;
			tb_record_init(r, TB_FREE, bytes);
		}
		off += bytes;
	}
	restart_readers(&tb->reader, first);
	return true;
}
