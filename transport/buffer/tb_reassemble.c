#include <stdlib.h>

#include "transport/buffer/tb_state.h"

/* Headers to fetch while a chain is followed. */
#define CHUNKS_AHEAD 12u

bool
tb_reserve_slices(struct trace_buffer *tb, size_t n)
{
	struct tb_slice *slices;
	size_t cap = tb->slices_cap;

	if (n <= cap)
		return true;
	while (cap < n)
		cap = cap == 0 ? 16 : cap * 2;
	if ((slices = realloc(tb->slices, cap * sizeof(*slices))) == NULL)
		return false;
	tb->slices = slices;
	tb->slices_cap = cap;
	return true;
}

/* ---- Looking ahead ---- */

enum link {
	LINK_CONTINUES, /* the packet goes on in the chunk after this one */
	LINK_ENDS,
	LINK_WAITS,
	LINK_BROKEN, /* why is set */
};

/* The part of chunk c, which follows `before`, in the packet. */
static enum link
look_at(struct tb_record *before, struct tb_record *c, uint32_t *why)
{
	struct tb_fragment f;

	if (c->id != before->id + 1) {
		*why = TB_LOSS_REASSEMBLY_GAP;
		return LINK_BROKEN;
	}
	if ((c->flags & TB_NEEDS_PATCHING) != 0)
		return LINK_WAITS;
	if (c->used == 0) {
		if (tb_may_grow(c))
			return LINK_WAITS;
		/* Erasing this chunk will say why its fragment is missing. */
		*why = 0;
		return (c->flags & (TB_CORRUPT | TB_ABORTED |
		    TB_GIVEN_UP)) != 0 ?
		    LINK_BROKEN : LINK_CONTINUES;
	}
	*why = TB_LOSS_REASSEMBLY_BROKEN_CHAIN;
	if ((c->flags & TB_FIRST_CONTINUES_FROM_PREV) == 0 || c->read > 0 ||
	    tb_fragment_at(tb_payload(c), 0, c->used, &f) != TB_TOKEN_FRAGMENT)
		return LINK_BROKEN;
	if (f.end == c->used && (c->flags & TB_LAST_CONTINUES_ON_NEXT) != 0)
		return LINK_CONTINUES;
	return LINK_ENDS;
}

/*
 * Finds how far the packet goes that begins in the front chunk: *n chunks
 * continue it, the front one included, before the one that ends or breaks it.
 * Begins where the last look had to stop, so that a long packet that comes in
 * slowly is not walked again and again.
 */
static enum link
look_ahead(const struct trace_buffer *tb, struct tb_sequence *s, uint32_t *n,
    uint32_t *why)
{
	struct tb_record *front = tb_front(tb, s), *before, *c;
	enum link link = LINK_CONTINUES;
	uint64_t bytes = tb_record_size(front);
	uint32_t i = 1;

	if ((front->flags & TB_NEEDS_PATCHING) != 0)
		return LINK_WAITS;
	if (s->chain_len > 1 && s->chain_id == front->id) {
		i = s->chain_len;
		bytes = s->chain_bytes;
	}
	before = tb_chunk_at(tb, s, i - 1);
	for (; i < s->len; i++) {
		if (i + CHUNKS_AHEAD < s->len)
			__builtin_prefetch(tb_chunk_at(tb, s,
			    i + CHUNKS_AHEAD));
		c = tb_chunk_at(tb, s, i);
		if ((link = look_at(before, c, why)) != LINK_CONTINUES)
			break;
		before = c;
		bytes += tb_record_size(c);
	}
	if (link == LINK_CONTINUES)
		link = LINK_WAITS;
	s->chain_id = front->id;
	s->chain_len = i;
	s->chain_bytes = bytes;
	*n = i;
	return link;
}

uint64_t
tb_front_cost(const struct trace_buffer *tb, struct tb_sequence *s)
{
	const struct tb_record *front = tb_front(tb, s);
	uint32_t n, why;

	if ((front->flags & TB_LAST_CONTINUES_ON_NEXT) == 0)
		return tb_record_size(front);
	switch (look_ahead(tb, s, &n, &why)) {
	case LINK_ENDS:
		/* The last one goes, too, unless there is more in it. */
		return s->chain_bytes + tb_record_size(tb_chunk_at(tb, s, n));
	case LINK_BROKEN:
		return s->chain_bytes;
	case LINK_CONTINUES:
	case LINK_WAITS:
		break;
	}
	return tb_record_size(front);
}

bool
tb_is_waiting(const struct trace_buffer *tb, struct tb_sequence *s)
{
	uint32_t n, why;

	return look_ahead(tb, s, &n, &why) == LINK_WAITS;
}

/* ---- Taking ---- */

static void
add_slice(struct trace_buffer *tb, struct tb_record *c,
    const struct tb_fragment *f, struct tb_packet *out)
{
	size_t len = f->end - f->begin;

	if (len == 0)
		return;
	tb->slices[out->n_slices].data = tb_payload(c) + f->begin;
	tb->slices[out->n_slices].len = len;
	out->n_slices++;
	out->size += len;
}

/* The fragment of the packet in chunk c: its first unread one. */
static void
take_fragment(struct trace_buffer *tb, struct tb_record *c,
    struct tb_packet *out)
{
	struct tb_fragment f;

	if (c->used == 0 || tb_fragment_at(tb_payload(c), c->read, c->used,
	    &f) != TB_TOKEN_FRAGMENT)
		return;
	if (out != NULL)
		add_slice(tb, c, &f, out);
	tb_consume(tb, c, f.end);
}

/* The n chunks that hold nothing but the packet from their read mark on. */
static void
take_chunks(struct trace_buffer *tb, struct tb_sequence *s, uint32_t n,
    bool forced, struct tb_packet *out)
{
	struct tb_record *c;
	bool lost;

	while (n-- > 0) {
		c = tb_front(tb, s);
		if (s->len > CHUNKS_AHEAD)
			__builtin_prefetch(tb_chunk_at(tb, s, CHUNKS_AHEAD));
		tb_open(s, c);
		lost = forced && tb_has_unread(c);
		if (out != NULL)
			take_fragment(tb, c, out);
		tb_erase_front(tb, s, lost);
	}
}

/* The fragment that ends the packet; the chunk's others stay. */
static void
take_end(struct trace_buffer *tb, struct tb_sequence *s, bool forced,
    struct tb_packet *out)
{
	struct tb_record *c = tb_front(tb, s);

	tb_open(s, c);
	take_fragment(tb, c, out);
	if (!forced && out->size > 0)
		out->loss = tb_take_loss(s);
	if (!tb_has_unread(c) && (c->flags & TB_INCOMPLETE) == 0)
		tb_erase_front(tb, s, forced);
}

static enum tb_reassembly
reassemble(struct trace_buffer *tb, struct tb_sequence *s, bool forced,
    struct tb_packet *out)
{
	uint32_t n = 0, why = 0;
	enum link link = look_ahead(tb, s, &n, &why);

	if (link == LINK_ENDS && out != NULL &&
	    !tb_reserve_slices(tb, (size_t)n + 1))
		return TB_WAITS;
	switch (link) {
	case LINK_ENDS:
		tb->stats.readaheads_succeeded++;
		if (out != NULL) {
			out->slices = tb->slices;
			out->n_slices = out->size = 0;
			out->origin = &s->origin;
			out->loss = 0;
		}
		take_chunks(tb, s, n, forced, out);
		take_end(tb, s, forced, out);
		return TB_REASSEMBLED;
	case LINK_BROKEN:
		tb->stats.readaheads_failed++;
		take_chunks(tb, s, n, forced, NULL);
		s->loss |= why;
		return TB_LOST;
	case LINK_CONTINUES:
	case LINK_WAITS:
		break;
	}
	tb->stats.readaheads_failed++;
	return TB_WAITS;
}

enum tb_reassembly
tb_reassemble(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_packet *out)
{
	return reassemble(tb, s, false, out);
}

enum tb_reassembly
tb_reassemble_forced(struct trace_buffer *tb, struct tb_sequence *s,
    struct tb_packet *out)
{
	return reassemble(tb, s, true, out);
}
