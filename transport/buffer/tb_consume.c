#include "transport/buffer/tb_state.h"

uint32_t
tb_queue_search(const struct trace_buffer *tb, const struct tb_sequence *s,
    uint32_t id)
{
	uint32_t order = tb_sequence_order(s, id), lo = 0, hi = s->len, mid;

	if (s->len == 0 || order > tb_sequence_order(s, s->newest))
		return s->len;
	/* Without gaps in the ids, the distance from the newest is the place. */
	mid = s->newest - id;
	if (mid < s->len && tb_chunk_at(tb, s, s->len - 1 - mid)->id == id)
		return s->len - 1 - mid;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (tb_sequence_order(s, tb_chunk_at(tb, s, mid)->id) < order)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
take_lost_before(struct tb_sequence *s, struct tb_record *front)
{
	front->flags &= (uint8_t)~TB_LOST_BEFORE;
	s->loss |= s->lost_before;
	if (--s->n_lost_before == 0)
		s->lost_before = 0;
}

void
tb_open_first(struct tb_sequence *s, struct tb_record *front)
{
	if (UNLIKELY(front->id != s->last + 1)) {
		if ((s->flags & TB_SEQ_CONSUMED) != 0)
			s->loss |= TB_LOSS_READ_GAP;
		s->last = front->id - 1;
	}
	/* The writer's last fragment of the chunk before never came. */
	if (UNLIKELY((front->flags & TB_LOST_BEFORE) != 0))
		take_lost_before(s, front);
	else if (UNLIKELY((s->flags & TB_SEQ_TAIL_OPEN) != 0))
		s->loss |= TB_LOSS_OVERWRITE;
	s->flags = (s->flags | TB_SEQ_CONSUMED) & ~(uint32_t)TB_SEQ_TAIL_OPEN;
}

void
tb_break_front(struct trace_buffer *tb, struct tb_record *front)
{
	tb->stats.abi_violations++;
	front->flags |= TB_CORRUPT;
	front->flags &= (uint8_t)~(TB_LAST_CONTINUES_ON_NEXT |
	    TB_NEEDS_PATCHING);
	tb_consume(tb, front, front->used);
}

static void
count_gone(struct tb_stats *st, uint64_t bytes, bool lost)
{
	if (lost) {
		st->chunks_overwritten++;
		st->bytes_overwritten += bytes;
	} else {
		st->chunks_read++;
		st->bytes_read += bytes;
	}
}

void
tb_erase_front(struct trace_buffer *tb, struct tb_sequence *s, bool lost)
{
	struct tb_record *c = tb_front(tb, s);

	tb_open(s, c);
	if (tb_has_unread(c))
		tb_consume(tb, c, c->used);
	if (UNLIKELY((c->flags & (TB_CORRUPT | TB_ABORTED)) != 0)) {
		if ((c->flags & TB_CORRUPT) != 0)
			s->loss |= TB_LOSS_CHUNK_CORRUPTED;
		if ((c->flags & TB_ABORTED) != 0)
			s->loss |= TB_LOSS_WRITER_ABORT;
	}
	if (UNLIKELY((c->flags & TB_INCOMPLETE) != 0)) {
		s->flags |= TB_SEQ_TAIL_OPEN;
		s->tail = c->used;
	}
	s->last = c->id;
	tb->held -= tb_record_size(c);
	if (tb->seqs.shares != NULL)
		tb_shares_sub(tb->seqs.shares, s->owner, tb_record_size(c));
	count_gone(&tb->stats, tb_record_size(c), lost);
	tb_record_leave(c);
	tb_queue_pop(&tb->seqs, s);
}
