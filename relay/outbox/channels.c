#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"

/*
 * Channels that have blocks, or may yet get some.  Each has an entry in the
 * arena, for the next process.
 */

struct ob_channel *
ob_channel_find(const struct outbox *o, uint32_t id)
{
	struct ob_channel *c;

	if (o->recent != NULL && o->recent->id == id)
		return o->recent;
	HASH_MAP_FOREACH_OF(c, &o->by_id, hash_number(id), by_id)
		if (c->id == id)
			return c;
	return NULL;
}

static struct ob_channel *
channel_add(struct outbox *o, uint32_t id, struct arena_channel *e)
{
	struct ob_channel *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->id = id;
	c->entry = e;
	c->next = 1;
	c->held = o->holding && id != 0;
	c->held_from = 1;
	TAILQ_INIT(&c->blocks);
	hash_map_put(&o->by_id, &c->by_id, hash_number(id));
	TAILQ_INSERT_TAIL(&o->channels, c, all);
	return c;
}

static struct arena_channel *
free_entry(struct outbox *o)
{
	uint32_t epoch = arena_link(&o->arena)->epoch, i;
	struct arena_channel *e;

	for (i = 0; i < ARENA_CHANNELS; i++) {
		e = &o->arena.channels[(o->entry_hint + i) % ARENA_CHANNELS];
		if (atomic_load(&e->epoch) != epoch) {
			o->entry_hint = (o->entry_hint + i + 1) %
			    ARENA_CHANNELS;
			return e;
		}
	}
	return NULL;
}

struct ob_channel *
ob_channel_get(struct outbox *o, uint32_t id)
{
	struct arena_channel *e;
	struct ob_channel *c;

	if ((c = ob_channel_find(o, id)) != NULL)
		return o->recent = c;
	if ((e = free_entry(o)) == NULL ||
	    (c = channel_add(o, id, e)) == NULL)
		return NULL;
	atomic_store(&e->epoch, 0);
	e->channel = id;
	atomic_store(&e->sent, 0);
	atomic_store(&e->untaken_after, 0);
	atomic_store(&e->spooled_last, 0);
	e->held_chunks = 0;
	e->held_packets = 0;
	e->held_bytes = 0;
	atomic_store_explicit(&e->epoch, arena_link(&o->arena)->epoch,
	    memory_order_release);
	return o->recent = c;
}

int
ob_channel_adopt(struct outbox *o, struct arena_channel *e)
{
	struct ob_channel *c;

	if (ob_channel_find(o, e->channel) != NULL) {
		atomic_store(&e->epoch, 0); /* two of one: a damaged file */
		return 0;
	}
	if ((c = channel_add(o, e->channel, e)) == NULL)
		return -1;
	memset(c->ended, 0xff, sizeof(c->ended)); /* any of them may be */
	return 0;
}

void
ob_writer_end(struct ob_channel *c, uint64_t writer)
{
	c->ended[writer % OB_WRITERS / 8] |= (uint8_t)(1u << writer % 8);
}

bool
ob_writer_has_ended(const struct ob_channel *c, uint32_t writer)
{
	return (c->ended[writer % OB_WRITERS / 8] >> writer % 8 & 1) != 0;
}

void
ob_channel_free(struct outbox *o, struct ob_channel *c)
{
	if (c == NULL)
		return;
	ob_turn_leave(o, c);
	if (o->recent == c)
		o->recent = NULL;
	o->entry_hint = (uint32_t)(c->entry - o->arena.channels);
	hash_map_remove(&o->by_id, &c->by_id);
	TAILQ_REMOVE(&o->channels, c, all);
	free(c);
}

void
ob_channel_settle(struct outbox *o, struct ob_channel *c)
{
	if (!c->closed || !TAILQ_EMPTY(&c->blocks))
		return;
	atomic_store(&c->entry->epoch, 0);
	ob_channel_free(o, c);
}
