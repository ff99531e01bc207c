#include "transport/buffer/tb_share.h"

#include <stdlib.h>

#include "transport/buffer/trace_buffer.h"

#define SLOTS_FIRST  8u
#define CHAINS_FIRST 16u

struct tb_shares *
tb_shares_new(uint64_t size, bool keeps)
{
	struct tb_shares *t;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->size = size;
	t->keeps = keeps;
	t->n = 1;
	t->cap = SLOTS_FIRST;
	t->mask = CHAINS_FIRST - 1;
	t->generation = 1;
	t->all = calloc(t->cap, sizeof(*t->all));
	t->chains = calloc(CHAINS_FIRST, sizeof(*t->chains));
	if (t->all == NULL || t->chains == NULL) {
		tb_shares_free(t);
		return NULL;
	}
	return t;
}

void
tb_shares_free(struct tb_shares *t)
{
	if (t == NULL)
		return;
	free(t->all);
	free(t->chains);
	free(t);
}

/* ---- finding ---- */

/* A multiplicative hash, as shares may be machine ids, which peers choose. */
static uint32_t *
chain_of(const struct tb_shares *t, uint64_t key, bool is_group)
{
	uint64_t h = (key * 2 + is_group) * UINT64_C(0x9e3779b97f4a7c15);

	return &t->chains[(uint32_t)(h >> 32) & t->mask];
}

/* 0: none. */
static uint32_t
find(const struct tb_shares *t, uint64_t key, bool is_group)
{
	uint32_t i = *chain_of(t, key, is_group);

	while (i != 0 && (t->all[i].key != key ||
	    t->all[i].is_group != is_group))
		i = t->all[i].next;
	return i;
}

static void
link_in(struct tb_shares *t, uint32_t i)
{
	uint32_t *chain = chain_of(t, t->all[i].key, t->all[i].is_group);

	t->all[i].next = *chain;
	*chain = i;
}

/* Without memory the chains stay long. */
static void
grow_chains(struct tb_shares *t)
{
	uint32_t n = (t->mask + 1) * 2, i;
	uint32_t *chains;

	if ((chains = calloc(n, sizeof(*chains))) == NULL)
		return;
	free(t->chains);
	t->chains = chains;
	t->mask = n - 1;
	for (i = 1; i < t->n; i++)
		if (t->all[i].hashed)
			link_in(t, i);
}

static bool
grow_slots(struct tb_shares *t)
{
	struct tb_share *all;

	if (t->cap > UINT32_MAX / 4)
		return false;
	all = reallocarray(t->all, (size_t)t->cap * 2, sizeof(*all));
	if (all == NULL)
		return false;
	t->all = all;
	t->cap *= 2;
	return true;
}

/* 0: no memory. */
static uint32_t
make(struct tb_shares *t, const struct tb_share *s)
{
	uint32_t i = t->free;

	if (i != 0) {
		t->free = t->all[i].next;
	} else {
		if (t->n == t->cap && !grow_slots(t))
			return 0;
		i = t->n++;
	}
	t->all[i] = *s;
	if (!s->hashed)
		return i;
	link_in(t, i);
	if (t->n > t->mask)
		grow_chains(t);
	return i;
}

static void
drop(struct tb_shares *t, uint32_t i)
{
	uint32_t *at = chain_of(t, t->all[i].key, t->all[i].is_group);

	if (t->all[i].hashed) {
		while (*at != i)
			at = &t->all[*at].next;
		*at = t->all[i].next;
	}
	t->all[i] = (struct tb_share){ .next = t->free };
	t->free = i;
}

/* ---- groups and owners ---- */

bool
tb_shares_set(struct tb_shares *t, uint64_t share, uint32_t percent)
{
	uint32_t i = find(t, share, true);

	/* A group without a guarantee takes no part. */
	if (i == 0 && percent == 0)
		return true;
	if (i == 0)
		i = make(t, &(struct tb_share){ .key = share,
		    .is_group = true, .hashed = true });
	if (i == 0)
		return false;
	if (t->all[i].percent != percent)
		t->generation++;
	t->all[i].percent = (uint8_t)percent;
	return true;
}

uint32_t
tb_shares_join(struct tb_shares *t, const struct tb_origin *origin)
{
	uint32_t i = find(t, origin->producer, false), group;

	if (i == 0) {
		if ((group = find(t, origin->share, true)) == 0)
			return TB_OWNER_NONE;
		i = make(t, &(struct tb_share){ .key = origin->producer,
		    .group = group, .hashed = true });
	}
	if (i == 0)
		return TB_OWNER_NONE;
	t->all[i].n++;
	return i;
}

void
tb_shares_leave(struct tb_shares *t, uint32_t owner)
{
	/* Bytes stay held where the buffer does not overwrite. */
	if (owner != TB_OWNER_NONE && --t->all[owner].n == 0 &&
	    (!t->keeps || t->all[owner].pool != 0))
		drop(t, owner);
}

void
tb_shares_retire(struct tb_shares *t, uint64_t producer)
{
	uint32_t i = find(t, producer, false), group, pool;
	uint64_t held;

	if (i == 0 || t->all[i].pool != 0)
		return;
	group = t->all[i].group;
	if ((pool = t->all[group].pool) == 0) {
		pool = make(t, &(struct tb_share){ .group = group });
		t->all[group].pool = pool;
	}
	if (pool == 0)
		return; /* no memory: the owner keeps its own account */
	if ((held = t->all[i].held) > 0)
		tb_shares_went(t, &t->all[i]);
	t->all[i].held = 0;
	t->all[i].pool = pool;
	if (held > 0)
		tb_shares_add(t, pool, held);
	if (t->all[i].n == 0)
		drop(t, i);
}

void
tb_shares_clear(struct tb_shares *t)
{
	uint32_t i;

	for (i = 1; i < t->n; i++) {
		t->all[i].held = 0;
		if (t->all[i].is_group)
			t->all[i].n = 0;
	}
	t->active = t->members = 0;
	t->generation++;
}

/* ---- how much ---- */

void
tb_shares_came(struct tb_shares *t, struct tb_share *s)
{
	t->generation++;
	t->members++;
	if (t->all[s->group].n++ == 0)
		t->active++;
}

void
tb_shares_went(struct tb_shares *t, struct tb_share *s)
{
	t->generation++;
	t->members--;
	if (--t->all[s->group].n == 0)
		t->active--;
}

uint64_t
tb_shares_bytes_of(struct tb_shares *t, struct tb_share *s)
{
	const struct tb_share *g;

	if (LIKELY(s->generation == t->generation))
		return s->bytes;
	g = &t->all[s->group];
	s->generation = t->generation;
	s->bytes = g->n == 0 ? 0 :
	    t->size / 100 * g->percent / t->active / g->n;
	return s->bytes;
}

static uint64_t
missing_to(struct tb_shares *t, struct tb_share *s)
{
	uint64_t share = tb_shares_bytes_of(t, s);

	return s->held < share ? share - s->held : 0;
}

static void
find_missing(struct tb_shares *t)
{
	uint32_t i;

	t->missing = 0;
	t->missing_generation = t->generation;
	for (i = 1; i < t->n; i++)
		if (!t->all[i].is_group && t->all[i].held > 0)
			t->missing += missing_to(t, &t->all[i]);
}

void
tb_shares_fill(struct tb_shares *t, struct tb_share *s, uint64_t bytes)
{
	uint64_t own;

	/* Else find_missing() counts anew before `missing` is next needed. */
	if (s->held == 0 || t->missing_generation != t->generation)
		return;
	own = missing_to(t, s);
	t->missing -= own < bytes ? own : bytes;
}

bool
tb_shares_leave_room(struct tb_shares *t, uint32_t owner, uint64_t bytes,
    uint64_t room)
{
	struct tb_share *s;
	uint64_t own = 0;

	if (t->missing_generation != t->generation)
		find_missing(t);
	if (owner != TB_OWNER_NONE) {
		s = tb_share_at(t, owner);
		/* An owner that holds nothing yet has no share to keep free. */
		own = s->held > 0 ? missing_to(t, s) : 0;
	}
	return bytes <= own || bytes + (t->missing - own) <= room;
}
