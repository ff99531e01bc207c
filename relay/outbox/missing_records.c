#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"

/*
 * Finds records that the spool should hold by the arena's entries and does not:
 * they were damaged, cut off or deleted.  Their chunks are counted as lost, and
 * a LINK_UP_LOSS is put in their place.
 */

/* Adds a block with a loss, in the place of the sequence `at`. */
static int
insert(struct outbox *o, struct ob_channel *c, struct ob_block *before,
    uint64_t at, const struct link_loss *l)
{
	struct ob_block *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return -1;
	b->page = ob_take_pages(o, 1, 0, true, &b->pages);
	if (b->page == ARENA_NONE) {
		free(b);
		return 0; /* no room for the message; the totals have it */
	}
	b->channel = c;
	b->where = OB_ARENA;
	b->bare = true;
	b->used = (uint32_t)link_put_loss_message(arena_at(&o->arena, b->page),
	    l);
	b->first = b->last = at;
	b->time_ms = ob_now_ms();
	ob_block_describe(o, b);
	c->unsent_pages += b->pages;
	if (before == NULL)
		TAILQ_INSERT_TAIL(&c->blocks, b, link);
	else
		TAILQ_INSERT_BEFORE(before, b, link);
	if (c->unsent == before)
		c->unsent = b;
	ob_turn_want(o, c);
	return 0;
}

/* Finds missing sequences: the block behind them.  False: there are none. */
static bool
find_gap(const struct ob_channel *c, struct ob_block **behind, uint64_t *at)
{
	uint64_t after = c->entry->untaken_after, last = c->entry->spooled_last;
	struct ob_block *b;

	TAILQ_FOREACH (b, &c->blocks, link) {
		if (b->number == 0 && after < last && b->first > after + 1) {
			*behind = b;
			*at = after + 1;
			return true;
		}
		if (b->last > after)
			after = b->last;
	}
	*behind = NULL;
	*at = last;
	return after < last;
}

static int
tell_gap(struct outbox *o, struct ob_channel *c)
{
	struct link_loss l = { .cause = OB_LOSS(SPOOL_DAMAGED) };
	struct arena_channel *e = c->entry;
	uint64_t chunks = 0, packets = 0, bytes = 0, at;
	struct ob_block *b;
	bool gap;

	TAILQ_FOREACH (b, &c->blocks, link) {
		if (b->where != OB_SPOOLED)
			continue;
		chunks += b->chunks;
		packets += b->packets;
		bytes += b->bytes;
	}
	gap = find_gap(c, &b, &at);
	if (c->next <= e->spooled_last)
		c->next = e->spooled_last + 1;
	if (c->next <= e->untaken_after)
		c->next = e->untaken_after + 1;
	l.chunks = e->held_chunks > chunks ? e->held_chunks - chunks : 0;
	l.packets = e->held_packets > packets ? e->held_packets - packets : 0;
	l.bytes = e->held_bytes > bytes ? e->held_bytes - bytes : 0;
	e->held_chunks = chunks;
	e->held_packets = packets;
	e->held_bytes = bytes;
	if (!gap || (l.chunks == 0 && l.packets == 0))
		return 0;
	ob_count_lost(o, &l);
	log_warn("%llu chunks of channel %u are lost with damaged blocks of "
	    "the spool", (unsigned long long)l.chunks, c->id);
	return insert(o, c, b, at, &l);
}

int
ob_tell_missing(struct outbox *o)
{
	struct ob_channel *c;

	TAILQ_FOREACH (c, &o->channels, all)
		if (tell_gap(o, c) != 0)
			return -1;
	return 0;
}
