/*
 * tb_sequence: the state of each {producer, writer} (the specification's
 * SequenceState), and the table that finds them.
 *
 * A sequence's chunks are a circular queue of ring offsets, sorted by chunk id.
 * Sequences never move in memory; chunks in the ring refer to them by index.
 * The last TB_KEEP_EMPTY sequences without chunks are remembered, so that a gap
 * is seen even when the buffer was drained in between, and that clones find the
 * sequence of chunks that were read but still lie in the ring.
 */
#ifndef TRANSPORT_BUFFER_TB_SEQUENCE_H
#define TRANSPORT_BUFFER_TB_SEQUENCE_H

#include "transport/buffer/tb_record.h"
#include "transport/buffer/trace_buffer.h"

#define TB_KEEP_EMPTY  1024u /* empty sequences remembered */
#define TB_KEEP_LEFT   65536u /* as above, with chunks left in the ring */
#define TB_SWEEP_EMPTY 128u  /* sweep at so many more than TB_KEEP_EMPTY */
#define TB_INLINE_QUEUE 4u
#define TB_NO_SEQ UINT32_MAX
#define TB_NO_POSITION UINT64_MAX

enum tb_sequence_flags {
	/* `last` is a chunk that was consumed: gaps can be seen */
	TB_SEQ_CONSUMED = 1,
	/*
	 * `last` was overwritten or forgotten while incomplete: its commit is
	 * still taken, from byte `tail` of the payload on.
	 */
	TB_SEQ_TAIL_OPEN = 2,
	/* in the list of empty sequences */
	TB_SEQ_EMPTY = 4,
	/*
	 * The writer was unregistered: chunk ids that start again are of
	 * another writer with its number.
	 */
	TB_SEQ_ENDED = 8,
	/* A newer sequence has its key: not in the hash, swept once empty. */
	TB_SEQ_REPLACED = 16,
	/*
	 * A clone under way: what left before `front` and `front_read` was
	 * shown to a listener, and is not copied.
	 */
	TB_SEQ_SHOWN = 32,
};

struct tb_sequence {
	struct tb_origin origin;
	uint64_t *queue; /* offsets; `small` or owned */
	uint32_t head;   /* queue index of the first chunk */
	uint32_t len;
	uint32_t mask;   /* capacity - 1, a power of two */
	uint32_t index;  /* own, in the table */
	uint32_t newest; /* id of the last chunk in the queue */
	/*
	 * Id of the chunk consumed last.  Chunk ids wrap, so they are ordered
	 * by their distance from it: all in the queue are after it.
	 */
	uint32_t last;
	uint32_t loss;   /* enum tb_loss to report with the next packet */
	/*
	 * Position where the walk in buffer order met the first chunk of this
	 * stalled sequence; TB_NO_POSITION: not stalled.  wake: the first pass
	 * that shall try again; 0: none yet.
	 */
	uint64_t stalled_at;
	uint32_t wake;
	uint32_t flags;
	uint32_t tail;
	/*
	 * Cache of a reassembly that waits for data: the first `chain_len`
	 * chunks, from the one with id `chain_id` on, are parts of one packet;
	 * their records have chain_bytes.
	 */
	uint32_t chain_id;
	uint32_t chain_len;
	uint64_t chain_bytes;
	/*
	 * Number of chunks with TB_LOST_BEFORE, and the causes of all of them
	 * together (bits as in tb_chunk.loss): which cause belongs to which of
	 * several chunks is not kept.
	 */
	uint32_t n_lost_before;
	uint32_t lost_before;
	uint32_t owner; /* index in shares: its producer's account */
	/*
	 * For clones.  first: the chunk id before which no gap is reported.
	 * born, end: records with this index belong to this sequence from the
	 * position `born` on; `end` is behind the last of them.  front, in a
	 * clone under way: id of the chunk before which `loss` is reported;
	 * front_read: bytes of that chunk that were read when it began.
	 */
	uint32_t first;
	uint32_t front;
	uint32_t front_read;
	uint64_t born;
	uint64_t end;
	uint32_t prev, next; /* in the list of empty, or of free, sequences */
	uint64_t small[TB_INLINE_QUEUE];
} __attribute__((__aligned__(64)));

#define TB_SEQ_BLOCK_SHIFT 8
#define TB_SEQ_BLOCK (1u << TB_SEQ_BLOCK_SHIFT)

struct tb_shares;

struct tb_sequences {
	struct tb_sequence **blocks; /* of TB_SEQ_BLOCK each */
	uint32_t n_blocks;
	uint32_t n_slots; /* in use or free */
	uint32_t free;    /* first free slot */
	uint32_t count;   /* in use */
	uint32_t n_empty;
	uint32_t oldest, youngest; /* empty ones */
	/*
	 * Hash table with open addressing: slot + 1; 0: none.  Not a hash_map:
	 * a clone copies all of it at once, and slots are found by their index
	 * as well.
	 */
	uint32_t *hash;
	uint32_t hash_mask;
	uint64_t seed; /* against hash flooding */
	struct tb_shares *shares; /* owned; NULL: nothing is guaranteed */
};

bool tb_sequences_init(struct tb_sequences *t) MUST_CHECK;
void tb_sequences_done(struct tb_sequences *t);
/*
 * Copies the sequences without their chunks, and without shares.  `to` is not
 * initialised before.  false: no memory, and `to` is as after
 * tb_sequences_done().
 */
bool tb_sequences_copy(struct tb_sequences *to, const struct tb_sequences *from)
    MUST_CHECK;

/* NULL: no such sequence. */
struct tb_sequence *tb_sequences_find(const struct tb_sequences *t,
    uint64_t producer, uint32_t writer);
/* Finds the writer's sequence, or makes an empty one.  NULL: no memory. */
struct tb_sequence *tb_sequences_get(struct tb_sequences *t,
    const struct tb_origin *origin) MUST_CHECK;
/*
 * Makes an empty sequence for another writer with the key of s; s can be found
 * no more, even when this fails.  NULL: no memory.
 */
struct tb_sequence *tb_sequences_replace(struct tb_sequences *t,
    struct tb_sequence *s) MUST_CHECK;
/*
 * Forgets the oldest empty sequences, once there are enough to be worth it.
 * oldest: position of the oldest record of the ring.
 */
void tb_sequences_sweep(struct tb_sequences *t, uint64_t oldest);

static inline struct tb_sequence *
tb_sequence_at(const struct tb_sequences *t, uint32_t index)
{
	return &t->blocks[index >> TB_SEQ_BLOCK_SHIFT]
	    [index & (TB_SEQ_BLOCK - 1)];
}

/* Offset of the i-th chunk, in order of ids. */
static inline uint64_t
tb_queue_at(const struct tb_sequence *s, uint32_t i)
{
	return s->queue[(s->head + i) & s->mask];
}

/* Place of an id in the order: the distance from the last one consumed. */
static inline uint32_t
tb_sequence_order(const struct tb_sequence *s, uint32_t id)
{
	return id - s->last - 1;
}

/* Makes room for one more chunk.  false: no memory. */
bool tb_queue_reserve(struct tb_sequence *s) MUST_CHECK;
/*
 * Puts the offset `off` before the i-th chunk (i == len: at the end).  Needs
 * tb_queue_reserve() before.
 */
void tb_queue_insert(struct tb_sequences *t, struct tb_sequence *s, uint32_t i,
    uint64_t off);
/* Removes the first chunk; the queue is not empty. */
void tb_queue_pop(struct tb_sequences *t, struct tb_sequence *s);
/* Removes all chunks. */
void tb_queue_clear(struct tb_sequences *t, struct tb_sequence *s);

#endif /* TRANSPORT_BUFFER_TB_SEQUENCE_H */
