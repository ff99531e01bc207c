/*
 * tb_record: the records that the ring consists of (the specification's
 * TBChunk).
 *
 * The ring is a gapless row of records from offset 0 to the high-water mark.
 * A record begins with 8 bytes that every kind has; only a chunk has the rest.
 * Records are multiples of 8 bytes, so the smallest remainder that an
 * overwrite can leave still holds a valid record.
 *
 * A chunk's header takes 16 bytes, no more than the headers of a page and of
 * its chunk in shared memory: a ring of N pages holds N pages' chunks.
 */
#ifndef TRANSPORT_BUFFER_TB_RECORD_H
#define TRANSPORT_BUFFER_TB_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define TB_ALIGN 8u

enum tb_kind {
	TB_FREE,    /* free space of any size */
	TB_PADDING, /* free space that writes cut off, or the end of the ring */
	TB_CHUNK,
	TB_LEFT, /* a chunk that left its sequence: free, kept for clones */
};

/* Local chunk flags, beside the three of enum tb_chunk_flags. */
enum tb_local_flags {
	/*
	 * Incomplete, and the rest is probably lost: reading does not wait for
	 * it, but a commit of it is still taken.
	 */
	TB_GIVEN_UP = 0x08,
	/* Chunks before this one were lost; the cause is in its sequence. */
	TB_LOST_BEFORE = 0x10,
	/* Data after the kept fragments could not be tokenized. */
	TB_CORRUPT = 0x20,
	/* The writer gave up its last packet (TB_DROP_MARKER). */
	TB_ABORTED = 0x40,
	/* Scraped: more may come; nothing is read past the kept fragments. */
	TB_INCOMPLETE = 0x80,
};

/*
 * Invariants of a chunk: read <= used <= capacity; read > 0 means that the
 * chunk was opened, i.e. that a gap before it was reported and no chunk of its
 * sequence may be put before it any more.
 *
 * A TB_LEFT record keeps its chunk's fields but for `read`: the number of units
 * from its begin on that are known to be free.  TB_FREE and TB_PADDING have no
 * chunk's fields; their size takes the bits of units, used and read, as it may
 * be larger than 32 GiB.
 */
struct tb_record {
	uint64_t kind : 2;   /* enum tb_kind */
	uint64_t flags : 8;  /* chunk: tb_chunk_flags | tb_local_flags */
	uint64_t units : 16; /* size of the record / TB_ALIGN */
	uint64_t used : 19;  /* chunk: bytes of fragments */
	uint64_t read : 19;  /* chunk: of which consumed */
	/* chunk only, followed by the payload */
	uint32_t seq; /* index of its sequence */
	uint32_t id;  /* chunk id */
};

_Static_assert(sizeof(struct tb_record) == 16, "record header");
_Static_assert(sizeof(struct tb_record) % TB_ALIGN == 0, "record alignment");

#define TB_STRIDE_MAX ((1u << 19) - 1) /* units that fit into `read` */

/* Most payload bytes of a chunk: no frame, and no page, has room for more. */
#define TB_CHUNK_MAX (UINT16_MAX * TB_ALIGN - sizeof(struct tb_record))

/* Bytes that a chunk of len payload bytes takes in the ring. */
static inline uint64_t
tb_outer_size(size_t len)
{
	return ((uint64_t)len + sizeof(struct tb_record) + TB_ALIGN - 1) &
	    ~(uint64_t)(TB_ALIGN - 1);
}

static inline uint64_t
tb_record_size(const struct tb_record *r)
{
	uint64_t units = r->units;

	if (UNLIKELY(r->kind < TB_CHUNK))
		units |= (uint64_t)r->used << 16 | (uint64_t)r->read << 35;
	return units * TB_ALIGN;
}

static inline void
tb_record_init(struct tb_record *r, enum tb_kind kind, uint64_t bytes)
{
	uint64_t units = bytes / TB_ALIGN;

	r->kind = kind;
	r->flags = 0;
	r->units = units & 0xffff;
	r->used = units >> 16 & 0x7ffff;
	r->read = units >> 35;
}

/* Turns a chunk that leaves its sequence into free space, kept for clones. */
static inline void
tb_record_leave(struct tb_record *r)
{
	r->kind = TB_LEFT;
	r->read = r->units;
}

/* Bytes to the next record that may hold a chunk. */
static inline uint64_t
tb_record_stride(const struct tb_record *r)
{
	return r->kind == TB_LEFT ? (uint64_t)r->read * TB_ALIGN :
	    tb_record_size(r);
}

static inline uint8_t *
tb_payload(struct tb_record *r)
{
	return (uint8_t *)r + sizeof(*r);
}

static inline uint32_t
tb_capacity(const struct tb_record *r)
{
	return (uint32_t)(tb_record_size(r) - sizeof(*r));
}

/* Whether the rest of the chunk may come, and reading waits for it. */
static inline bool
tb_may_grow(const struct tb_record *r)
{
	return (r->flags & (TB_INCOMPLETE | TB_GIVEN_UP)) == TB_INCOMPLETE;
}

static inline bool
tb_has_unread(const struct tb_record *r)
{
	return r->read < r->used;
}

#endif /* TRANSPORT_BUFFER_TB_RECORD_H */
