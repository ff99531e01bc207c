#include "transport/buffer/tb_sequence.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/buffer/tb_share.h"

#define HASH_START 256u
/* Larger queues are freed when their sequence becomes empty. */
#define QUEUE_KEEP 4096u

static bool
block_add(struct tb_sequences *t)
{
	struct tb_sequence **blocks;

	blocks = realloc(t->blocks, (t->n_blocks + 1) * sizeof(*blocks));
	if (blocks == NULL)
		return false;
	t->blocks = blocks;
	blocks[t->n_blocks] = aligned_alloc(64,
	    TB_SEQ_BLOCK * sizeof(struct tb_sequence));
	if (blocks[t->n_blocks] == NULL)
		return false;
	t->n_blocks++;
	return true;
}

bool
tb_sequences_init(struct tb_sequences *t)
{
	memset(t, 0, sizeof(*t));
	t->free = t->oldest = t->youngest = TB_NO_SEQ;
	/*
	 * Producers choose their writers' ids: the seed keeps them from
	 * choosing ids that collide.  Without it the table works all the same.
	 */
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) < 0)
		t->seed = (uintptr_t)t;
	if ((t->hash = calloc(HASH_START, sizeof(*t->hash))) == NULL)
		return false;
	t->hash_mask = HASH_START - 1;
	return true;
}

static void
queue_free(struct tb_sequence *s)
{
	if (s->queue != s->small)
		free(s->queue);
	s->queue = s->small;
	s->mask = TB_INLINE_QUEUE - 1;
	s->head = 0;
}

void
tb_sequences_done(struct tb_sequences *t)
{
	uint32_t i;

	/* Free slots have the small queue. */
	for (i = 0; i < t->n_slots; i++)
		queue_free(tb_sequence_at(t, i));
	for (i = 0; i < t->n_blocks; i++)
		free(t->blocks[i]);
	free(t->blocks);
	free(t->hash);
	tb_shares_free(t->shares);
	memset(t, 0, sizeof(*t));
}

/* ---- Hash ---- */

static inline uint32_t
hash_of(const struct tb_sequences *t, uint64_t producer, uint32_t writer)
{
	uint64_t h = (producer ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);

	h ^= h >> 32;
	h = (h + writer) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(h >> 32);
}

static inline bool
is_origin(const struct tb_sequence *s, uint64_t producer, uint32_t writer)
{
	return s->origin.producer == producer && s->origin.writer == writer;
}

struct tb_sequence *
tb_sequences_find(const struct tb_sequences *t, uint64_t producer,
    uint32_t writer)
{
	uint32_t i = hash_of(t, producer, writer);
	struct tb_sequence *s;

	for (;; i++) {
		i &= t->hash_mask;
		if (t->hash[i] == 0)
			return NULL;
		s = tb_sequence_at(t, t->hash[i] - 1);
		if (LIKELY(is_origin(s, producer, writer)))
			return s;
	}
}

static void
hash_put(struct tb_sequences *t, const struct tb_sequence *s)
{
	uint32_t i = hash_of(t, s->origin.producer, s->origin.writer);

	while (t->hash[i & t->hash_mask] != 0)
		i++;
	t->hash[i & t->hash_mask] = s->index + 1;
}

/* Keeps the table at most half full. */
static bool
hash_grow(struct tb_sequences *t)
{
	uint32_t old_mask = t->hash_mask, *old = t->hash, *hash, i;

	if (t->count * 2 < old_mask)
		return true;
	hash = calloc(((size_t)old_mask + 1) * 2, sizeof(*hash));
	if (hash == NULL)
		return false;
	t->hash = hash;
	t->hash_mask = old_mask * 2 + 1;
	for (i = 0; i <= old_mask; i++)
		if (old[i] != 0)
			hash_put(t, tb_sequence_at(t, old[i] - 1));
	free(old);
	return true;
}

static void
hash_remove(struct tb_sequences *t, const struct tb_sequence *s)
{
	uint32_t mask = t->hash_mask, hole, i, home;
	const struct tb_sequence *o;

	hole = hash_of(t, s->origin.producer, s->origin.writer) & mask;
	while (t->hash[hole] != s->index + 1)
		hole = (hole + 1) & mask;
	/* Close the hole with entries that were pushed past it. */
	for (i = (hole + 1) & mask; t->hash[i] != 0; i = (i + 1) & mask) {
		o = tb_sequence_at(t, t->hash[i] - 1);
		home = hash_of(t, o->origin.producer, o->origin.writer);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->hash[hole] = t->hash[i];
		hole = i;
	}
	t->hash[hole] = 0;
}

/* ---- Empty sequences ---- */

static void
empty_add(struct tb_sequences *t, struct tb_sequence *s)
{
	s->flags |= TB_SEQ_EMPTY;
	s->prev = t->youngest;
	s->next = TB_NO_SEQ;
	if (t->youngest != TB_NO_SEQ)
		tb_sequence_at(t, t->youngest)->next = s->index;
	else
		t->oldest = s->index;
	t->youngest = s->index;
	t->n_empty++;
}

static void
empty_remove(struct tb_sequences *t, struct tb_sequence *s)
{
	s->flags &= ~(uint32_t)TB_SEQ_EMPTY;
	if (s->prev != TB_NO_SEQ)
		tb_sequence_at(t, s->prev)->next = s->next;
	else
		t->oldest = s->next;
	if (s->next != TB_NO_SEQ)
		tb_sequence_at(t, s->next)->prev = s->prev;
	else
		t->youngest = s->prev;
	t->n_empty--;
}

void
tb_sequences_sweep(struct tb_sequences *t, uint64_t oldest)
{
	struct tb_sequence *s;

	if (LIKELY(t->n_empty <= TB_KEEP_EMPTY + TB_SWEEP_EMPTY))
		return;
	while (t->n_empty > TB_KEEP_EMPTY) {
		s = tb_sequence_at(t, t->oldest);
		/* Clones will want to know whose chunks those are. */
		if (s->end > oldest && t->n_empty <= TB_KEEP_LEFT)
			return;
		empty_remove(t, s);
		if ((s->flags & TB_SEQ_REPLACED) == 0)
			hash_remove(t, s);
		queue_free(s);
		if (t->shares != NULL)
			tb_shares_leave(t->shares, s->owner);
		s->next = t->free;
		t->free = s->index;
		t->count--;
	}
}

/* ---- Making ---- */

static struct tb_sequence *
slot_take(struct tb_sequences *t)
{
	struct tb_sequence *s;

	if (t->free != TB_NO_SEQ) {
		s = tb_sequence_at(t, t->free);
		t->free = s->next;
		return s;
	}
	/* chunks refer to slot + 1 in the hash, so the last index is void */
	if (t->n_slots == TB_NO_SEQ - 1)
		return NULL;
	if (t->n_slots == t->n_blocks * TB_SEQ_BLOCK && !block_add(t))
		return NULL;
	s = tb_sequence_at(t, t->n_slots);
	s->index = t->n_slots++;
	return s;
}

struct tb_sequence *
tb_sequences_get(struct tb_sequences *t, const struct tb_origin *origin)
{
	struct tb_sequence *s;
	uint32_t index;

	s = tb_sequences_find(t, origin->producer, origin->writer);
	if (LIKELY(s != NULL))
		return s;
	if (!hash_grow(t) || (s = slot_take(t)) == NULL)
		return NULL;
	index = s->index;
	memset(s, 0, sizeof(*s));
	s->index = index;
	s->origin = *origin;
	s->stalled_at = TB_NO_POSITION;
	s->queue = s->small;
	s->mask = TB_INLINE_QUEUE - 1;
	if (t->shares != NULL)
		s->owner = tb_shares_join(t->shares, origin);
	t->count++;
	hash_put(t, s);
	empty_add(t, s);
	return s;
}

struct tb_sequence *
tb_sequences_replace(struct tb_sequences *t, struct tb_sequence *s)
{
	struct tb_origin origin = s->origin;

	hash_remove(t, s);
	s->flags |= TB_SEQ_REPLACED;
	return tb_sequences_get(t, &origin);
}

/* In no list, as nothing in a copy is ever swept. */
static void
copy_sequence(struct tb_sequence *s, const struct tb_sequence *from)
{
	*s = (struct tb_sequence){
		.origin = from->origin,
		.queue = s->small,
		.mask = TB_INLINE_QUEUE - 1,
		.index = from->index,
		.loss = from->loss,
		.lost_before = from->lost_before,
		.stalled_at = TB_NO_POSITION,
		.first = from->first,
		.born = from->born,
		.prev = TB_NO_SEQ,
		.next = TB_NO_SEQ,
	};
}

bool
tb_sequences_copy(struct tb_sequences *to, const struct tb_sequences *from)
{
	size_t hash_bytes = ((size_t)from->hash_mask + 1) * sizeof(*to->hash);
	uint32_t i;

	*to = *from;
	to->shares = NULL; /* nothing is written to a copy */
	to->blocks = NULL;
	to->n_blocks = to->n_slots = to->n_empty = 0;
	to->oldest = to->youngest = TB_NO_SEQ;
	if ((to->hash = malloc(hash_bytes)) == NULL)
		goto fail;
	memcpy(to->hash, from->hash, hash_bytes);
	for (i = 0; i < from->n_slots; i++) {
		if (i == to->n_blocks * TB_SEQ_BLOCK && !block_add(to))
			goto fail;
		to->n_slots++;
		copy_sequence(tb_sequence_at(to, i), tb_sequence_at(from, i));
	}
	return true;
fail:
	tb_sequences_done(to);
	return false;
}

/* ---- Queue ---- */

bool
tb_queue_reserve(struct tb_sequence *s)
{
	uint32_t cap = s->mask + 1, i;
	uint64_t *queue;

	if (LIKELY(s->len < cap))
		return true;
	if (cap > UINT32_MAX / 4 ||
	    (queue = malloc((size_t)cap * 2 * sizeof(*queue))) == NULL)
		return false;
	for (i = 0; i < s->len; i++)
		queue[i] = tb_queue_at(s, i);
	queue_free(s);
	s->queue = queue;
	s->mask = cap * 2 - 1;
	return true;
}

void
tb_queue_insert(struct tb_sequences *t, struct tb_sequence *s, uint32_t i,
    uint64_t off)
{
	uint32_t j;

	if (UNLIKELY((s->flags & TB_SEQ_EMPTY) != 0))
		empty_remove(t, s);
	/* Move the shorter side. */
	if (i >= s->len / 2) {
		for (j = s->len; j > i; j--)
			s->queue[(s->head + j) & s->mask] =
			    tb_queue_at(s, j - 1);
	} else {
		s->head--;
		for (j = 0; j < i; j++)
			s->queue[(s->head + j) & s->mask] =
			    tb_queue_at(s, j + 1);
	}
	s->queue[(s->head + i) & s->mask] = off;
	s->len++;
}

static void
queue_emptied(struct tb_sequences *t, struct tb_sequence *s)
{
	if (s->mask >= QUEUE_KEEP)
		queue_free(s);
	empty_add(t, s);
}

void
tb_queue_pop(struct tb_sequences *t, struct tb_sequence *s)
{
	s->head++;
	s->chain_len = 0;
	if (--s->len == 0)
		queue_emptied(t, s);
}

void
tb_queue_clear(struct tb_sequences *t, struct tb_sequence *s)
{
	s->chain_len = 0;
	if (s->len == 0)
		return;
	s->len = 0;
	queue_emptied(t, s);
}
