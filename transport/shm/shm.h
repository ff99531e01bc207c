/*
 * shm: the shared memory between a producer and its service, and the page and
 * chunk protocol in it (reference api-and-abi.md, "Shared memory").
 *
 * Both sides are here: the reader (service, relay) and the writer (client
 * library).  The other side is hostile: it may change any byte at any time.
 * Every word of a header is loaded once, atomically, and checked; payloads are
 * handed out as pointers into memory that may change under the reader: copy
 * first, and parse the copy.  A mapping cannot shrink: only memfds sealed
 * against shrinking are mapped.
 */
#ifndef TRANSPORT_SHM_SHM_H
#define TRANSPORT_SHM_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct shm;

#define SHM_PAGE_UNIT 4096u            /* pages are 1, 2, 4 or 8 of these */
#define SHM_PAGE_MAX 32768u
#define SHM_SIZE_DEFAULT (256u * 1024u)
#define SHM_SIZE_MAX (32u * 1024u * 1024u)
#define SHM_PAGE_HEADER_BYTES 8u
#define SHM_CHUNK_HEADER_BYTES 8u
#define SHM_CHUNKS_PER_PAGE_MAX 14u
#define SHM_MAX_WRITER_ID 32767u

/* Page layouts: how many chunks a page is divided into. */
enum shm_layout {
	SHM_NOT_PARTITIONED = 0,
	SHM_DIV1 = 1,
	SHM_DIV2 = 2,
	SHM_DIV4 = 3,
	SHM_DIV7 = 4,
	SHM_DIV14 = 5,
};

enum shm_chunk_state {
	SHM_FREE = 0,
	SHM_BEING_WRITTEN = 1,
	SHM_BEING_READ = 2,
	SHM_COMPLETE = 3,
};

/* Flags of a chunk's header: how its first and last fragment are cut. */
enum shm_chunk_flag {
	SHM_FIRST_CONTINUES_FROM_PREV = 1,
	SHM_LAST_CONTINUES_ON_NEXT = 2,
	SHM_NEEDS_PATCHING = 4,
};

/* The most that the count of fragments can hold. */
#define SHM_FRAGMENTS_MAX 1023u
/*
 * A fragment of this size (as a varint of 4 bytes, the last of its chunk)
 * means that the writer dropped the packet.
 */
#define SHM_SIZE_DROP_PACKET 0x0fffffffu

/*
 * Makes a sealed memfd of size bytes; size and page_size must be valid.  The
 * caller owns it (shm_free()); NULL: no memory or no descriptor.
 */
struct shm *shm_new(size_t size, size_t page_size) MUST_CHECK;
/*
 * Maps a descriptor that the other side made.  Owns fd on success, leaves it
 * alone on failure.  NULL with a sentence in err when it is no memfd, not
 * sealed against shrinking, or of a wrong size.
 */
struct shm *shm_adopt(int fd, size_t page_size, char *err, size_t err_size)
    MUST_CHECK;
/* Unmaps and closes. */
void shm_free(struct shm *s);

int shm_fd(const struct shm *s); /* borrowed */
size_t shm_size(const struct shm *s);
size_t shm_page_size(const struct shm *s);
size_t shm_pages(const struct shm *s);

/*
 * The sizes in force for a hint, as behaviour.md says: page a power-of-two
 * multiple of 4 KiB up to 32 KiB, total a multiple of it and at most 32 MiB;
 * anything else falls back to the defaults (256 KiB, 4 KiB).
 */
void shm_valid_sizes(size_t want_size, size_t want_page, size_t *size,
    size_t *page);

/* A chunk as its header described it when it was loaded, once. */
struct shm_chunk {
	uint32_t page;
	uint32_t index;
	uint16_t writer_id;
	uint32_t chunk_id;
	uint16_t num_fragments;
	uint8_t flags;          /* enum shm_chunk_flag */
	bool behind;            /* scraped: see shm_scrape() */
	const uint8_t *payload; /* may change while it is read */
	size_t len;
};

/* Reader: why a chunk was not handed out. */
enum shm_take {
	SHM_TAKEN,
	SHM_BAD_INDEX,   /* page or chunk index outside the memory or layout */
	SHM_NOT_COMPLETE,/* state is free or being written: nothing to take */
};

/*
 * Reader: moves a complete chunk to BEING_READ and describes it.  After the
 * copy call shm_release().
 */
enum shm_take shm_take(struct shm *s, uint32_t page, uint32_t index,
    struct shm_chunk *out) MUST_CHECK;
/* Reader: BEING_READ to COMPLETE, as if the chunk had not been taken. */
void shm_put_back(struct shm *s, uint32_t page, uint32_t index);
/*
 * Reader: BEING_READ to FREE; when all chunks of a page are free, the page may
 * be divided anew.
 */
void shm_release(struct shm *s, uint32_t page, uint32_t index);

/*
 * Reader: shows fn every chunk that holds something (being written or complete)
 * without changing any state (scraping at a flush or stop), each writer's in
 * the order in which they were begun.  fn's `complete` tells a finished chunk
 * from one still being written.  Chunks whose header was not yet written, or
 * changed while it was read, are skipped.
 *
 * fn returns false to leave this chunk for later: the writer's later ones are
 * not shown then, as a reader that has got one of these is past this one.
 *
 * in_order: also sets c->behind, which costs one more walk.  Set: an earlier
 * chunk of the same writer is still being written (a writer that patches in
 * memory keeps it so until it commits it), or this chunk was begun after the
 * first walk.  A reader that stores such a chunk loses the packets that
 * continue from the earlier chunk, so it leaves them to a later commit.
 * Without in_order c->behind is never set: a producer that does not answer may
 * never commit, so all that is there is taken.
 */
typedef bool (*shm_scrape_fn)(void *arg, const struct shm_chunk *c,
    bool complete);
void shm_scrape(struct shm *s, bool in_order, shm_scrape_fn fn, void *arg);

/*
 * As shm_scrape() for memory whose former reader has ended: chunks that it had
 * taken and not released count as complete.
 */
void shm_scrape_left(struct shm *s, shm_scrape_fn fn, void *arg);

/*
 * Reader: remembers a chunk whose contents were taken by a scrape and do not
 * change any more, so that its commit brings nothing new.  False: no memory; it
 * is not remembered, and its contents may be stored twice.
 */
bool shm_remember_scraped(struct shm *s, const struct shm_chunk *c) MUST_CHECK;
/* page and index have been found valid, as by shm_take(). */
bool shm_was_scraped(const struct shm *s, uint32_t page, uint32_t index);
void shm_forget_scraped(struct shm *s, uint32_t page, uint32_t index);

/*
 * Reader: describes the chunk in `data` (header included), as sent inside
 * CommitData under emulation.  -1 when it is shorter than a header.
 */
int shm_chunk_from_bytes(const uint8_t *data, size_t len, struct shm_chunk *out)
    MUST_CHECK;

/* ---- Writer ---- */

/* A chunk acquired for writing; header and payload are the writer's. */
struct shm_slot {
	uint32_t page;
	uint32_t index;
	uint8_t *payload;
	size_t len;
};

/*
 * Acquires a free chunk, partitioning a free page with `layout` when there is
 * one, and writes its header (no fragments yet).  false: all memory is taken.
 * Safe from any thread of the writing process.
 */
bool shm_acquire(struct shm *s, enum shm_layout layout, uint16_t writer_id,
    uint32_t chunk_id, uint8_t flags, struct shm_slot *out) MUST_CHECK;
/*
 * Publishes the count of fragments started so far (one more); does nothing
 * when it is SHM_FRAGMENTS_MAX already.
 */
void shm_add_fragment(struct shm *s, const struct shm_slot *slot);
/*
 * Publishes the count of fragments and the flags, in place of the two calls
 * beside it; up to SHM_FRAGMENTS_MAX.
 */
static inline void
shm_set_packets(const struct shm_slot *slot, uint16_t fragments, uint16_t flags)
{
	__atomic_store_n((uint16_t *)(void *)(slot->payload - 2),
	    (uint16_t)(fragments | flags << 10), __ATOMIC_RELEASE);
}
void shm_set_flag(struct shm *s, const struct shm_slot *slot, uint8_t flag);
/*
 * Whether the reader has a chunk that it did not free yet.  Where it has none
 * and shm_acquire() fails, writers hold all chunks.
 */
bool shm_has_complete(const struct shm *s);
/* BEING_WRITTEN to COMPLETE. */
void shm_complete(struct shm *s, const struct shm_slot *slot);

#endif /* TRANSPORT_SHM_SHM_H */
