#include <string.h>

#include "relay/outbox_count.h"
#include "relay/outbox_internal.h"

/*
 * What goes when there is no room: chunks of the channel that takes most of it,
 * a block at a time; what is left of a block joins what was left of the one
 * before it.
 */

/* What is left of blocks is joined up to this size. */
#define JOIN_BYTES (8u * 1024u)

uint32_t
ob_cause(const struct outbox *o)
{
	return o->spool.error[0] != '\0' ? OB_LOSS(DISK) :
	    OB_LOSS(SPOOL_FULL);
}

bool
ob_can_drop(const struct outbox *o, struct ob_block *b)
{
	if (b->where != OB_ARENA || b->number != 0 || b->bare ||
	    b == o->reserved || b->used == 0)
		return false;
	b->bare = !ob_has_chunks(arena_at(&o->arena, b->page), b->used);
	return !b->bare;
}

/* The first or last block of a channel with something to drop in it. */
static struct ob_block *
victim_of(struct outbox *o, struct ob_channel *c, bool newest)
{
	struct ob_block *b;

	b = newest ? TAILQ_LAST(&c->blocks, ob_blocks) : c->unsent;
	while (b != NULL && b->number == 0) {
		if (ob_can_drop(o, b))
			return b;
		b = newest ? TAILQ_PREV(b, ob_blocks, link) :
		    TAILQ_NEXT(b, link);
	}
	return NULL;
}

/* Of the channel that takes most room, in memory and spool. */
static struct ob_block *
victim(struct outbox *o, bool newest)
{
	struct ob_block *found = NULL, *b;
	uint64_t most = 0, room;
	struct ob_channel *c;

	TAILQ_FOREACH (c, &o->channels, all) {
		room = (uint64_t)c->unsent_pages * ARENA_PAGE;
		if (c->unsent_pages == 0 || room <= most ||
		    (b = victim_of(o, c, newest)) == NULL)
			continue;
		most = room;
		found = b;
	}
	return found;
}

/* The block before it, when what is left of both can be one. */
static struct ob_block *
joins(struct outbox *o, struct ob_block *b)
{
	struct ob_block *before = TAILQ_PREV(b, ob_blocks, link);

	if (before == NULL || before->where != OB_ARENA || before->number != 0 ||
	    !before->bare || before == o->reserved ||
	    before->used >= JOIN_BYTES)
		return NULL;
	return before;
}

/* Where there is no page for what is left of a block: over the block itself. */
static void
rewrite(struct outbox *o, struct ob_block *b, const uint8_t *data, size_t len)
{
	struct arena_desc *d = ob_desc(o, b);

	atomic_store_explicit(&d->used, 0, memory_order_release);
	memcpy(arena_at(&o->arena, b->page), data, len);
	b->used = (uint32_t)len;
	atomic_store_explicit(&d->used, b->used, memory_order_release);
	b->bare = true;
	ob_block_close(o, b);
}

/* What is left of b, n bytes of scratch, and the block before it as one. */
static bool
join(struct outbox *o, struct ob_block *before, struct ob_block *b, size_t n,
    bool bare)
{
	size_t len = before->used, all;
	struct ob_block *now;

	if (len + n > JOIN_BYTES)
		return false;
	memcpy(o->rest, arena_at(&o->arena, before->page), len);
	memcpy(o->rest + len, o->scratch, n);
	all = ob_strip(o, b->channel, false, 0, o->rest, len + n, o->scratch);
	now = ob_block_replace(o, before, b, o->scratch, all);
	if (now == NULL) {
		memcpy(o->scratch, o->rest + len, n);
		return false;
	}
	now->bare = bare;
	return true;
}

bool
ob_keep_rest(struct outbox *o, struct ob_block *b, size_t n)
{
	struct ob_block *from = joins(o, b), *now;
	bool bare = o->stripped_all;

	if (n == 0) {
		ob_block_free(o, b);
		return true;
	}
	if (from != NULL && join(o, from, b, n, bare))
		return true;
	now = ob_block_replace(o, b, b, o->scratch, n);
	if (now != NULL)
		now->bare = bare;
	else if (b->page != ARENA_NONE)
		rewrite(o, b, o->scratch, n);
	else
		return false;
	return true;
}

void
ob_arm(struct outbox *o, const struct ob_block *b)
{
	struct arena_undo *u = o->arena.undo;

	u->page = b->page;
	u->epoch = arena_link(&o->arena)->epoch;
	u->channel = b->channel->id;
	u->version = b->version;
	u->first = b->first;
	u->last = b->last;
	memcpy(u->lost, o->arena.head->lost, sizeof(u->lost));
	u->n = 0;
	atomic_store_explicit(&u->armed, 1, memory_order_release);
}

void
ob_disarm(struct outbox *o)
{
	atomic_store_explicit(&o->arena.undo->armed, 0, memory_order_release);
}

/* The block is still where it was: described in the arena... */
static bool
is_in_arena(const struct outbox *o, const struct arena_undo *u)
{
	const struct arena_desc *d;

	if (u->page >= o->arena.pages)
		return false;
	d = &o->arena.desc[u->page];
	return d->valid == ARENA_VALID && d->epoch == u->epoch &&
	    d->channel == u->channel && d->version == u->version &&
	    d->first == u->first && d->last == u->last;
}

/* ... or a record of the spool, which is needed. */
static bool
is_in_spool(const struct outbox *o, const struct arena_undo *u)
{
	const struct arena_channel *e;
	uint32_t i;

	if (u->page != ARENA_NONE)
		return false;
	for (i = 0; i < ARENA_CHANNELS; i++) {
		e = &o->arena.channels[i];
		if (e->epoch == u->epoch && e->channel == u->channel)
			return u->first > e->untaken_after;
	}
	return false;
}

/* The block is as it was: nothing stands in its place. */
static bool
is_as_it_was(const struct outbox *o, const struct arena_undo *u)
{
	const struct arena_desc *d;
	uint32_t i;

	if (!is_in_arena(o, u) && !is_in_spool(o, u))
		return false;
	for (i = 0; i < o->arena.pages; i++) {
		d = &o->arena.desc[i];
		if (d->valid == ARENA_VALID && d->epoch == u->epoch &&
		    d->channel == u->channel && d->first <= u->first &&
		    d->last >= u->last && d->version > u->version)
			return false;
	}
	return true;
}

void
ob_uncount(struct outbox *o)
{
	struct arena_undo *u = o->arena.undo;

	count_undo(o->arena.tracks, u);
	memcpy(o->arena.head->lost, u->lost, sizeof(u->lost));
	ob_disarm(o);
}

void
ob_undo(struct outbox *o)
{
	const struct arena_undo *u = o->arena.undo;

	if (u->armed != 0 && is_as_it_was(o, u))
		ob_uncount(o);
	ob_disarm(o);
}

void
ob_strip_block(struct outbox *o, struct ob_block *b)
{
	size_t n;

	ob_arm(o, b);
	n = ob_strip(o, b->channel, true, ob_cause(o),
	    arena_at(&o->arena, b->page), b->used, o->scratch);
	if (!ob_keep_rest(o, b, n))
		ob_uncount(o);
	ob_disarm(o);
}

bool
ob_squeeze(struct outbox *o)
{
	struct ob_block *b = victim(o, o->drop == OUTBOX_DROP_NEWEST);

	if (b == NULL)
		return false;
	ob_strip_block(o, b);
	return true;
}

void
ob_compact(struct outbox *o, struct ob_channel *c)
{
	struct ob_block *b = c->open, *now;
	size_t n;
	bool bare;

	c->told_bytes = 0;
	if (b == NULL || b->where != OB_ARENA || b == o->reserved)
		return;
	bare = b->bare;
	n = ob_strip(o, c, false, 0, arena_at(&o->arena, b->page), b->used,
	    o->scratch);
	if (n >= b->used)
		return;
	now = ob_block_replace(o, b, b, o->scratch, n);
	if (now == NULL)
		return;
	now->bare = bare;
	c->open = now;
}
