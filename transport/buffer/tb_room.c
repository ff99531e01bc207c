/*
 * Making room where other producers have guaranteed shares (tb_share.h): their
 * guaranteed chunks are moved out of the way, to just behind the write cursor.
 *
 * The cursor passes the records in front of it.  Records that may go make a gap
 * at the cursor; a chunk that may not go slides to the begin of the gap, and
 * the cursor steps behind it: it is the newest of the ring then.  Without a gap
 * it stays where it is.  Both take no memory and leave the ring a gapless row.
 *
 * A write looks at a bounded number of records, and moves a bounded number of
 * bytes: when those are used up the gap stays unused, and the cursor steps over
 * what follows it.  Each chunk is passed once a lap, so that in all it is a
 * look and at most a copy for each.
 */
#include <string.h>

#include "transport/buffer/tb_state.h"

#define LOOKS_MAX 65536u
#define MOVED_MAX (1u << 20)

/* [write cursor, + gap) is free, but no record yet. */
struct room {
	uint64_t gap;
	uint64_t may_move;
	uint32_t looks;
	uint32_t wraps;
	enum tb_kind rest; /* of the gap's end, when it is cut off */
};

static void
leave_gap(struct trace_buffer *tb, struct room *m)
{
	if (m->gap == 0)
		return;
	tb_record_init(tb_record_at(tb, tb->wr), TB_FREE, m->gap);
	tb->wr += m->gap;
	m->gap = 0;
}

/* Keeps the chunk at off, which follows the gap: slides it over the gap. */
static void
keep(struct trace_buffer *tb, struct room *m, uint64_t off)
{
	struct tb_record *r = tb_record_at(tb, off);
	struct tb_sequence *s = tb_sequence_of(tb, r);
	uint64_t bytes = tb_record_size(r);

	if (m->gap > 0 && bytes > m->may_move)
		leave_gap(tb, m);
	if (m->gap > 0) {
		m->may_move -= bytes;
		s->queue[(s->head + tb_queue_search(tb, s, r->id)) & s->mask] =
		    tb->wr;
		memmove(tb->ring + tb->wr, r, bytes);
	}
	tb->wr += bytes;
	s->end = tb_write_position(tb);
	tb->stats.chunks_kept++;
}

/* Goes on at the begin of the ring; what is free before its end is not used. */
static void
wrap(struct trace_buffer *tb, struct room *m)
{
	if (tb->wr < tb->size)
		tb_cut_off(tb, tb->wr, tb->size - tb->wr, TB_PADDING);
	tb->top = tb->size;
	tb->base += tb->size;
	tb->wr = 0;
	tb->stats.write_wrap_count++;
	m->gap = 0;
	m->rest = TB_FREE;
	m->wraps++;
}

/* Whether the front chunk of s is more than its owner may lose to others. */
static bool
is_guaranteed(struct trace_buffer *tb, struct tb_sequence *s,
    const struct tb_share *writer)
{
	struct tb_shares *t = tb->seqs.shares;
	struct tb_share *o;
	uint64_t share, cost;

	if (s->owner == TB_OWNER_NONE ||
	    (o = tb_share_at(t, s->owner)) == writer)
		return false;
	share = tb_shares_bytes_of(t, o);
	/* A chunk with nothing unread but its end is no loss. */
	if (!tb_has_unread(tb_front(tb, s)))
		return false;
	cost = tb_front_cost(tb, s);
	return cost > o->held || o->held - cost < share;
}

/*
 * Removes the front chunk if it has nothing unread.  An incomplete chunk stays
 * when the packet that ended in it is removed; its bytes were counted in the
 * cost of that packet, so it must not count as held any more.
 */
static void
drop_emptied(struct trace_buffer *tb, struct tb_sequence *s)
{
	if (s->len > 0 && !tb_has_unread(tb_front(tb, s)))
		tb_force_front(tb, s);
}

/*
 * Removes a chunk, after the chunks before it in its sequence.  False: one of
 * them is guaranteed, so the target stays.
 */
static bool
force_unless_guaranteed(struct trace_buffer *tb, struct tb_record *target,
    const struct tb_share *writer)
{
	struct tb_sequence *s = tb_sequence_of(tb, target);
	bool begun = false;

	while (target->kind == TB_CHUNK) {
		if (is_guaranteed(tb, s, writer))
			return false;
		if (!begun)
			tb_unstall(tb, s);
		begun = true;
		tb_force_front(tb, s);
		drop_emptied(tb, s);
	}
	return true;
}

/* The record at off joins the gap, unless it stays. */
static void
pass(struct trace_buffer *tb, struct room *m, uint64_t off,
    const struct tb_share *writer)
{
	struct tb_record *r = tb_record_at(tb, off);
	uint64_t bytes = tb_record_size(r);

	/*
	 * In the first lap nothing ahead of the cursor was written yet, so there
	 * is nothing that a clone must copy first.
	 */
	if (tb->base + off >= tb->size)
		tb_let_copy(tb, tb->base + off - tb->size + 1);
	switch ((enum tb_kind)r->kind) {
	case TB_FREE:
	case TB_LEFT:
		m->rest = TB_FREE;
		break;
	case TB_PADDING:
		m->rest = TB_PADDING;
		tb->stats.padding_bytes_cleared += bytes;
		break;
	case TB_CHUNK:
		if (!force_unless_guaranteed(tb, r, writer)) {
			keep(tb, m, off);
			return;
		}
		m->rest = TB_PADDING;
		break;
	}
	m->gap += bytes;
}

bool
tb_make_room(struct trace_buffer *tb, const struct tb_sequence *s,
    uint64_t bytes)
{
	const struct tb_share *writer = s->owner == TB_OWNER_NONE ? NULL :
	    tb_share_at(tb->seqs.shares, s->owner);
	struct room m = { .may_move = MOVED_MAX, .rest = TB_FREE };
	uint64_t off, need = bytes;

	for (;;) {
		off = tb->wr + m.gap;
		if (m.gap >= bytes || (off == tb->top &&
		    bytes <= tb->size - tb->wr))
			break;
		/*
		 * After a whole lap all that may go is one gap, at the end of
		 * the ring: another lap would find no longer one.
		 */
		if (m.looks++ == LOOKS_MAX ||
		    (off == tb->top && m.wraps == 2)) {
			need = 0;
			leave_gap(tb, &m);
			break;
		}
		if (off == tb->top)
			wrap(tb, &m);
		else
			pass(tb, &m, off, writer);
	}
	if (m.gap > need)
		tb_cut_off(tb, tb->wr + need, m.gap - need, m.rest);
	if (tb_write_position(tb) + need > tb->size)
		tb_move_readers(tb, tb_write_position(tb) + need - tb->size);
	return need == bytes;
}
