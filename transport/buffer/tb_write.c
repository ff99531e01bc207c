/*
 * Writing chunks (the specification's CopyChunkUntrusted): tokenize the source,
 * find the sequence, then store at the write cursor; or, for a chunk that is
 * there already from a scrape, extend it.
 */
#include <string.h>

#include "transport/buffer/tb_state.h"

/*
 * A commit may be this many chunks from both ends of its sequence; further out
 * of order than any shared memory can be scraped, it is not stored, since
 * making room for it would cost more than it is worth.
 */
#define TB_REORDER_MAX (1u << 17)

/*
 * Sequences that a ring can hold whose writer's number was used before.  A
 * writer can end and begin again with each chunk, so their number would be that
 * of the smallest chunks that fit, with 192 bytes of state each.
 */
#define TB_REPLACING_MAX 16384u

/* Bytes at the write cursor to fetch beforehand; more do not fit a core. */
#define FETCH_TARGET 2048u

/* A commit: the chunk, and the result of tokenizing it. */
struct commit {
	const struct tb_chunk *chunk;
	uint32_t used;     /* bytes of fragments to keep */
	uint32_t capacity; /* bytes to reserve */
	uint32_t read;     /* of used: consumed before */
	uint8_t flags;
	bool relocated;
};

/* ---- Tokenizing the source ---- */

/*
 * Prefetches the source: all of it will be copied, but first it is stepped
 * through, and each step waits for the one before.  Meanwhile memory can bring
 * what the copy will overwrite.
 */
static inline void
fetch(const struct trace_buffer *tb, const uint8_t *payload, uint32_t len)
{
	const uint8_t *to = tb->ring + tb->wr;
	uint32_t i, n = len < FETCH_TARGET ? len : FETCH_TARGET;

	for (i = 0; i < n; i += 64) {
		__builtin_prefetch(payload + i);
		__builtin_prefetch(to + i, 1);
	}
	for (; i < len; i += 64)
		__builtin_prefetch(payload + i);
}

/* Where the fragments end that were read elsewhere; 0: no fragment ends there. */
static uint32_t
skip_had(const struct tb_chunk *chunk, uint32_t used)
{
	struct tb_fragment f;
	uint32_t at = 0;

	while (at < chunk->had && at < used && tb_fragment_at(chunk->payload,
	    at, used, &f) == TB_TOKEN_FRAGMENT)
		at = f.end;
	return at == chunk->had ? at : 0;
}

/*
 * Counts the well-formed fragments at the beginning.  Where one is malformed or
 * dropped, "continues" and "needs a patch" were about it, and are cleared.
 */
static void
scan(struct trace_buffer *tb, const struct tb_chunk *chunk, struct commit *c)
{
	uint32_t len = (uint32_t)chunk->len, n = chunk->num_fragments;
	uint8_t flags = chunk->flags & (TB_FIRST_CONTINUES_FROM_PREV |
	    TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING);
	uint8_t of_last = TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING;
	enum tb_token token = TB_TOKEN_FRAGMENT;
	struct tb_fragment f;
	uint32_t at = 0;

	if (!chunk->complete) {
		flags |= TB_INCOMPLETE;
		if (n > 0) {
			n--;
			flags &= (uint8_t)~of_last;
		}
	}
	for (; n > 0; n--) {
		token = at < len ? tb_fragment_at(chunk->payload, at, len, &f) :
		    TB_TOKEN_BAD;
		if (UNLIKELY(token != TB_TOKEN_FRAGMENT))
			break;
		at = f.end;
	}
	switch (token) {
	case TB_TOKEN_FRAGMENT:
		break;
	case TB_TOKEN_DROPPED:
		tb->stats.trace_writer_packet_loss++;
		flags = (flags & (uint8_t)~of_last) | TB_ABORTED;
		break;
	case TB_TOKEN_BAD:
		tb->stats.abi_violations++;
		flags = (flags & (uint8_t)~of_last) | TB_CORRUPT;
		break;
	}
	c->chunk = chunk;
	c->used = at;
	c->capacity = chunk->complete ? at : len;
	c->read = UNLIKELY(chunk->had != 0) ? skip_had(chunk, at) : 0;
	c->flags = flags;
	c->relocated = false;
}

/* ---- Storing at the write cursor ---- */

static bool
discard(struct trace_buffer *tb)
{
	tb->stats.chunks_discarded++;
	return false;
}

static bool
violate(struct trace_buffer *tb)
{
	tb->stats.abi_violations++;
	return false;
}

static bool
is_late(const struct tb_sequence *s, uint32_t id)
{
	return (s->flags & TB_SEQ_CONSUMED) != 0 &&
	    tb_sequence_order(s, id) > INT32_MAX;
}

/* Leaves the room that was cleared at the write cursor unused. */
static bool
give_up(struct trace_buffer *tb, uint64_t bytes)
{
	if (tb->wr < tb->top)
		tb_record_init(tb_record_at(tb, tb->wr), TB_FREE, bytes);
	return discard(tb);
}

static void
count_stored(struct trace_buffer *tb, const struct tb_sequence *s,
    const struct commit *c, uint64_t bytes)
{
	tb->held += bytes;
	if (tb->seqs.shares != NULL)
		tb_shares_add(tb->seqs.shares, s->owner, bytes);
	tb->stats.bytes_written += bytes;
	if (c->relocated)
		tb->stats.chunks_relocated++;
	else
		tb->stats.chunks_written++;
	if (c->read < c->used)
		tb->unread += bytes;
}

static void
put_record(struct trace_buffer *tb, struct tb_sequence *s,
    const struct commit *c, uint64_t bytes)
{
	struct tb_record *r = tb_record_at(tb, tb->wr);

	tb_record_init(r, TB_CHUNK, bytes);
	r->flags = c->flags;
	r->seq = s->index;
	r->id = c->chunk->id;
	r->used = c->used;
	r->read = c->read;
	if (c->used > 0)
		memcpy(tb_payload(r), c->chunk->payload, c->used);
	tb->wr += bytes;
	if (tb->wr > tb->top)
		tb->top = tb->wr;
}

static bool
others_are_guaranteed(const struct trace_buffer *tb,
    const struct tb_sequence *s)
{
	return UNLIKELY(tb->seqs.shares != NULL) &&
	    tb_shares_matter(tb->seqs.shares, s->owner);
}

/* Room at the write cursor.  False: there is none. */
static bool
make_room(struct trace_buffer *tb, const struct tb_sequence *s, uint64_t bytes)
{
	if (tb->policy == TB_DISCARD) {
		if (bytes > tb->size - tb->wr) {
			tb->stopped = true;
			return false;
		}
		if (tb->seqs.shares != NULL && !tb_shares_leave_room(
		    tb->seqs.shares, s->owner, bytes, tb->size - tb->wr))
			return false;
	} else if (others_are_guaranteed(tb, s)) {
		return tb_make_room(tb, s, bytes);
	} else if (UNLIKELY(bytes > tb->size - tb->wr)) {
		tb_wrap(tb);
	}
	tb_clear_ahead(tb, bytes);
	return true;
}

static bool
store(struct trace_buffer *tb, struct tb_sequence *s, const struct commit *c)
{
	uint64_t bytes = tb_outer_size(c->capacity);
	uint32_t id = c->chunk->id, place;

	if (!tb_queue_reserve(s))
		return discard(tb);
	if (UNLIKELY(!make_room(tb, s, bytes))) {
		/* Before its first one no gap in its chunks' ids can tell. */
		if (s->len == 0 && (s->flags & TB_SEQ_CONSUMED) == 0)
			s->loss |= TB_LOSS_OVERWRITE;
		return discard(tb);
	}
	/* Making room may have consumed what comes after this chunk. */
	if (UNLIKELY(is_late(s, id)))
		return give_up(tb, bytes);
	place = tb_queue_search(tb, s, id);
	if (UNLIKELY(place < s->len)) {
		if (place > TB_REORDER_MAX && s->len - place > TB_REORDER_MAX)
			return give_up(tb, bytes);
		tb->stats.chunks_committed_out_of_order++;
	} else {
		s->newest = id;
	}
	tb_queue_insert(&tb->seqs, s, place, tb->wr);
	put_record(tb, s, c, bytes);
	s->end = tb_write_position(tb);
	count_stored(tb, s, c, bytes);
	tb_wake(tb, s);
	tb_sequences_sweep(&tb->seqs, tb_oldest_position(tb));
	return true;
}

/* ---- Committing again ---- */

/*
 * A scraped chunk that was read to its end moves to the write cursor: its old
 * place is the next to be overwritten, and its new data is new.  A chunk that a
 * clone under way has yet to copy stays: the clone ends before the cursor.
 */
static bool
may_relocate(const struct trace_buffer *tb, const struct tb_sequence *s,
    const struct tb_record *old)
{
	return tb->policy == TB_RING && !tb_has_unread(old) &&
	    old == tb_front(tb, s) && !tb_is_to_be_copied(tb, old);
}

static bool
relocate(struct trace_buffer *tb, struct tb_sequence *s, struct tb_record *old,
    struct commit *c)
{
	tb_open(s, old);
	c->read = old->used;
	if (!c->chunk->complete && c->capacity < tb_capacity(old))
		c->capacity = tb_capacity(old);
	c->relocated = true;
	tb->stats.bytes_read += tb_record_size(old);
	tb->held -= tb_record_size(old);
	if (tb->seqs.shares != NULL)
		tb_shares_sub(tb->seqs.shares, s->owner,
		    tb_record_size(old));
	tb_record_init(old, TB_FREE, tb_record_size(old));
	tb_queue_pop(&tb->seqs, s);
	if (store(tb, s, c))
		return true;
	tb->stats.chunks_read++;
	return false;
}

static void
rewrite(struct trace_buffer *tb, struct tb_record *old, const struct commit *c)
{
	if (!tb_has_unread(old))
		tb->unread += tb_record_size(old);
	memcpy(tb_payload(old), c->chunk->payload, c->used);
	old->used = c->used;
	old->flags = c->flags | (old->flags & TB_LOST_BEFORE);
	tb->stats.chunks_rewritten++;
}

static bool
extend(struct trace_buffer *tb, struct tb_sequence *s, struct tb_record *old,
    struct commit *c)
{
	if (c->used == old->used) {
		old->flags = c->flags | (old->flags & TB_LOST_BEFORE);
		return true;
	}
	if (may_relocate(tb, s, old))
		return relocate(tb, s, old, c);
	rewrite(tb, old, c);
	return true;
}

/*
 * A complete chunk may only come once more as it was (scraped when it was
 * complete but not yet committed), or after its writer patched it in place.
 */
static bool
repeat(struct trace_buffer *tb, struct tb_record *old, const struct commit *c)
{
	if (!c->chunk->complete || c->used != old->used)
		return violate(tb);
	if ((old->flags & TB_NEEDS_PATCHING) != 0 &&
	    (c->flags & TB_NEEDS_PATCHING) == 0) {
		memcpy(tb_payload(old) + old->read,
		    c->chunk->payload + old->read, old->used - old->read);
		old->flags &= (uint8_t)~TB_NEEDS_PATCHING;
		tb->stats.chunks_rewritten++;
	}
	return true;
}

/* Fragments and continuations may be added, never taken back. */
static bool
recommit(struct trace_buffer *tb, struct tb_sequence *s, uint32_t place,
    struct commit *c)
{
	struct tb_record *old = tb_chunk_at(tb, s, place);
	bool stored;
	uint8_t kept = old->flags & (TB_FIRST_CONTINUES_FROM_PREV |
	    TB_LAST_CONTINUES_ON_NEXT);

	if (c->used < old->used || c->used > tb_capacity(old) ||
	    (kept & ~c->flags) != 0)
		return violate(tb);
	stored = (old->flags & TB_INCOMPLETE) == 0 ? repeat(tb, old, c) :
	    extend(tb, s, old, c);
	tb_wake(tb, s);
	return stored;
}

/*
 * Commits a chunk at or before the one consumed last.  Only the rest of a
 * scraped chunk, the last one consumed, is not too late.
 */
static bool
commit_late(struct trace_buffer *tb, struct tb_sequence *s, struct commit *c)
{
	if (c->chunk->id != s->last || (s->flags & TB_SEQ_TAIL_OPEN) == 0)
		return discard(tb);
	if (c->used < s->tail)
		return violate(tb);
	if (c->used == s->tail) {
		if (c->chunk->complete)
			s->flags &= ~(uint32_t)TB_SEQ_TAIL_OPEN;
		return true;
	}
	c->read = s->tail;
	s->last--;
	s->flags &= ~(uint32_t)TB_SEQ_TAIL_OPEN;
	return store(tb, s, c);
}

/*
 * Notes the loss before a chunk, to be reported with the chunk's first packet;
 * if the chunk was not stored, or is being read, with the sequence's next one.
 */
static void
mark_loss(struct trace_buffer *tb, struct tb_sequence *s,
    const struct tb_chunk *chunk)
{
	uint32_t place = tb_queue_search(tb, s, chunk->id);
	struct tb_record *r;

	r = place < s->len ? tb_chunk_at(tb, s, place) : NULL;
	if (r == NULL || r->id != chunk->id || r->read > 0) {
		s->loss |= chunk->loss;
		return;
	}
	if ((r->flags & TB_LOST_BEFORE) == 0) {
		r->flags |= TB_LOST_BEFORE;
		s->n_lost_before++;
		/*
		 * A clone in which this chunk was read already still tells of
		 * the loss, as the chunk before it counts as missed.
		 */
		if (r->id == s->first)
			s->first--;
	}
	s->lost_before |= chunk->loss;
}

static bool
write_to(struct trace_buffer *tb, struct tb_sequence *s,
    const struct tb_chunk *chunk, struct commit *c)
{
	uint32_t place;

	if (s->len == 0 && (s->flags & TB_SEQ_CONSUMED) == 0) {
		/* The new chunk's id is in the middle of the order. */
		s->last = chunk->id - 1 - (UINT32_C(1) << 31);
		s->first = chunk->id;
		s->born = tb_write_position(tb);
	}
	if (UNLIKELY(is_late(s, chunk->id)))
		return commit_late(tb, s, c);
	place = tb_queue_search(tb, s, chunk->id);
	if (UNLIKELY(place < s->len) &&
	    tb_chunk_at(tb, s, place)->id == chunk->id)
		return recommit(tb, s, place, c);
	return store(tb, s, c);
}

/* Whether a chunk of s, whose writer is gone, is of the next with its number. */
static bool
begins_again(const struct tb_sequence *s, uint32_t id)
{
	return is_late(s, id) || (s->len > 0 &&
	    tb_sequence_order(s, id) <= tb_sequence_order(s, s->newest));
}

/*
 * The sequence that comes after s, of the next writer with its number.  Its first
 * chunk takes its share of the ring, even if it holds less: thus the ring bounds
 * such sequences, and overwriting or filling it up works as for any data.
 */
static struct tb_sequence *
replace(struct trace_buffer *tb, struct tb_sequence *s, struct commit *c)
{
	uint64_t share = tb->size / TB_REPLACING_MAX;

	tb_give_up(tb, s);
	tb_give_up_patches(tb, s);
	if (share > TB_CHUNK_MAX)
		share = TB_CHUNK_MAX;
	if (c->capacity < share)
		c->capacity = (uint32_t)share;
	return tb_sequences_replace(&tb->seqs, s);
}

bool
trace_buffer_write(struct trace_buffer *tb, const struct tb_origin *origin,
    const struct tb_chunk *chunk)
{
	struct tb_sequence *s;
	struct commit c;
	bool stored;

	if (UNLIKELY(tb->read_only))
		return false;
	if (UNLIKELY(tb->stopped))
		return discard(tb);
	if (UNLIKELY(chunk->len > TB_CHUNK_MAX))
		return violate(tb);
	tb_fetch_records(tb);
	fetch(tb, chunk->payload, (uint32_t)chunk->len);
	scan(tb, chunk, &c);
	if (UNLIKELY(tb_outer_size(c.capacity) > tb->size))
		return violate(tb);
	if ((s = tb_sequences_get(&tb->seqs, origin)) == NULL)
		return discard(tb);
	if (UNLIKELY((s->flags & TB_SEQ_ENDED) != 0) &&
	    begins_again(s, chunk->id) && (s = replace(tb, s, &c)) == NULL)
		return discard(tb);
	stored = write_to(tb, s, chunk, &c);
	if (UNLIKELY(chunk->loss != 0))
		mark_loss(tb, s, chunk);
	return stored;
}
