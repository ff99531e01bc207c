/*
 * Stalls: a sequence whose next packet waits for a chunk, a patch or the commit
 * of a scraped chunk is left alone until that has come.
 *
 * Passes must not try in vain: a packet of a thousand chunks, or a thousand
 * chunks behind a missing patch, would be walked by each pass.  So each change
 * of a sequence checks whether it can be read on (tb_wake()), and only then
 * sends the next pass back to it.
 */
#include "transport/buffer/tb_state.h"

void
tb_stall(struct trace_buffer *tb, struct tb_sequence *s)
{
	s->stalled_at = tb->reader.at;
	s->wake = 0;
}

/* The position where s stalled; its chunk may have moved, or be gone. */
static uint64_t
position_of(const struct trace_buffer *tb, const struct tb_sequence *s)
{
	uint64_t position = s->stalled_at;

	if (position + tb->size < tb_write_position(tb))
		position = tb_write_position(tb) - tb->size;
	if (position < tb->reader.floor)
		position = tb->reader.floor;
	return position;
}

void
tb_unstall(struct trace_buffer *tb, struct tb_sequence *s)
{
	struct tb_reader *rd = &tb->reader;
	uint64_t position;

	if (LIKELY(s->stalled_at == TB_NO_POSITION))
		return;
	position = position_of(tb, s);
	if (tb_is_stalled(tb, s) && position < rd->at) {
		rd->at = position;
		rd->run = TB_NO_POSITION;
	}
	s->stalled_at = TB_NO_POSITION;
}

/* Whether the front chunk of s can be read on, or erased. */
static bool
can_go_on(const struct trace_buffer *tb, struct tb_sequence *s)
{
	struct tb_record *front;
	struct tb_fragment f;

	if (s->len == 0)
		return false;
	front = tb_front(tb, s);
	if (!tb_has_unread(front))
		return !tb_may_grow(front);
	if (tb_fragment_at(tb_payload(front), front->read, front->used, &f) !=
	    TB_TOKEN_FRAGMENT || f.end != front->used)
		return true;
	if (front->read == 0 &&
	    (front->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0)
		return true;
	if ((front->flags & TB_LAST_CONTINUES_ON_NEXT) != 0)
		return !tb_is_waiting(tb, s);
	return (front->flags & TB_NEEDS_PATCHING) == 0;
}

/* Has the next pass go back to s. */
static void
send_next_pass(struct trace_buffer *tb, struct tb_sequence *s)
{
	uint64_t position = position_of(tb, s);

	/* 0 would mean that no pass tries again. */
	s->wake = tb->reader.pass + 1 != 0 ? tb->reader.pass + 1 : 1;
	if (position < tb->reader.wake)
		tb->reader.wake = position;
}

void
tb_wake(struct trace_buffer *tb, struct tb_sequence *s)
{
	if (LIKELY(s->stalled_at == TB_NO_POSITION))
		return;
	if (!tb_is_stalled(tb, s)) {
		/* The pass was sent back for s, and has not met it yet. */
		s->stalled_at = TB_NO_POSITION;
		return;
	}
	s->wake = 0;
	if (can_go_on(tb, s))
		send_next_pass(tb, s);
}

void
tb_wake_all(struct trace_buffer *tb)
{
	struct tb_sequence *s;
	uint32_t i;

	for (i = 0; i < tb->seqs.n_slots; i++) {
		s = tb_sequence_at(&tb->seqs, i);
		if (s->len > 0 && tb_is_stalled(tb, s))
			send_next_pass(tb, s);
	}
}
