/*
 * Patching a chunk that was committed before its last packet was finished (the
 * specification's TryPatchChunkContents).
 */
#include <string.h>

#include "service/buffer/tb_state.h"

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
    uint32_t chunk_id, const struct tb_patch *patches, size_t n, bool more)
{
	struct tb_sequence *s;
	struct tb_record *c;
	size_t i;

	if (tb->read_only)
		return false;
	s = tb_sequences_find(&tb->seqs, producer, writer);
	c = find_chunk(tb, s, chunk_id);
	if (c == NULL || !all_inside(c, patches, n)) {
		tb->stats.patches_failed += n;
		return false;
	}
	for (i = 0; i < n; i++)
		memcpy(tb_payload(c) + patches[i].offset, patches[i].data,
		    patches[i].len);
	tb->stats.patches_succeeded += n;
	if (!more)
		c->flags &= (uint8_t)~TB_NEEDS_PATCHING;
	tb_wake(tb, s);
	return true;
}

void
trace_buffer_give_up(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t first, uint32_t last)
{
	struct tb_sequence *s;
	struct tb_record *c;
	uint32_t i;

	s = tb_sequences_find(&tb->seqs, producer, writer);
	if (tb->read_only || s == NULL || s->len == 0)
		return;
	for (i = tb_queue_search(tb, s, first); i < s->len; i++) {
		c = tb_chunk_at(tb, s, i);
		if (c->id - first > last - first)
			break;
		c->flags &= (uint8_t)~TB_INCOMPLETE;
	}
	tb_wake(tb, s);
}
