/*
 * tb_state: the trace buffer's struct, and the steps that reading and
 * overwriting share.  Private to transport/buffer.
 *
 * Positions.  A place in the ring is an offset; a place in time is a position,
 * which counts every byte that the write cursor ever passed.  Offset 0 of the
 * current lap is position `base`; the oldest record that can exist is at
 * position base + wr - size.  Positions compare without thought of the wrap.
 *
 * How chunks leave.  Every chunk that was written leaves once, at the front of
 * its sequence's queue: read (chunks_read, bytes_read) when nothing unread was
 * in it when it had to go, else overwritten (chunks_overwritten,
 * bytes_overwritten).  A relocated chunk's old place counts as bytes_read, its
 * new one as bytes_written, and the chunk itself once.  So that at any time
 *   chunks_written = chunks_read + chunks_overwritten + chunks in the ring
 *   bytes_written = bytes_read + bytes_overwritten + bytes of those chunks
 *   padding_bytes_written = padding_bytes_cleared + bytes of padding.
 */
#ifndef TRANSPORT_BUFFER_TB_STATE_H
#define TRANSPORT_BUFFER_TB_STATE_H

#include "transport/buffer/tb_fragment.h"
#include "transport/buffer/tb_record.h"
#include "transport/buffer/tb_sequence.h"
#include "transport/buffer/tb_share.h"
#include "transport/buffer/trace_buffer.h"

/*
 * State of reading: a walk over the ring's records in buffer order.  Positions
 * are all at the begin of a record.  Invariant: every chunk before `at` is of a
 * sequence that is stalled, or that the next pass will go back for, to `wake`.
 */
struct tb_reader {
	uint64_t at;   /* next record */
	uint64_t wake; /* where the next pass begins, if before `at` */
	uint64_t floor; /* compaction left no records before it */
	/*
	 * A record of free space that ends at `at`, or TB_NO_POSITION.  It is
	 * merged with free records behind it, so that no pass steps over these
	 * again.  A pass that goes back may begin inside of a merged record:
	 * the old records there stay as they were, and lead to the same end.
	 */
	uint64_t run;
	uint32_t pass; /* number of this pass, from 1 */
};

/*
 * Progress of a clone.  The source's records at positions from `at` to `end`
 * were not copied yet: a write must call tb_let_copy() before it overwrites
 * one.
 */
struct tb_copying {
	/*
	 * The buffer being cloned, or the clone itself where it took the ring;
	 * NULL: not under way.
	 */
	struct trace_buffer *source;
	uint64_t at, end;
	uint64_t chunks; /* taken so far */
	bool failed;
};

struct trace_buffer {
	uint8_t *ring;
	uint64_t size;
	uint64_t wr;   /* write cursor: an offset */
	uint64_t base; /* position of offset 0 */
	uint64_t top;  /* high-water mark: records end here */
	enum tb_policy policy;
	bool stopped;  /* discard: full for good */
	bool read_only; /* a clone */
	bool ended; /* trace_buffer_no_more(): reading waits for no data */
	struct tb_reader reader;
	uint64_t unread; /* bytes of chunks with unread data */
	uint64_t held;   /* bytes of all chunks, without TB_LEFT ones */
	struct tb_sequences seqs;
	struct tb_slice *slices; /* owned; of the packet handed out last */
	size_t slices_cap;
	struct tb_stats stats;
	/* Parts of chunks_written and bytes_written that are no loss. */
	uint64_t forgotten_chunks, forgotten_bytes;
	const struct tb_watch *watch; /* borrowed; NULL: no listener */
	struct trace_buffer *copy; /* the clone that is under way, or NULL */
	struct tb_copying copying; /* a clone: how far it is */
};

static inline struct tb_record *
tb_record_at(const struct trace_buffer *tb, uint64_t off)
{
	return (struct tb_record *)(void *)(tb->ring + off);
}

static inline uint64_t
tb_write_position(const struct trace_buffer *tb)
{
	return tb->base + tb->wr;
}

/* Position of the first record in the ring. */
static inline uint64_t
tb_oldest_position(const struct trace_buffer *tb)
{
	return tb->top == tb->size ? tb_write_position(tb) - tb->size : 0;
}

static inline uint64_t
tb_offset_of(const struct trace_buffer *tb, uint64_t position)
{
	if (position >= tb->base)
		return position - tb->base;
	return position + tb->size - tb->base;
}

static inline struct tb_sequence *
tb_sequence_of(const struct trace_buffer *tb, const struct tb_record *chunk)
{
	return tb_sequence_at(&tb->seqs, chunk->seq);
}

static inline struct tb_record *
tb_chunk_at(const struct trace_buffer *tb, const struct tb_sequence *s,
    uint32_t i)
{
	return tb_record_at(tb, tb_queue_at(s, i));
}

static inline struct tb_record *
tb_front(const struct trace_buffer *tb, const struct tb_sequence *s)
{
	return tb_chunk_at(tb, s, 0);
}

/* Index of the first chunk of s whose id is not before id; len: none. */
uint32_t tb_queue_search(const struct trace_buffer *tb,
    const struct tb_sequence *s, uint32_t id);

/* ---- Consuming (tb_consume.c) ---- */

void tb_open_first(struct tb_sequence *s, struct tb_record *front);

/*
 * To be called before the first byte of a front chunk is consumed: notes the
 * gap before it, and from now on refuses chunks that should be before it.
 */
static inline void
tb_open(struct tb_sequence *s, struct tb_record *front)
{
	if (UNLIKELY(front->read == 0))
		tb_open_first(s, front);
}

/* Marks bytes up to `to` as consumed. */
static inline void
tb_consume(struct trace_buffer *tb, struct tb_record *chunk, uint32_t to)
{
	chunk->read = to;
	if (UNLIKELY(to == chunk->used))
		tb->unread -= tb_record_size(chunk);
}

/*
 * Removes the front chunk of s.  lost: it goes unread, counted as overwritten;
 * else as read.
 */
void tb_erase_front(struct trace_buffer *tb, struct tb_sequence *s, bool lost);
/* The fragments of the front chunk from `read` on are broken: drops them. */
void tb_break_front(struct trace_buffer *tb, struct tb_record *front);

/* Takes the losses that the next packet of s reports, so that it is once. */
static inline uint32_t
tb_take_loss(struct tb_sequence *s)
{
	uint32_t loss = s->loss != 0 ? s->loss | TB_LOSS_PRESENT : 0;

	s->loss = 0;
	return loss;
}

/* ---- Stalls (tb_stall.c) ---- */

/* Ends the pass over s, whose chunk the walk is at: no more can be read. */
void tb_stall(struct trace_buffer *tb, struct tb_sequence *s);
/*
 * To be called when s has changed: if it is stalled and can be read on now, the
 * next pass tries it.  A stall whose reason persists costs later passes
 * nothing.
 */
void tb_wake(struct trace_buffer *tb, struct tb_sequence *s);
/* Has the next pass try all stalled sequences again. */
void tb_wake_all(struct trace_buffer *tb);
/*
 * Ends a stall, as the data that s waited for is overwritten: sends this pass
 * back for the rest of s.
 */
void tb_unstall(struct trace_buffer *tb, struct tb_sequence *s);

/* Whether s is still stalled in this pass. */
static inline bool
tb_is_stalled(const struct trace_buffer *tb, const struct tb_sequence *s)
{
	return UNLIKELY(s->stalled_at != TB_NO_POSITION) &&
	    (s->wake == 0 || (int32_t)(tb->reader.pass - s->wake) < 0);
}

/* ---- Patches (tb_patch.c) ---- */

/* Drops the packet at the end of c, which waits for more; others stay. */
void tb_drop_last(struct trace_buffer *tb, struct tb_record *c);
/*
 * Does what trace_buffer_give_up() and trace_buffer_producer_gone() do, for s.
 */
void tb_give_up(struct trace_buffer *tb, struct tb_sequence *s);
void tb_give_up_patches(struct trace_buffer *tb, struct tb_sequence *s);

/* ---- Reassembly (tb_reassemble.c) ---- */

/* Whether the packet at the end of the front chunk still waits for parts. */
bool tb_is_waiting(const struct trace_buffer *tb, struct tb_sequence *s);

enum tb_reassembly {
	TB_REASSEMBLED, /* consumed; out holds it */
	TB_WAITS,       /* more is to come, or no memory; nothing consumed */
	TB_LOST,        /* cannot be whole any more; consumed, loss is noted */
};

/*
 * Reads the packet that begins with the last fragment of the front chunk of s
 * and continues in the chunks after it.  Chunks without unread data left are
 * erased, as read; the loss is taken if the packet is not empty.
 */
enum tb_reassembly tb_reassemble(struct trace_buffer *tb,
    struct tb_sequence *s, struct tb_packet *out);
/*
 * As above, but the chunks are erased as overwritten, and no loss is taken.
 * out NULL: the packet is not needed.  TB_WAITS with memory lacking for out:
 * nothing was consumed, and a call without it goes on.
 */
enum tb_reassembly tb_reassemble_forced(struct trace_buffer *tb,
    struct tb_sequence *s, struct tb_packet *out);
/*
 * Most bytes of records that are lost when the front chunk of s, which has
 * unread data, is removed by force: its packet may lie in several chunks.
 */
uint64_t tb_front_cost(const struct trace_buffer *tb, struct tb_sequence *s);
/* Makes room for n slices in tb->slices.  false: no memory. */
bool tb_reserve_slices(struct trace_buffer *tb, size_t n) MUST_CHECK;

static inline void
tb_one_slice(struct trace_buffer *tb, const struct tb_sequence *s,
    const uint8_t *data, size_t len, struct tb_packet *out)
{
	tb->slices[0].data = data;
	tb->slices[0].len = len;
	out->slices = tb->slices;
	out->n_slices = 1;
	out->size = len;
	out->origin = &s->origin;
}

/* ---- The listener (trace_buffer_watch()) ---- */

static inline bool
tb_is_watched(const struct trace_buffer *tb, const struct tb_sequence *s)
{
	return UNLIKELY(tb->watch != NULL) &&
	    tb->watch->wants(tb->watch->arg, s->origin.producer);
}

/* ---- Overwriting (tb_overwrite.c) ---- */

/*
 * Overwrites: removes all records in `bytes` from the write cursor on (not
 * beyond the end of the ring); the rest of the last one becomes a record of its
 * own.
 */
void tb_clear_ahead(struct trace_buffer *tb, uint64_t bytes);
/*
 * Removes the front chunk of s, which is not stalled any more; or several,
 * where a packet lies in them.
 */
void tb_force_front(struct trace_buffer *tb, struct tb_sequence *s);
/* Moves the walk out of the records before `oldest`, which are gone. */
void tb_move_readers(struct trace_buffer *tb, uint64_t oldest);
/* Makes a record of free space, or of padding, which is counted. */
void tb_cut_off(struct trace_buffer *tb, uint64_t off, uint64_t bytes,
    enum tb_kind kind);
/* Prefetches headers; to be called some time before tb_clear_ahead(). */
void tb_fetch_records(const struct trace_buffer *tb);
/* Pads the rest of the ring and goes on at its begin. */
void tb_wrap(struct trace_buffer *tb);

/* ---- Making room beside guaranteed chunks (tb_room.c) ---- */

/*
 * As tb_clear_ahead() for a chunk of s, and tb_wrap() where that is needed, but
 * keeps chunks that are guaranteed to other producers.  Only while
 * tb->seqs.shares is not NULL.  False: this write may make no room; the chunk
 * is not to be stored.
 */
bool tb_make_room(struct trace_buffer *tb, const struct tb_sequence *s,
    uint64_t bytes) MUST_CHECK;

/* ---- Clones under way (tb_clone.c) ---- */

/* Copies the source's records that begin before this position to the clone. */
void tb_copy_up_to(struct trace_buffer *copy, uint64_t position);
/* Ends tb's own copying, if it is a clone; a clone of tb under way fails. */
void tb_stop_copying(struct trace_buffer *tb);

/* Lets a clone copy records before this position, which are about to go. */
static inline void
tb_let_copy(struct trace_buffer *tb, uint64_t position)
{
	if (UNLIKELY(tb->copy != NULL))
		tb_copy_up_to(tb->copy, position);
}

/* Whether a clone under way has not copied this record yet. */
static inline bool
tb_is_to_be_copied(const struct trace_buffer *tb, const struct tb_record *r)
{
	uint64_t off = (uint64_t)((const uint8_t *)r - tb->ring);
	uint64_t position = off < tb->wr ? tb->base + off :
	    tb->base + off - tb->size;

	return UNLIKELY(tb->copy != NULL) &&
	    position >= tb->copy->copying.at &&
	    position < tb->copy->copying.end;
}

/* ---- Life (trace_buffer.c) ---- */

/* Maps fresh memory for a ring, all zero.  NULL: no memory. */
uint8_t *tb_ring_map(uint64_t size) MUST_CHECK;
void tb_ring_unmap(uint8_t *ring, uint64_t size);

#endif /* TRANSPORT_BUFFER_TB_STATE_H */
