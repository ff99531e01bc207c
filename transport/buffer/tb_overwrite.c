/*
 * Overwriting: a forced read of the chunks that are about to go, in sequence
 * order, without stalls (the specification's DeleteNextChunksFor).
 *
 * Whole packets are skipped a chunk at a time; only fragments that decide about
 * losses and counters are looked at: a first one whose packet has no beginning,
 * a last one that continues.
 */
#include "transport/buffer/tb_state.h"

static void
drop_orphan(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front)
{
	struct tb_fragment f;

	if (tb_fragment_at(tb_payload(front), 0, front->used, &f) !=
	    TB_TOKEN_FRAGMENT) {
		tb_break_front(tb, front);
		return;
	}
	s->loss |= TB_LOSS_ORPHAN_CONTINUATION;
	tb_consume(tb, front, f.end);
}

/* Consumes the packets that end in the front chunk, and shows each. */
static void
show_whole(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front)
{
	const struct tb_watch *w = tb->watch;
	const uint8_t *payload = tb_payload(front);
	struct tb_slice slice;
	struct tb_packet p = { .slices = &slice, .n_slices = 1,
		.origin = &s->origin };
	struct tb_fragment f;

	while (tb_has_unread(front)) {
		if (tb_fragment_at(payload, front->read, front->used, &f) !=
		    TB_TOKEN_FRAGMENT)
			return;
		/* The last one may have no end yet. */
		if (f.end == front->used && (front->flags &
		    (TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING)) != 0)
			return;
		tb_consume(tb, front, f.end);
		slice.data = payload + f.begin;
		slice.len = p.size = f.end - f.begin;
		if (p.size > 0)
			w->leaves(w->arg, &p, true);
	}
}

/* The packet that begins at the end of the front chunk of s. */
static enum tb_reassembly
force_continued(struct trace_buffer *tb, struct tb_sequence *s, bool watched)
{
	const struct tb_watch *w = tb->watch;
	struct tb_packet p = { .size = 0 };
	enum tb_reassembly r;

	if (!watched)
		return tb_reassemble_forced(tb, s, NULL);
	r = tb_reassemble_forced(tb, s, &p);
	if (r == TB_REASSEMBLED && p.size > 0)
		w->leaves(w->arg, &p, true);
	if (r != TB_WAITS || tb_is_waiting(tb, s))
		return r;
	/* The packet is whole: memory was lacking. */
	w->leaves(w->arg, NULL, true);
	return tb_reassemble_forced(tb, s, NULL);
}

/* Removes the front chunk of s, which has unread data. */
static void
force_unread(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_record *front)
{
	bool watched = tb_is_watched(tb, s);

	tb_open(s, front);
	if (front->read == 0 &&
	    (front->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0)
		drop_orphan(tb, s, front);
	if (watched)
		show_whole(tb, s, front);
	if (!tb_has_unread(front) ||
	    (front->flags & TB_LAST_CONTINUES_ON_NEXT) == 0) {
		tb_erase_front(tb, s, true);
		return;
	}
	if (force_continued(tb, s, watched) == TB_WAITS)
		tb_erase_front(tb, s, true);
}

void
tb_force_front(struct trace_buffer *tb, struct tb_sequence *s)
{
	struct tb_record *front = tb_front(tb, s);

	if (tb_has_unread(front)) {
		force_unread(tb, s, front);
		s->loss |= TB_LOSS_OVERWRITE;
	} else {
		tb_erase_front(tb, s, false);
	}
}

static void
force_chunk(struct trace_buffer *tb, struct tb_record *target)
{
	struct tb_sequence *s = tb_sequence_of(tb, target);

	/* The cause of the stall goes with the chunk. */
	tb_unstall(tb, s);
	while (target->kind == TB_CHUNK)
		tb_force_front(tb, s);
}

void
tb_move_readers(struct trace_buffer *tb, uint64_t oldest)
{
	struct tb_reader *rd = &tb->reader;

	if (rd->at < oldest)
		rd->at = oldest;
	if (rd->wake < oldest)
		rd->wake = oldest;
	/*
	 * At `oldest` itself a record may just have been cut off a larger one
	 * that the run was inside: then it does not end at `at` any more.
	 */
	if (rd->run <= oldest)
		rd->run = TB_NO_POSITION;
}

void
tb_cut_off(struct trace_buffer *tb, uint64_t off, uint64_t bytes,
    enum tb_kind kind)
{
	tb_record_init(tb_record_at(tb, off), kind, bytes);
	if (kind == TB_PADDING)
		tb->stats.padding_bytes_written += bytes;
}

/*
 * Records that a write overwrites are cold: the first record's header was
 * fetched by the write before it; that of the one after is worth a fetch before
 * the source is stepped through.
 */
void
tb_fetch_records(const struct trace_buffer *tb)
{
	uint64_t off = tb->wr;
	int i;

	for (i = 0; i < 2 && off < tb->top; i++)
		off += tb_record_size(tb_record_at(tb, off));
	__builtin_prefetch(tb->ring + off);
}

void
tb_clear_ahead(struct trace_buffer *tb, uint64_t bytes)
{
	uint64_t end = tb->wr + bytes, off = tb->wr;
	enum tb_kind rest = TB_FREE;
	struct tb_record *r;

	if (tb_write_position(tb) + bytes > tb->size)
		tb_let_copy(tb, tb_write_position(tb) + bytes - tb->size);
	while (off < end && off < tb->top) {
		r = tb_record_at(tb, off);
		off += tb_record_size(r);
		rest = r->kind == TB_FREE || r->kind == TB_LEFT ? TB_FREE :
		    TB_PADDING;
		if (r->kind == TB_CHUNK)
			force_chunk(tb, r);
		else if (r->kind == TB_PADDING)
			tb->stats.padding_bytes_cleared += tb_record_size(r);
	}
	/* The next write will look at that record first. */
	__builtin_prefetch(tb->ring + off, 1);
	if (off > end)
		tb_cut_off(tb, end, off - end, rest);
	if (tb_write_position(tb) + bytes > tb->size)
		tb_move_readers(tb, tb_write_position(tb) + bytes - tb->size);
}

void
tb_wrap(struct trace_buffer *tb)
{
	uint64_t rest = tb->size - tb->wr;

	if (rest > 0) {
		tb_clear_ahead(tb, rest);
		tb_cut_off(tb, tb->wr, rest, TB_PADDING);
	}
	tb->top = tb->size;
	tb->base += tb->size;
	tb->wr = 0;
	tb->stats.write_wrap_count++;
}
