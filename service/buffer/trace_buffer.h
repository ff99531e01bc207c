/*
 * trace_buffer: the central buffer of one `buffers` section of a TraceConfig
 * (reference trace-buffer.md, all of it).
 *
 * Stores the chunks of many {producer, writer} sequences in one contiguous
 * ring, and reads them back as whole packets, in order within a sequence and
 * roughly in commit order across sequences.  Single-threaded.  Pure: no
 * sockets, no clock, no allocation per packet or chunk once warm, nothing of
 * sessions or protobuf messages beyond the varint that precedes a fragment.
 * Everything a producer supplies is untrusted.
 */
#ifndef SERVICE_BUFFER_TRACE_BUFFER_H
#define SERVICE_BUFFER_TRACE_BUFFER_H

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

/* Why packets before this one are missing: TracePacket.DataLossReason. */
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

/* The writer of a sequence; kept with it, handed out with its packets. */
struct tb_origin {
	uint64_t producer; /* key, with writer */
	uint64_t share;    /* see trace_buffer_guarantee() */
	uint32_t writer;   /* key */
	uint32_t machine;
	int32_t uid;
	int32_t pid;
};

struct tb_chunk {
	uint32_t id;            /* chunk id: +1 per chunk of a writer, wraps */
	uint16_t num_fragments; /* as the header says; untrusted */
	uint8_t flags;          /* enum tb_chunk_flags */
	/*
	 * false: scraped while it was still written.  Its last fragment is
	 * held back and all of `len` is reserved for the later recommit.
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
	 * Why chunks before this one did not get here, where that is known:
	 * bits of enum tb_loss, or above it, for the first packet from here on.
	 */
	uint32_t loss;
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
	/* Not among them: moved out of the way, as they are guaranteed. */
	uint64_t chunks_kept;
};

/* A piece of a packet, in the buffer's own memory. */
struct tb_slice {
	const uint8_t *data;
	size_t len;
};

struct tb_packet {
	/* Valid until the next call that is not one of the const ones. */
	const struct tb_slice *slices;
	size_t n_slices;
	size_t size; /* sum over slices */
	/* Valid as long as slices. */
	const struct tb_origin *origin;
	uint32_t loss; /* enum tb_loss mask; 0: nothing missing before it */
};

/*
 * size is in bytes, rounded up to a page, at least one page; may exceed 4 GiB.
 * Memory is reserved, not touched.  NULL when it cannot be reserved.
 */
struct trace_buffer *trace_buffer_new(uint64_t size, enum tb_policy policy)
    MUST_CHECK;
void trace_buffer_free(struct trace_buffer *tb);

/*
 * Guarantees so many percent (below 100) of the buffer to those whose data is of
 * this share (tb_origin), from their first chunk on; to be said before that.
 * Those that have data in the buffer get equal parts of it, each takes its own
 * percent of that, and its producers share that equally.
 *
 * RING: no write takes from another producer what it has below its share; the
 * chunks in question are moved to just behind the write cursor instead.  A
 * packet in several chunks goes or stays as a whole.  When there is no room
 * beside what is guaranteed, nothing is stored.  DISCARD: no write takes the
 * room that others are short of to their shares.
 *
 * False: no memory.
 */
bool trace_buffer_guarantee(struct trace_buffer *tb, uint64_t share,
    uint32_t percent) MUST_CHECK;
/*
 * Tells that a producer writes no more: it counts as one together with all
 * others of its share that were retired.
 */
void trace_buffer_retire(struct trace_buffer *tb, uint64_t producer);

/*
 * Commits one chunk.  A chunk that was scraped may come again, with more in it:
 * what is unread is extended in place.  One that was read to its end moves to
 * the write cursor (RING), where Perfetto's buffer rewrites it in place: what it
 * brings is as new as any other, and in its old place, next to be overwritten,
 * it would be lost a lap too early.
 *
 * Returns false when nothing of it was stored (DISCARD and full, larger than the
 * buffer, no room beside what is guaranteed to others, no memory for a new
 * sequence); the statistics say why.
 */
bool trace_buffer_write(struct trace_buffer *tb, const struct tb_origin *origin,
    const struct tb_chunk *chunk);

/* Patches of one chunk; borrowed. */
struct tb_patches {
	const struct tb_patch *all;
	size_t n;
	bool more; /* others follow: keep the sequence stalled */
};

/*
 * Patches a chunk that was committed before.  All or nothing: false when the
 * chunk is gone or a patch lies outside it.
 */
bool trace_buffer_patch(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t chunk_id, const struct tb_patches *patches);

/*
 * Whether the chunk is there, or was, and a later version of it would be taken:
 * it was scraped, or is to be patched.
 */
bool trace_buffer_may_add(const struct trace_buffer *tb, uint64_t producer,
    uint32_t writer, uint32_t chunk_id);

/*
 * Gives up the rest of the sequence's scraped chunks: later chunks wait for it
 * no longer.  A rest that comes all the same is taken.
 */
void trace_buffer_give_up(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer);

/*
 * The writer was unregistered.  Whoever has its number next counts its chunks
 * from 0 again: with the first id that was there already another sequence
 * begins, and nobody completes or patches chunks of the old one any more.
 */
void trace_buffer_writer_gone(struct trace_buffer *tb, uint64_t producer,
    uint32_t writer);

/*
 * Tells that a producer is gone, and patches no chunks any more.  Packets that
 * wait for it are dropped, so that those behind them can be read, the first of
 * which says so; of them not a byte is known to be whole.  Cost: a look at
 * every sequence, and at every chunk of the producer's.
 */
void trace_buffer_producer_gone(struct trace_buffer *tb, uint64_t producer);

/*
 * Declares that no commit and no patch comes any more: what is behind a packet
 * that waits for the rest of it, or behind a chunk that was scraped half, is read
 * by the next pass all the same.  That packet is dropped, and the one behind it
 * says so.
 * Cost: a look at every sequence.
 */
void trace_buffer_no_more(struct trace_buffer *tb);

/* Starts a pass over the buffer; stalls met in earlier passes are retried. */
void trace_buffer_begin_read(struct trace_buffer *tb);
/* The next packet, consumed.  false: nothing more can be read for now. */
bool trace_buffer_read(struct trace_buffer *tb, struct tb_packet *out);
/*
 * Whether the next pass may read on where this one stalled: the chunk or patch
 * that was missing has come since.  O(1).
 */
bool trace_buffer_needs_pass(const struct trace_buffer *tb);

/*
 * Bytes (headers included) of chunks that hold something unread, stalled ones
 * too.  O(1).
 */
uint64_t trace_buffer_unread(const struct trace_buffer *tb);
/*
 * Whether committing a chunk of len payload bytes now would overwrite anything
 * unread (RING), or would be discarded for lack of room (DISCARD).
 */
bool trace_buffer_would_lose(const struct trace_buffer *tb, size_t len);

/*
 * RING: about how many bytes, chunk headers included, go in before something
 * unread would be overwritten; at most `most`.  Costs a look at each chunk in
 * them.
 */
uint64_t trace_buffer_room(const struct trace_buffer *tb, uint64_t most);

/*
 * RING, when a pass has read all it can: moves what is left (it waits for
 * further fragments or patches) to where it is overwritten last, so that the
 * room around it can be used.  False when that would not help: chunks hold more
 * than half of the buffer.  Clones do not get any more what was read before; one
 * that is under way is filled.
 * Cost: the bytes that are left.
 */
bool trace_buffer_compact(struct trace_buffer *tb);

/*
 * A copy that can only be read, of all that the ring holds at this time: chunks
 * that were read but not overwritten, too.  (Except those that a compaction has
 * passed, and those of writers that are forgotten, as TB_KEEP_LEFT others have
 * had all their chunks read since.)  Nothing is waited for in it, as after no_more().
 * Its statistics are the source's so far, with nothing read, and with all as
 * overwritten that the ring does not hold any more.
 *
 * Empty at first, but for the sequences (the cost of this call): fill() takes the
 * chunks, and until it has, nothing but fill() and free() may be called for the
 * copy.  A write to the source that is about to overwrite something takes it
 * along before.  One copy of a buffer at a time.  NULL: no memory, or another
 * copy of it is under way.
 */
struct trace_buffer *trace_buffer_clone(struct trace_buffer *tb) MUST_CHECK;
/* Clones, but moves the contents: tb is as after clear().  NULL: no change. */
struct trace_buffer *trace_buffer_take(struct trace_buffer *tb) MUST_CHECK;

enum tb_fill {
	TB_FILL_MORE,
	TB_FILL_DONE,
	TB_FILL_FAILED, /* no memory, or the source was freed meanwhile */
};

/* Whether a copy of it is under way. */
bool trace_buffer_is_copied(const struct trace_buffer *tb);
/* Takes about so many bytes more of what the copy is of. */
enum tb_fill trace_buffer_fill(struct trace_buffer *copy, uint64_t bytes)
    MUST_CHECK;
/*
 * Forgets all chunks (no loss is reported for them); sequences are kept.  A clone
 * that is under way is filled before.
 */
void trace_buffer_clear(struct trace_buffer *tb);

/* Live until the next call that is not const. */
const struct tb_stats *trace_buffer_stats(const struct trace_buffer *tb);
/* Bookkeeping outside the ring, in bytes. */
size_t trace_buffer_overhead(const struct trace_buffer *tb);
size_t trace_buffer_sequences(const struct trace_buffer *tb);

/*
 * The ring, and how far the first lap through it has got: from there on its
 * memory was never touched.  For an owner who has that made before it is needed;
 * what is in it is the buffer's alone.
 */
struct tb_memory {
	const uint8_t *ring;
	uint64_t size;
	uint64_t reached;
	uint64_t to_come; /* at most so much of the rest will be touched */
};
/* Valid until the buffer is freed or its contents are taken. */
struct tb_memory trace_buffer_memory(const struct trace_buffer *tb);

/*
 * Called with every whole packet about to be overwritten unread, in sequence
 * order (for the state-merging VM).  fn must not call into tb.
 */
typedef void (*tb_overwrite_fn)(void *arg, const struct tb_packet *packet);
void trace_buffer_on_overwrite(struct trace_buffer *tb, tb_overwrite_fn fn,
    void *arg);

#endif /* SERVICE_BUFFER_TRACE_BUFFER_H */
