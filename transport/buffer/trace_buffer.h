/*
 * trace_buffer: the central buffer of one `buffers` section of a TraceConfig
 * (reference trace-buffer.md, all of it).
 *
 * Stores the chunks of many {producer, writer} sequences in one contiguous
 * ring, and reads them back as whole packets, in order within a sequence and
 * roughly in commit order across sequences.  Everything that a producer
 * supplies is untrusted.
 *
 * A buffer belongs to one thread.  Pure: no sockets, no clock, no allocation
 * per packet or chunk once warm; knows neither sessions nor protobuf messages
 * beyond the varint that precedes a fragment.
 */
#ifndef TRANSPORT_BUFFER_TRACE_BUFFER_H
#define TRANSPORT_BUFFER_TRACE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct trace_buffer;

enum tb_policy {
	TB_RING,    /* overwrite the oldest (a forced, in-order read of it) */
	TB_DISCARD, /* stop for good at the end of the buffer */
};

/* Chunk flags, as in the shared-memory ABI's chunk header. */
enum tb_chunk_flags {
	TB_FIRST_CONTINUES_FROM_PREV = 1,
	TB_LAST_CONTINUES_ON_NEXT = 2,
	TB_NEEDS_PATCHING = 4,
};

/* Causes of missing packets before this one: TracePacket.DataLossReason. */
enum tb_loss {
	TB_LOSS_PRESENT = 1,
	TB_LOSS_READ_GAP = 2,
	TB_LOSS_CHUNK_CORRUPTED = 4,
	TB_LOSS_ORPHAN_CONTINUATION = 8,
	TB_LOSS_REASSEMBLY_GAP = 16,
	TB_LOSS_REASSEMBLY_BROKEN_CHAIN = 32,
	TB_LOSS_OVERWRITE = 64,
	TB_LOSS_WRITER_ABORT = 128,
	TB_LOSS_SMB_FULL = 256,
};

/*
 * The writer of a sequence; copied into the sequence when that is made, and
 * handed out with its packets.  {producer, writer} is the sequence's key.
 */
struct tb_origin {
	uint64_t producer; /* id */
	uint64_t share;    /* see trace_buffer_guarantee() */
	uint32_t writer;
	uint32_t machine;  /* id */
	int32_t uid;
	int32_t pid;
};

struct tb_chunk {
	uint32_t id;            /* chunk id: +1 per chunk of a writer, wraps */
	uint16_t num_fragments; /* as the header says; untrusted */
	uint8_t flags;          /* enum tb_chunk_flags */
	/*
	 * false: scraped while it was still being written.  Its last fragment
	 * is held back, and all of `len` is reserved for the later commit.
	 */
	bool complete;
	/*
	 * Fragments: varint size, bytes, repeated.  Without the chunk header.
	 * May be shared memory that changes while it is read.  Bytes after the
	 * last fragment are not kept for complete chunks.
	 */
	const uint8_t *payload;
	size_t len;
	/*
	 * Known causes for which chunks before this one are missing, to be
	 * reported with the first packet from here on: bits of enum tb_loss,
	 * or above it (losses.h, LINK_LOSS_BIT()).
	 */
	uint32_t loss;
	/*
	 * Bytes of its first fragments that were read elsewhere, and are not to
	 * be read here; 0: none.
	 */
	uint32_t had;
};

struct tb_patch {
	uint32_t offset; /* from the start of the payload */
	const uint8_t *data; /* NULL when there are none */
	size_t len;
};

/* TraceStats.BufferStats, same names (reference wire-format.md). */
struct tb_stats {
	uint64_t buffer_size;
	uint64_t bytes_written;
	uint64_t bytes_overwritten;
	uint64_t bytes_read;
	uint64_t padding_bytes_written;
	uint64_t padding_bytes_cleared;
	uint64_t chunks_written;
	uint64_t chunks_rewritten;
	uint64_t chunks_relocated;
	uint64_t chunks_overwritten;
	uint64_t chunks_discarded;
	uint64_t chunks_read;
	uint64_t chunks_committed_out_of_order;
	uint64_t write_wrap_count;
	uint64_t patches_succeeded;
	uint64_t patches_failed;
	uint64_t readaheads_succeeded;
	uint64_t readaheads_failed;
	uint64_t abi_violations;
	uint64_t trace_writer_packet_loss;
	/* Ours alone: guaranteed chunks that a write did not overwrite. */
	uint64_t chunks_kept;
};

/* A piece of a packet, in the buffer's own memory. */
struct tb_slice {
	const uint8_t *data;
	size_t len;
};

struct tb_packet {
	/* Borrowed until the next call for the buffer that is not const. */
	const struct tb_slice *slices;
	size_t n_slices;
	size_t size; /* sum over slices */
	/* Borrowed as long as slices. */
	const struct tb_origin *origin;
	uint32_t loss; /* enum tb_loss mask; 0: nothing missing before it */
};

/*
 * A listener to packets of some producers as they leave the buffer: before the
 * ring overwrites them unread, and when they are read.  It gets each whole
 * packet once, in the order of its sequence, whether the packet lay in one
 * chunk or in several.  Packets that are cleared, or that never became whole,
 * are not shown.  Its calls must leave the buffer alone.
 */
struct tb_watch {
	/* Whether packets of this producer are to be shown. */
	bool (*wants)(void *arg, uint64_t producer);
	/*
	 * p is borrowed for the call; NULL: there was no memory to put an
	 * overwritten packet together.
	 */
	void (*leaves)(void *arg, const struct tb_packet *p, bool overwritten);
	void *arg;
};

/*
 * size: bytes, rounded up to a page, at least one page and at most 16 TiB.
 * Memory is reserved, not touched.  NULL: no memory, or too large.
 */
struct trace_buffer *trace_buffer_new(uint64_t size, enum tb_policy policy)
    MUST_CHECK;
/* A clone of it that is under way fails; NULL is fine. */
void trace_buffer_free(struct trace_buffer *tb);

/*
 * Guarantees so many percent (below 100) of the buffer to the group of
 * producers with this number (tb_origin.share), such as a machine; to be called
 * before the group's first chunk.  The groups that have data in the buffer get
 * equal parts of it, each is guaranteed its own percent of its part, and its
 * producers share that equally.
 *
 * RING: a producer that holds no more than its share loses nothing to writes of
 * others: its chunks are moved to just behind the write cursor instead.  A
 * packet in several chunks goes or stays as a whole.  A chunk for which there
 * is no room beside guaranteed ones is not stored.  DISCARD: a write must leave
 * the room that other producers still lack to their shares.
 *
 * False: no memory.
 */
bool trace_buffer_guarantee(struct trace_buffer *tb, uint64_t share,
    uint32_t percent) MUST_CHECK;
/*
 * Shows packets to a listener from now on; NULL: to none.  Borrowed until the
 * next call, or until the buffer is freed.  Clones have no listener, and what
 * was shown before they were made is not in them: the listener's state and the
 * packets of a clone are one history, without a gap or a repetition.
 */
void trace_buffer_watch(struct trace_buffer *tb, const struct tb_watch *watch);
/*
 * Tells that a producer writes no more: all retired producers of a group count
 * as one.
 */
void trace_buffer_retire(struct trace_buffer *tb, uint64_t producer);

/*
 * Commits one chunk; origin and chunk are borrowed for the call.  A chunk that
 * was scraped may come again, with more in it: if some of it is unread, it is
 * extended in place.  A chunk that was read to its end moves to the write
 * cursor (RING), where Perfetto's buffer rewrites it in place: its new data is
 * as new as any other, and in its old place, next to be overwritten, would be
 * lost a lap too early.
 *
 * Returns false when the chunk was refused: the buffer is full (DISCARD), there
 * is no room beside guaranteed chunks, no memory, or the chunk comes too late
 * (chunks_discarded); it is too large, or takes back what it said before
 * (abi_violations); the buffer is a clone.
 */
bool trace_buffer_write(struct trace_buffer *tb, const struct tb_origin *origin,
    const struct tb_chunk *chunk);

/* Patches of one chunk; borrowed for the call. */
struct tb_patches {
	const struct tb_patch *all;
	size_t n;
	bool more; /* more patches follow: keep the sequence stalled */
};

/*
 * Patches a chunk that was committed before.  All or nothing: false when the
 * chunk is gone or a patch lies outside it.
 */
bool trace_buffer_patch(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t chunk_id, const struct tb_patches *patches);

/*
 * Whether another version of this chunk would be taken: it was scraped before
 * it was complete, or waits for a patch, or its scraped part is gone already.
 */
bool trace_buffer_may_add(const struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t chunk_id);

/*
 * Tells that the rest of the sequence's scraped chunks is probably lost: chunks
 * behind them are read without waiting for it.  A rest that comes all the same
 * is taken.
 */
void trace_buffer_give_up(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer);

/*
 * Tells that the writer was unregistered.  The next writer with its number
 * counts its chunks from 0 again: with the first chunk id that was there
 * already another sequence begins, and chunks of the old one are not completed
 * or patched any more.
 */
void trace_buffer_writer_gone(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer);

/*
 * Tells that a producer is gone, and patches no chunks any more.  Its packets
 * that wait for patches are dropped, as not a byte of them is known to be
 * whole; the packets behind them can be read, and the first reports the loss.
 * Cost: a look at every sequence, and at every chunk of the producer.
 */
void trace_buffer_producer_gone(struct trace_buffer *tb, uint64_t producer);

/*
 * Declares that no commit and no patch comes any more: the next pass reads the
 * data behind a packet that waits for its rest, and behind an incomplete chunk.
 * Such a packet is dropped, and the packet behind it reports the loss.
 * Cost: a look at every sequence.
 */
void trace_buffer_no_more(struct trace_buffer *tb);

/*
 * Starts a pass over the buffer: sequences that stalled in earlier passes are
 * tried again where something has changed.
 */
void trace_buffer_begin_read(struct trace_buffer *tb);
/* Reads and consumes the next packet.  false: no more packets in this pass. */
bool trace_buffer_read(struct trace_buffer *tb, struct tb_packet *out);
/*
 * Whether the next pass may read on where this one stalled: the chunk or patch
 * that was missing has come since.  O(1).
 */
bool trace_buffer_needs_pass(const struct trace_buffer *tb);

/*
 * Bytes (headers included) of the chunks that have unread data, stalled ones
 * too.  O(1).
 */
uint64_t trace_buffer_unread(const struct trace_buffer *tb);
/*
 * Whether a chunk of len payload bytes, committed now, would overwrite unread
 * data (RING), or be discarded for lack of room (DISCARD, too large).
 */
bool trace_buffer_would_lose(const struct trace_buffer *tb, size_t len);

/*
 * RING: about how many bytes, chunk headers included, can be written before
 * unread data would be overwritten; at most `most`.  Cost: a look at each
 * record in them.
 */
uint64_t trace_buffer_room(const struct trace_buffer *tb, uint64_t most);

/*
 * RING, when a pass has read all it can: compacts, that is, moves the chunks
 * that are left (waiting for further fragments or patches) to where they are
 * overwritten last, so that the room around them can be used.  False, and
 * without effect, where chunks hold more than half of the buffer.  Later clones
 * do not get the data that was read before; a clone under way is filled first.
 * Cost: the bytes that are left.
 */
bool trace_buffer_compact(struct trace_buffer *tb);

/*
 * Clones: makes a read-only copy of all chunks that the ring holds at this
 * time, read ones too.  (Except packets that a listener was shown, chunks that
 * were read before a compaction, and those of writers that are forgotten, as
 * TB_KEEP_LEFT others have had all their chunks read since.)  Reading the copy waits for no chunk or patch, as
 * after trace_buffer_no_more().  Its statistics are the source's so far, with
 * no chunk counted as read, and with all chunks that the ring does not hold any
 * more counted as overwritten.
 *
 * The copy has only the sequences at first (the cost of this call).
 * trace_buffer_fill() copies the chunks; until that is done, only it and
 * trace_buffer_free() may be called for the copy.  A write to the source first
 * copies the chunks that it is about to overwrite.  One clone of a buffer may
 * be under way at a time.  The caller frees the copy.  NULL: no memory, or
 * another clone is under way.
 */
struct trace_buffer *trace_buffer_clone(struct trace_buffer *tb) MUST_CHECK;
/*
 * As above, but the copy gets the source's ring, and the source a new, empty
 * one: it is as after trace_buffer_clear().  NULL: no change.
 */
struct trace_buffer *trace_buffer_take(struct trace_buffer *tb) MUST_CHECK;

enum tb_fill {
	TB_FILL_MORE,
	TB_FILL_DONE,
	TB_FILL_FAILED, /* no memory, or the source was freed meanwhile */
};

/* Whether a clone of this buffer is under way. */
bool trace_buffer_is_copied(const struct trace_buffer *tb);
/* Copies about so many more bytes from the source, and at most 1024 records. */
enum tb_fill trace_buffer_fill(struct trace_buffer *copy, uint64_t bytes)
    MUST_CHECK;
/*
 * Forgets all chunks (no loss is reported for them); sequences are kept.  A
 * clone that is under way is filled before.
 */
void trace_buffer_clear(struct trace_buffer *tb);

/* The live counters; borrowed until the buffer is freed. */
const struct tb_stats *trace_buffer_stats(const struct trace_buffer *tb);
/* Number of sequences, those without chunks that are remembered included. */
size_t trace_buffer_sequences(const struct trace_buffer *tb);

/*
 * The ring's memory, for prefaulting it (ring_ahead.h); its contents are
 * private to the buffer.
 */
struct tb_memory {
	const uint8_t *ring;
	uint64_t size;
	uint64_t reached; /* by the first lap: beyond, never touched */
	uint64_t to_come; /* most bytes beyond that will be touched */
};
/* Valid until the buffer is freed or its contents are taken. */
struct tb_memory trace_buffer_memory(const struct trace_buffer *tb);

#endif /* TRANSPORT_BUFFER_TRACE_BUFFER_H */
