/*
 * Reading back.  Outside, a walk in buffer order; inside, for each chunk met,
 * its sequence is read from its front until that chunk is gone or the sequence
 * stalls.  So packets come in order within a sequence, and about in the order
 * of their commits across sequences.  No state but the walk's position lives
 * from one packet to the next.
 */
#include "transport/buffer/tb_state.h"

#define FETCH_AHEAD 4096u
#define FETCH_STEP  128u /* lines come in pairs */

void
trace_buffer_begin_read(struct trace_buffer *tb)
{
	struct tb_reader *rd = &tb->reader;

	if (rd->wake < rd->at) {
		rd->at = rd->wake;
		rd->run = TB_NO_POSITION;
	}
	rd->wake = TB_NO_POSITION;
	if (++rd->pass == 0)
		rd->pass = 1;
}

bool
trace_buffer_needs_pass(const struct trace_buffer *tb)
{
	return tb->reader.wake != TB_NO_POSITION;
}

/* ---- In sequence order ---- */

/*
 * Packets lie end to end, about in the order of the walk: fetch as many bytes
 * as this packet has, from far enough ahead that they are there in time.  Only
 * the sizes of packets are looked at here, which is too seldom for the
 * processor to see the row by itself.
 */
static inline void
fetch_ahead(const uint8_t *data, size_t len)
{
	const uint8_t *p = data + FETCH_AHEAD, *end = p + len;

	if (UNLIKELY(len > FETCH_AHEAD))
		return;
	for (; p < end; p += FETCH_STEP)
		__builtin_prefetch(p, 0, 2);
}

static bool
hand_out(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front, const struct tb_fragment *f,
    struct tb_packet *out)
{
	tb_open(s, front);
	tb_consume(tb, front, f->end);
	/* Empty packets are dropped in silence: nothing is missing. */
	if (UNLIKELY(f->begin == f->end))
		return false;
	tb_one_slice(tb, s, tb_payload(front) + f->begin, f->end - f->begin,
	    out);
	fetch_ahead(out->slices[0].data, out->size);
	out->loss = tb_take_loss(s);
	if (!tb_has_unread(front) && (front->flags & TB_INCOMPLETE) == 0)
		tb_erase_front(tb, s, false);
	return true;
}

/*
 * Whether waiting for the front chunk of s is in vain, as no data comes any
 * more.  That matters only where chunks are behind it.
 */
static inline bool
waits_in_vain(const struct trace_buffer *tb, const struct tb_sequence *s)
{
	return UNLIKELY(tb->ended) && s->len > 1;
}

/* The front chunk was scraped, and its writer never put in the rest. */
static void
erase_half(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front)
{
	front->flags |= TB_ABORTED;
	tb_erase_front(tb, s, false);
	/* Not overwritten: abandoned. */
	s->flags &= ~(uint32_t)TB_SEQ_TAIL_OPEN;
}

/* Drops what will not be whole, or leaves s alone until it is. */
static void
drop_or_stall(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front)
{
	if (!waits_in_vain(tb, s)) {
		tb_stall(tb, s);
		return;
	}
	tb_open(s, front);
	tb_drop_last(tb, front);
}

/* The last fragment of the front chunk, which is not a whole packet yet. */
static bool
read_last(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front, struct tb_packet *out)
{
	if ((front->flags & TB_LAST_CONTINUES_ON_NEXT) == 0) {
		drop_or_stall(tb, s, front);
		return false;
	}
	switch (tb_reassemble(tb, s, out)) {
	case TB_REASSEMBLED:
		return out->size > 0;
	case TB_WAITS:
		drop_or_stall(tb, s, front);
		break;
	case TB_LOST:
		break;
	}
	return false;
}

/* Takes one step on the front chunk of s.  true: out holds a packet. */
static bool
read_front(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_packet *out)
{
	struct tb_record *front = tb_front(tb, s);
	struct tb_fragment f;

	if (!tb_has_unread(front)) {
		if (!tb_may_grow(front))
			tb_erase_front(tb, s, false);
		else if (waits_in_vain(tb, s))
			erase_half(tb, s, front);
		else
			tb_stall(tb, s);
		return false;
	}
	if (tb_fragment_at(tb_payload(front), front->read, front->used, &f) !=
	    TB_TOKEN_FRAGMENT) {
		/* The chunk was well-formed when it was committed. */
		tb_open(s, front);
		tb_break_front(tb, front);
		return false;
	}
	if (front->read == 0 &&
	    (front->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0) {
		/*
		 * The reader of its beginning would have taken this part as
		 * well.
		 */
		tb_open(s, front);
		s->loss |= TB_LOSS_ORPHAN_CONTINUATION;
		tb_consume(tb, front, f.end);
		return false;
	}
	if (f.end == front->used && (front->flags &
	    (TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING)) != 0)
		return read_last(tb, s, front, out);
	return hand_out(tb, s, front, &f, out);
}

/* ---- In buffer order ---- */

/* Merges the free record r into the run before it.  False: r begins a new run. */
static bool
run_grows(struct tb_record *run, const struct tb_record *r)
{
	uint64_t bytes = tb_record_stride(run) + tb_record_stride(r);

	if (run->kind == TB_LEFT) {
		if (bytes / TB_ALIGN > TB_STRIDE_MAX)
			return false;
		run->read = bytes / TB_ALIGN;
		return true;
	}
	/* Merging it would hide the chunk from clones. */
	if (r->kind == TB_LEFT)
		return false;
	tb_record_init(run, TB_FREE, bytes);
	return true;
}

/* Steps over a record that holds no chunk. */
static void
step_over_space(struct trace_buffer *tb, const struct tb_record *r)
{
	struct tb_reader *rd = &tb->reader;
	uint64_t bytes = tb_record_stride(r);

	if (r->kind == TB_PADDING)
		rd->run = TB_NO_POSITION;
	else if (rd->run == TB_NO_POSITION || r == tb_record_at(tb, 0) ||
	    !run_grows(tb_record_at(tb, tb_offset_of(tb, rd->run)), r))
		rd->run = rd->at;
	rd->at += bytes;
}

/* The next chunk of a sequence that is not stalled, or NULL. */
static struct tb_record *
next_chunk(struct trace_buffer *tb)
{
	struct tb_reader *rd = &tb->reader;
	struct tb_sequence *s;
	struct tb_record *r;

	while (rd->at != tb_write_position(tb)) {
		r = tb_record_at(tb, tb_offset_of(tb, rd->at));
		if (r->kind != TB_CHUNK) {
			step_over_space(tb, r);
			continue;
		}
		s = tb_sequence_of(tb, r);
		if (LIKELY(!tb_is_stalled(tb, s))) {
			s->stalled_at = TB_NO_POSITION;
			return r;
		}
		rd->run = TB_NO_POSITION;
		rd->at += tb_record_size(r);
	}
	return NULL;
}

static bool
read_next(struct trace_buffer *tb, struct tb_packet *out)
{
	struct tb_record *target;

	while ((target = next_chunk(tb)) != NULL)
		if (read_front(tb, tb_sequence_of(tb, target), out))
			return true;
	return false;
}

bool
trace_buffer_read(struct trace_buffer *tb, struct tb_packet *out)
{
	const struct tb_watch *w = tb->watch;

	if (!read_next(tb, out))
		return false;
	if (UNLIKELY(w != NULL) && w->wants(w->arg, out->origin->producer))
		w->leaves(w->arg, out, false);
	return true;
}
