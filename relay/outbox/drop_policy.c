#include <string.h>

#include "relay/outbox/outbox_internal.h"

/*
 * Drops chunks when memory is full, a block at a time, of the channel that
 * takes most of it.  The rest of a block, which tells of the loss, is joined
 * with the rest beside it, so that losses do not fill memory themselves.
 */

/* Rests are joined up to this size. */
#define JOIN_BYTES (8u * 1024u)

bool
ob_can_drop(const struct outbox *o, struct ob_block *b)
{
	if (b->bare || !ob_is_idle(o, b))
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

/* Block of the channel that takes most memory. */
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

/* Whether the rest of a block can be joined with this one, beside it. */
static bool
joins(const struct outbox *o, const struct ob_block *beside)
{
	return beside != NULL && beside->bare && ob_is_idle(o, beside) &&
	    beside->used < JOIN_BYTES;
}

/*
 * Joins the rest of b, n bytes of scratch, with the rest beside it: the one
 * behind where the newest go first.
 */
static bool
join(struct outbox *o, struct ob_block *b, struct ob_block *beside, size_t n,
    bool bare)
{
	bool behind = beside == TAILQ_NEXT(b, link);
	bool open = beside == b->channel->open;
	const uint8_t *other = arena_at(&o->arena, beside->page);
	size_t len = beside->used, all;
	struct ob_block *now;

	if (len + n > JOIN_BYTES)
		return false;
	memcpy(o->rest + (behind ? n : 0), other, len);
	memcpy(o->rest + (behind ? 0 : len), o->scratch, n);
	all = ob_join_losses(o->rest, len + n, o->scratch);
	now = ob_block_replace(o, behind ? b : beside, behind ? beside : b,
	    o->scratch, all);
	if (now == NULL) {
		memcpy(o->scratch, o->rest + (behind ? 0 : len), n);
		return false;
	}
	now->bare = bare;
	if (open)
		now->channel->open = now;
	return true;
}

/* Puts the rest in the place of b, alone or joined with one beside it. */
static bool
put_rest(struct outbox *o, struct ob_block *b, size_t n, bool bare)
{
	struct ob_block *before = TAILQ_PREV(b, ob_blocks, link);
	struct ob_block *behind = TAILQ_NEXT(b, link), *now;

	if ((joins(o, before) && join(o, b, before, n, bare)) ||
	    (joins(o, behind) && join(o, b, behind, n, bare)))
		return true;
	if ((now = ob_block_replace(o, b, b, o->scratch, n)) == NULL)
		return false;
	now->bare = bare;
	return true;
}

bool
ob_keep_rest(struct outbox *o, struct ob_block *b, size_t n, bool bare)
{
	bool kept = true;

	/* Joining needs a page, too, and frees two. */
	if (o->arena.free_pages == 0 && o->spare != ARENA_NONE) {
		arena_give(&o->arena, o->spare, 1);
		o->spare = ARENA_NONE;
	}
	if (n == 0)
		ob_block_free(o, b);
	else
		kept = put_rest(o, b, n, bare);
	ob_keep_spare(o);
	return kept;
}

void
ob_drop_block(struct outbox *o, struct ob_block *b)
{
	size_t n;
	bool logged;

	ob_undo_arm(o, b);
	n = ob_drop_chunks(o, b->channel, arena_at(&o->arena, b->page),
	    b->used, o->scratch, &logged);
	if (ob_keep_rest(o, b, n, logged)) {
		ob_undo_disarm(o);
	} else {
		ob_undo_now(o);
		b->bare = true; /* not tried again: its rest has no room */
	}
}

bool
ob_drop_in_memory(struct outbox *o)
{
	struct ob_block *b = victim(o, o->drop == RELAY_DROP_NEWEST);

	if (b == NULL)
		return false;
	ob_drop_block(o, b);
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
	n = ob_join_losses(arena_at(&o->arena, b->page), b->used, o->scratch);
	if (n >= b->used)
		return;
	now = ob_block_replace(o, b, b, o->scratch, n);
	if (now == NULL)
		return;
	now->bare = bare;
	c->open = now;
}
