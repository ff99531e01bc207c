/*
 * Copies for snapshots: all chunks that the ring holds, those that were read,
 * too, and the sequences.  Nothing can change in a copy but by reading.
 *
 * A ring is copied in pieces, the oldest record first, while the source goes on
 * being written and read.  The write cursor follows the copy around the ring;
 * where it gets ahead, the records in between are copied at once.  Reading needs
 * no such care, as it leaves in the ring what it has read.  Patches and
 * recommits that arrive meanwhile are in the copy or not, as a whole.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/buffer/tb_state.h"

/* Most records of one call: at a microsecond each, a millisecond of the loop. */
#define FILL_RECORDS 1024u

/*
 * Notes for each sequence the chunk before which its loss is to be reported,
 * and how far it was read.
 */
static void
note_fronts(struct trace_buffer *copy, const struct trace_buffer *tb)
{
	const struct tb_sequence *from;
	const struct tb_record *front;
	struct tb_sequence *s;
	uint32_t i;

	for (i = 0; i < copy->seqs.n_slots; i++) {
		from = tb_sequence_at(&tb->seqs, i);
		s = tb_sequence_at(&copy->seqs, i);
		if (from->len > 0) {
			front = tb_front(tb, from);
			s->front = front->id;
			s->front_read = front->read;
		} else {
			s->front = from->last + 1;
			s->front_read = 0;
			s->loss = 0; /* before what is still to come */
		}
		if (tb_is_watched(tb, from))
			s->flags |= TB_SEQ_SHOWN;
	}
}

/* A copy of all but the ring.  NULL: no memory. */
static struct trace_buffer *
copy_state(const struct trace_buffer *tb)
{
	struct trace_buffer *copy;

	if ((copy = malloc(sizeof(*copy))) == NULL)
		return NULL;
	*copy = *tb;
	copy->ring = NULL;
	copy->slices = NULL;
	copy->slices_cap = 0;
	copy->copy = NULL;
	copy->watch = NULL;
	copy->read_only = true;
	copy->unread = copy->held = 0;
	copy->reader.wake = copy->reader.run = TB_NO_POSITION;
	copy->reader.at = tb_oldest_position(tb);
	copy->copying = (struct tb_copying){
		.at = tb_oldest_position(tb),
		.end = tb_write_position(tb),
	};
	copy->stats.bytes_read = 0;
	copy->stats.chunks_read = 0;
	copy->stats.readaheads_succeeded = 0;
	copy->stats.readaheads_failed = 0;
	if (!tb_sequences_copy(&copy->seqs, &tb->seqs)) {
		free(copy);
		return NULL;
	}
	note_fronts(copy, tb);
	if (!tb_reserve_slices(copy, 1)) {
		trace_buffer_free(copy);
		return NULL;
	}
	return copy;
}

struct trace_buffer *
trace_buffer_clone(struct trace_buffer *tb)
{
	struct trace_buffer *copy;

	if (tb->copy != NULL || (copy = copy_state(tb)) == NULL)
		return NULL;
	if ((copy->ring = tb_ring_map(tb->size)) == NULL) {
		trace_buffer_free(copy);
		return NULL;
	}
	copy->base = copy->wr = copy->top = copy->reader.at = 0;
	copy->copying.source = tb;
	tb->copy = copy;
	return copy;
}

bool
trace_buffer_is_copied(const struct trace_buffer *tb)
{
	return tb->copy != NULL;
}

/* ---- Filling ---- */

/*
 * Drops the earlier of two records with one chunk id: a chunk that was
 * committed again after its first record had left its sequence.
 */
static void
drop_earlier(struct trace_buffer *copy, struct tb_record *r)
{
	uint64_t bytes = tb_record_size(r);

	copy->held -= bytes;
	if (tb_has_unread(r))
		copy->unread -= bytes;
	copy->stats.chunks_read++;
	copy->stats.bytes_read += bytes;
	tb_record_init(r, TB_FREE, bytes);
}

/* The chunk at off, in the copy's own ring, joins its sequence. */
static bool
adopt(struct trace_buffer *copy, uint64_t off)
{
	struct tb_record *r = tb_record_at(copy, off);
	struct tb_sequence *s = tb_sequence_of(copy, r);
	uint32_t place;

	if (!tb_queue_reserve(s))
		return false;
	if (s->len == 0)
		s->last = r->id - 1 - (UINT32_C(1) << 31);
	copy->copying.chunks++;
	copy->held += tb_record_size(r);
	if (tb_has_unread(r))
		copy->unread += tb_record_size(r);
	if ((r->flags & TB_LOST_BEFORE) != 0)
		s->n_lost_before++;
	place = tb_queue_search(copy, s, r->id);
	if (place < s->len && tb_chunk_at(copy, s, place)->id == r->id) {
		drop_earlier(copy, tb_chunk_at(copy, s, place));
		s->queue[(s->head + place) & s->mask] = off;
		return true;
	}
	if (place == s->len)
		s->newest = r->id;
	tb_queue_insert(&copy->seqs, s, place, off);
	return true;
}

/* Puts a copy of r at the end of the copy's ring. */
static struct tb_record *
append(struct trace_buffer *copy, const struct tb_record *r)
{
	struct tb_record *to = tb_record_at(copy, copy->wr);
	uint64_t bytes = tb_outer_size(r->used);

	memcpy(to, r, sizeof(*r) + r->used);
	to->units = bytes / TB_ALIGN;
	copy->wr += bytes;
	copy->top = copy->wr;
	return to;
}

/*
 * Whether a listener was shown all of r, so that it is not copied; *read is how
 * much of it was shown otherwise.
 */
static bool
was_shown(const struct tb_sequence *s, const struct tb_record *r,
    uint32_t *read)
{
	int32_t distance = (int32_t)(r->id - s->front);

	*read = 0;
	if ((s->flags & TB_SEQ_SHOWN) == 0 || distance > 0)
		return false;
	if (distance < 0)
		return true;
	*read = s->front_read < r->used ? s->front_read : r->used;
	return *read > 0 && *read == r->used;
}

static void
take_next(struct trace_buffer *copy)
{
	struct tb_copying *c = &copy->copying;
	struct tb_record *r = tb_record_at(c->source,
	    tb_offset_of(c->source, c->at));
	uint64_t position = c->at;
	struct tb_sequence *s;
	uint32_t read = 0;

	c->at += tb_record_size(r);
	if (r->kind != TB_CHUNK && r->kind != TB_LEFT)
		return;
	s = tb_sequence_at(&copy->seqs, r->seq);
	/* The chunk's sequence was forgotten: another has its index now. */
	if (position < s->born || was_shown(s, r, &read)) {
		if (c->source == copy)
			tb_record_init(r, TB_FREE, tb_record_size(r));
		return;
	}
	if (c->source != copy) {
		s->lost_before |= tb_sequence_of(c->source, r)->lost_before;
		r = append(copy, r);
	}
	r->kind = TB_CHUNK;
	r->read = read;
	if (!adopt(copy, (uint64_t)((uint8_t *)r - copy->ring)))
		c->failed = true;
}

/*
 * Sets the losses of s in the copy: the source's that was not reported yet, and
 * chunks that were overwritten before the copy was made.
 */
static void
settle_loss(struct trace_buffer *copy, struct tb_sequence *s)
{
	uint32_t place = tb_queue_search(copy, s, s->front), loss = s->loss;
	struct tb_record *r;

	s->loss = 0;
	if (s->len == 0)
		return;
	r = tb_front(copy, s);
	if (((int32_t)(r->id - s->first) > 0 || r->read > 0) &&
	    (r->flags & TB_LOST_BEFORE) == 0)
		s->loss = TB_LOSS_OVERWRITE;
	if (loss == 0 || place == s->len)
		return;
	r = tb_chunk_at(copy, s, place);
	if (place == 0) {
		s->loss |= loss;
		return;
	}
	if ((r->flags & TB_LOST_BEFORE) == 0)
		s->n_lost_before++;
	r->flags |= TB_LOST_BEFORE;
	s->lost_before |= loss;
}

static void
count_gone(struct trace_buffer *copy)
{
	struct tb_stats *st = &copy->stats;
	uint64_t had = copy->forgotten_bytes + copy->held + st->bytes_read;

	st->chunks_overwritten = st->chunks_written - copy->forgotten_chunks -
	    copy->copying.chunks;
	st->bytes_overwritten = st->chunks_overwritten == 0 ||
	    st->bytes_written < had ? 0 : st->bytes_written - had;
}

static void
complete(struct trace_buffer *copy)
{
	uint32_t i;

	tb_stop_copying(copy);
	for (i = 0; i < copy->seqs.n_slots; i++)
		settle_loss(copy, tb_sequence_at(&copy->seqs, i));
	count_gone(copy);
	copy->ended = true;
}

void
tb_copy_up_to(struct trace_buffer *copy, uint64_t position)
{
	struct tb_copying *c = &copy->copying;

	while (c->at < c->end && c->at < position && !c->failed)
		take_next(copy);
}

void
tb_stop_copying(struct trace_buffer *tb)
{
	struct tb_copying *c = &tb->copying;

	if (c->source != NULL && c->source != tb)
		c->source->copy = NULL;
	c->source = NULL;
	if (tb->copy == NULL)
		return;
	tb->copy->copying.failed = true;
	tb->copy->copying.source = NULL;
	tb->copy = NULL;
}

enum tb_fill
trace_buffer_fill(struct trace_buffer *copy, uint64_t bytes)
{
	struct tb_copying *c = &copy->copying;
	uint64_t begin = c->at;
	uint32_t n;

	if (c->failed)
		return TB_FILL_FAILED;
	if (c->source == NULL)
		return TB_FILL_DONE;
	for (n = 0; n < FILL_RECORDS && c->at < c->end &&
	    c->at - begin < bytes && !c->failed; n++)
		take_next(copy);
	if (c->failed)
		return TB_FILL_FAILED;
	if (c->at < c->end)
		return TB_FILL_MORE;
	complete(copy);
	return TB_FILL_DONE;
}

/* ---- Emptying ---- */

/* Leaves s as if all its chunks had been read. */
static void
forget_chunks(struct trace_buffer *tb, struct tb_sequence *s)
{
	const struct tb_record *last;

	s->loss = 0;
	s->n_lost_before = s->lost_before = 0;
	s->stalled_at = TB_NO_POSITION;
	s->born = s->end = 0;
	if (s->len > 0) {
		last = tb_chunk_at(tb, s, s->len - 1);
		s->last = last->id;
		s->flags = (s->flags | TB_SEQ_CONSUMED) &
		    ~(uint32_t)TB_SEQ_TAIL_OPEN;
		if ((last->flags & TB_INCOMPLETE) != 0) {
			s->flags |= TB_SEQ_TAIL_OPEN;
			s->tail = last->used;
		}
		tb_queue_clear(&tb->seqs, s);
	}
	s->first = s->last + 1;
}

static void
forget_all(struct trace_buffer *tb)
{
	uint32_t i;

	/* A free slot has no chunks. */
	for (i = 0; i < tb->seqs.n_slots; i++)
		forget_chunks(tb, tb_sequence_at(&tb->seqs, i));
	tb->base = tb->wr = tb->top = 0;
	tb->reader.at = tb->reader.floor = 0;
	tb->reader.wake = tb->reader.run = TB_NO_POSITION;
	tb->unread = tb->held = 0;
	tb->forgotten_chunks = tb->stats.chunks_written -
	    tb->stats.chunks_overwritten;
	tb->forgotten_bytes = tb->stats.bytes_written -
	    tb->stats.bytes_overwritten;
	if (tb->seqs.shares != NULL)
		tb_shares_clear(tb->seqs.shares);
	tb->stopped = false;
}

struct trace_buffer *
trace_buffer_take(struct trace_buffer *tb)
{
	struct trace_buffer *taken;
	uint8_t *fresh;

	if (tb->copy != NULL || (fresh = tb_ring_map(tb->size)) == NULL)
		return NULL;
	if ((taken = copy_state(tb)) == NULL) {
		tb_ring_unmap(fresh, tb->size);
		return NULL;
	}
	/* Forgetting looks at the chunks, then they change hands. */
	forget_all(tb);
	taken->ring = tb->ring;
	taken->copying.source = taken;
	tb->ring = fresh;
	return taken;
}

void
trace_buffer_clear(struct trace_buffer *tb)
{
	uint64_t top = tb->top;

	tb_let_copy(tb, UINT64_MAX);
	forget_all(tb);
	/* An unused buffer costs nothing. */
	if (top > 0)
		madvise(tb->ring, top, MADV_DONTNEED);
}
