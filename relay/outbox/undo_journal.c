#include <string.h>

#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"

/*
 * Undo log for counts: their old values are written ahead of a change, and the
 * next process rolls back unless the message with the losses was added.
 */

struct loss_account
ob_account(const struct outbox *o)
{
	struct loss_account k = { .tracks = o->arena.tracks,
		.epoch = arena_link(&o->arena)->epoch,
		.undo = o->arena.undo->armed != 0 ? o->arena.undo : NULL };

	return k;
}

void
ob_count_lost(struct outbox *o, const struct link_loss *l)
{
	if (l->cause >= LINK_LOSS_OF_RELAYS)
		return;
	o->arena.head->lost[0][l->cause] += l->chunks;
	o->arena.head->lost[1][l->cause] += l->packets;
	o->arena.head->lost[2][l->cause] += l->bytes;
}

bool
ob_take_back(struct outbox *o, struct loss_account *k, uint32_t channel,
    struct link_loss *l)
{
	uint32_t n = loss_account_twice(k, channel, l->writer, l->packets);

	l->packets -= n;
	o->arena.head->lost[1][l->cause] -= n;
	return n > 0;
}

static struct arena_undo *
note(struct outbox *o, const struct ob_block *b, uint32_t kind)
{
	struct arena_undo *u = o->arena.undo;

	u->kind = kind;
	u->page = b->page;
	u->epoch = arena_link(&o->arena)->epoch;
	u->channel = b->channel->id;
	u->version = b->version;
	u->first = b->first;
	u->last = b->last;
	u->used = b->used;
	memcpy(u->lost, o->arena.head->lost, sizeof(u->lost));
	u->n = 0;
	return u;
}

void
ob_undo_arm(struct outbox *o, const struct ob_block *b)
{
	struct arena_undo *u = note(o, b, ARENA_UNDO_BLOCK);

	atomic_store_explicit(&u->armed, 1, memory_order_release);
}

void
ob_undo_arm_end(struct outbox *o, const struct ob_block *b)
{
	struct arena_undo *u = note(o, b, ARENA_UNDO_END);

	atomic_store_explicit(&u->armed, 1, memory_order_release);
}

void
ob_undo_disarm(struct outbox *o)
{
	atomic_store_explicit(&o->arena.undo->armed, 0, memory_order_release);
}

/* The block is described in the arena as it was ... */
static const struct arena_desc *
in_arena(const struct outbox *o, const struct arena_undo *u)
{
	const struct arena_desc *d;

	if (u->page >= o->arena.pages)
		return NULL;
	d = &o->arena.desc[u->page];
	return d->valid == ARENA_VALID && d->epoch == u->epoch &&
	    d->channel == u->channel && d->version == u->version &&
	    d->first == u->first && d->last == u->last &&
	    d->number == 0 ? d : NULL;
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

/*
 * Whether the block is as it was: nothing stands in its place, or at its end.
 */
static bool
is_as_it_was(const struct outbox *o, const struct arena_undo *u)
{
	const struct arena_desc *d = in_arena(o, u);
	uint32_t i;

	if (u->kind == ARENA_UNDO_END)
		return d != NULL && d->used == u->used;
	if (d == NULL && !is_in_spool(o, u))
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
ob_undo_now(struct outbox *o)
{
	struct arena_undo *u = o->arena.undo;

	loss_account_undo(o->arena.tracks, u);
	memcpy(o->arena.head->lost, u->lost, sizeof(u->lost));
	ob_undo_disarm(o);
}

void
ob_undo_recover(struct outbox *o)
{
	const struct arena_undo *u = o->arena.undo;

	if (u->armed != 0 && is_as_it_was(o, u))
		ob_undo_now(o);
	ob_undo_disarm(o);
}
