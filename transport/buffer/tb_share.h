/*
 * tb_share: accounts of how many bytes of the buffer each producer holds, and
 * of its share, the bytes that no other producer may take from it.
 *
 *   group (machine account, tb_origin.share) -> owner (producer) -> sequences
 *
 * The groups that hold something get equal parts of the buffer; a group's
 * percent of its part is shared equally by its owners that hold something.
 * Producers that were retired are one owner together, the group's pool.  In a
 * ring, an owner holds its chunks that are in the buffer; under DISCARD, all
 * that it ever wrote.
 */
#ifndef TRANSPORT_BUFFER_TB_SHARE_H
#define TRANSPORT_BUFFER_TB_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct tb_origin;

/* tb_sequence.owner: no owner, so nothing is guaranteed. */
#define TB_OWNER_NONE 0u

/* An owner or a group, in tb_shares.all; index 0 is not used. */
struct tb_share {
	uint64_t key;    /* tb_origin's producer, or share */
	uint64_t held;   /* owner: bytes */
	uint64_t bytes;  /* owner: its share, as of `generation` */
	uint32_t generation;
	uint32_t group;  /* owner: index of its group */
	uint32_t n;      /* owner: sequences; group: owners holding bytes */
	uint32_t pool;   /* group, retired owner: index of the pool; 0: none */
	uint32_t next;   /* index: in the chain, or of the free list */
	uint8_t percent; /* group: guaranteed */
	bool is_group;
	bool hashed;     /* in a chain; a pool is not */
};

struct tb_shares {
	struct tb_share *all;
	uint32_t n;    /* slots in use or free, 0 included */
	uint32_t cap;
	uint32_t free; /* 0: none */
	uint32_t *chains; /* of indices, as `all` moves: not a hash_map */
	uint32_t mask;
	uint32_t active;     /* groups that hold something */
	uint32_t members;    /* owners that hold something */
	uint32_t generation; /* grows when any share changes */
	uint64_t size;       /* of the buffer, bytes */
	bool keeps;          /* DISCARD: bytes held only grow */
	uint64_t missing;    /* bytes by which owners are below their shares, */
	uint32_t missing_generation; /* as of this generation */
};

/* NULL: no memory. */
struct tb_shares *tb_shares_new(uint64_t size, bool keeps) MUST_CHECK;
void tb_shares_free(struct tb_shares *t);
/* Sets the percent of a group, made if need be.  false: no memory. */
bool tb_shares_set(struct tb_shares *t, uint64_t share, uint32_t percent)
    MUST_CHECK;
/*
 * The owner of a new sequence; TB_OWNER_NONE: its group has no percent, or no
 * memory.
 */
uint32_t tb_shares_join(struct tb_shares *t, const struct tb_origin *origin);
/* Tells that one of the owner's sequences is forgotten. */
void tb_shares_leave(struct tb_shares *t, uint32_t owner);
/*
 * Moves the bytes of a producer that is gone to its group's pool.  Without
 * memory for a pool the producer keeps its own account.
 */
void tb_shares_retire(struct tb_shares *t, uint64_t producer);
/* Sets what every owner holds to 0. */
void tb_shares_clear(struct tb_shares *t);

/* Under DISCARD: takes bytes that the owner wrote off `missing`. */
void tb_shares_fill(struct tb_shares *t, struct tb_share *s, uint64_t bytes);
/* Notes that the owner holds something now: all shares change. */
void tb_shares_came(struct tb_shares *t, struct tb_share *s);
/* Notes that the owner holds nothing any more: all shares change. */
void tb_shares_went(struct tb_shares *t, struct tb_share *s);
/* The owner's share in bytes. */
uint64_t tb_shares_bytes_of(struct tb_shares *t, struct tb_share *s);
/*
 * Under DISCARD: whether `bytes` of this owner fit into `room`, the bytes that
 * are free, beside those that other owners hold less than their shares.
 * Reserves nothing.
 */
bool tb_shares_leave_room(struct tb_shares *t, uint32_t owner, uint64_t bytes,
    uint64_t room);

/* The owner, or the pool that it was retired into; not for NONE. */
static inline struct tb_share *
tb_share_at(const struct tb_shares *t, uint32_t owner)
{
	struct tb_share *s = &t->all[owner];

	return UNLIKELY(s->pool != 0) ? &t->all[s->pool] : s;
}

/* Counts chunks of so many bytes that were stored. */
static inline void
tb_shares_add(struct tb_shares *t, uint32_t owner, uint64_t bytes)
{
	struct tb_share *s;

	if (owner == TB_OWNER_NONE)
		return;
	s = tb_share_at(t, owner);
	if (t->keeps)
		tb_shares_fill(t, s, bytes);
	if (s->held == 0)
		tb_shares_came(t, s);
	s->held += bytes;
}

static inline void
tb_shares_sub(struct tb_shares *t, uint32_t owner, uint64_t bytes)
{
	struct tb_share *s;

	if (owner == TB_OWNER_NONE || t->keeps)
		return;
	s = tb_share_at(t, owner);
	s->held -= bytes;
	if (s->held == 0)
		tb_shares_went(t, s);
}

/* True: another owner than this one holds something. */
static inline bool
tb_shares_matter(const struct tb_shares *t, uint32_t owner)
{
	return t->members > (owner != TB_OWNER_NONE &&
	    tb_share_at(t, owner)->held > 0);
}

#endif /* TRANSPORT_BUFFER_TB_SHARE_H */
