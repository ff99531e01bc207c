/*
 * tb_share: how much of the buffer each producer holds, and how much nobody
 * else may take of that.
 *
 *   group (tb_origin's share) -> owner (a producer) -> sequences
 *
 * A group's part of the buffer is shared by all groups that hold something, an
 * owner's by all owners of its group that do.  Those that were retired are one
 * owner together, the group's pool.  Where the buffer overwrites, what an owner
 * holds are its chunks; where it does not, all that it ever wrote.
 */
#ifndef SERVICE_BUFFER_TB_SHARE_H
#define SERVICE_BUFFER_TB_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct tb_origin;

/* tb_sequence.owner: none, so nothing is guaranteed. */
#define TB_OWNER_NONE 0u

/* An owner or a group; index 0 is neither. */
struct tb_share {
	uint64_t key;    /* producer, or share */
	uint64_t held;   /* owner: bytes */
	uint64_t bytes;  /* owner: its share, of this generation */
	uint32_t generation;
	uint32_t group;  /* owner: its index */
	uint32_t n;      /* owner: sequences; group: owners that hold something */
	uint32_t pool;   /* group: its pool; a retired owner: what it is in */
	uint32_t next;   /* with the same hash; or free */
	uint8_t percent; /* group */
	bool is_group;
	bool hashed;     /* a pool is not */
};

struct tb_shares {
	struct tb_share *all;
	uint32_t n;    /* slots in use or free, 0 included */
	uint32_t cap;
	uint32_t free; /* 0: none */
	uint32_t *chains; /* of indices, as `all` moves: not a hash_map */
	uint32_t mask;
	uint32_t active;     /* groups that hold something */
	uint32_t members;    /* owners that do */
	uint32_t generation; /* shares changed */
	uint64_t size;       /* of the buffer */
	bool keeps;          /* it does not overwrite: held only grows */
	uint64_t missing;    /* to all owners' shares, of that generation */
	uint32_t missing_generation;
};

/* NULL: no memory. */
struct tb_shares *tb_shares_new(uint64_t size, bool keeps) MUST_CHECK;
void tb_shares_free(struct tb_shares *t);
size_t tb_shares_bytes(const struct tb_shares *t);
bool tb_shares_set(struct tb_shares *t, uint64_t share, uint32_t percent)
    MUST_CHECK;
/* The owner of a new sequence, or TB_OWNER_NONE. */
uint32_t tb_shares_join(struct tb_shares *t, const struct tb_origin *origin);
/* Tells that one of the owner's sequences is forgotten. */
void tb_shares_leave(struct tb_shares *t, uint32_t owner);
void tb_shares_retire(struct tb_shares *t, uint64_t producer);
/* Sets what every owner holds to 0. */
void tb_shares_clear(struct tb_shares *t);

/*
 * Counts bytes towards the owner's share, in a buffer that does not overwrite.
 */
void tb_shares_fill(struct tb_shares *t, struct tb_share *s, uint64_t bytes);
void tb_shares_came(struct tb_shares *t, struct tb_share *s);
void tb_shares_went(struct tb_shares *t, struct tb_share *s);
uint64_t tb_shares_bytes_of(struct tb_shares *t, struct tb_share *s);
/*
 * Returns, for a buffer that does not overwrite, whether there is room for so
 * many bytes of this owner beside what the others are short of.  Asking takes
 * nothing.
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

/* Chunks of that many bytes came. */
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

#endif /* SERVICE_BUFFER_TB_SHARE_H */
