/*
 * Patching a chunk that was committed before its last packet was finished (the
 * specification's TryPatchChunkContents), and giving up on patches that do not
 * come.
 */
#include <string.h>

#include "transport/buffer/tb_state.h"

/* Most chunks at the end of a sequence that tb_give_up() looks at. */
#define GIVE_UP_MAX 64u

static struct tb_record *
find_chunk(const struct trace_buffer *tb, const struct tb_sequence *s,
    uint32_t id)
{
	struct tb_record *c;
	uint32_t i;

	if (s == NULL || (i = tb_queue_search(tb, s, id)) == s->len)
		return NULL;
	c = tb_chunk_at(tb, s, i);
	return c->id == id ? c : NULL;
}

static bool
all_inside(const struct tb_record *c, const struct tb_patch *patches, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (patches[i].offset > c->used ||
		    patches[i].len > c->used - patches[i].offset)
			return false;
	return true;
}

bool
trace_buffer_patch(struct trace_buffer *tb, uint64_t producer, uint32_t writer,
    uint32_t chunk_id, const struct tb_patches *patches)
{
	struct tb_sequence *s;
	const struct tb_patch *p;
	struct tb_record *c;
	size_t i;

	if (tb->read_only)
		return false;
	s = tb_sequences_find(&tb->seqs, producer, writer);
	c = find_chunk(tb, s, chunk_id);
	if (c == NULL || !all_inside(c, patches->all, patches->n)) {
		tb->stats.patches_failed += patches->n;
		return false;
	}
	for (i = 0; i < patches->n; i++) {
		p = &patches->all[i];
		if (p->len > 0)
			memcpy(tb_payload(c) + p->offset, p->data, p->len);
	}
	tb->stats.patches_succeeded += patches->n;
	if (!patches->more)
		c->flags &= (uint8_t)~TB_NEEDS_PATCHING;
	tb_wake(tb, s);
	return true;
}

void
tb_give_up(struct trace_buffer *tb, struct tb_sequence *s)
{
	struct tb_record *c;
	uint32_t i;

	/* No chunk but a writer's last is scraped before it is complete. */
	for (i = s->len; i > 0 && i + GIVE_UP_MAX > s->len; i--) {
		c = tb_chunk_at(tb, s, i - 1);
		if ((c->flags & TB_INCOMPLETE) != 0)
			c->flags |= TB_GIVEN_UP;
	}
	tb_wake(tb, s);
}

void
trace_buffer_give_up(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer)
{
	struct tb_sequence *s;

	s = tb_sequences_find(&tb->seqs, producer, writer);
	if (!tb->read_only && s != NULL)
		tb_give_up(tb, s);
}

void
trace_buffer_writer_gone(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer)
{
	struct tb_sequence *s;

	s = tb_sequences_find(&tb->seqs, producer, writer);
	if (s != NULL)
		s->flags |= TB_SEQ_ENDED;
}

void
tb_drop_last(struct trace_buffer *tb, struct tb_record *c)
{
	bool unread = tb_has_unread(c);
	struct tb_fragment f = { 0, 0 };
	uint32_t at = 0;

	c->flags &= (uint8_t)~(TB_NEEDS_PATCHING | TB_LAST_CONTINUES_ON_NEXT);
	while (f.end < c->used) {
		at = f.end;
		if (tb_fragment_at(tb_payload(c), at, c->used, &f) !=
		    TB_TOKEN_FRAGMENT)
			break;
	}
	/* The sequence stalled before that. */
	c->used = at > c->read ? at : c->read;
	c->flags |= TB_ABORTED;
	/* A snapshot's packet was not ready yet: its producer lost nothing. */
	if (!tb->read_only)
		tb->stats.trace_writer_packet_loss++;
	if (unread && !tb_has_unread(c))
		tb->unread -= tb_record_size(c);
}

void
tb_give_up_patches(struct trace_buffer *tb, struct tb_sequence *s)
{
	struct tb_record *c;
	bool any = false;
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		c = tb_chunk_at(tb, s, i);
		if ((c->flags & TB_NEEDS_PATCHING) == 0)
			continue;
		tb_drop_last(tb, c);
		any = true;
	}
	if (any)
		tb_wake(tb, s);
}

void
trace_buffer_producer_gone(struct trace_buffer *tb, uint64_t producer)
{
	struct tb_sequence *s;
	uint32_t i;

	for (i = 0; i < tb->seqs.n_slots && !tb->read_only; i++) {
		s = tb_sequence_at(&tb->seqs, i);
		if (s->origin.producer == producer)
			tb_give_up_patches(tb, s);
	}
}

void
trace_buffer_no_more(struct trace_buffer *tb)
{
	if (tb->ended || tb->read_only)
		return;
	tb->ended = true;
	tb_wake_all(tb);
}
