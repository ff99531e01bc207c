#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/loop/loop.h"

/*
 * Pages to take for a block that is begun: one of a channel that waits for its
 * turn will be filled, and blocks beside it would keep it from growing.
 */
static uint32_t
begin_pages(const struct outbox *o, const struct ob_channel *c, uint32_t need)
{
	uint32_t want = OB_BEGIN_PAGES;

	if (c->unsent != NULL)
		want = o->arena.free_pages / 16;
	if (want > OB_BLOCK_PAGES)
		want = OB_BLOCK_PAGES;
	return want > need ? want : need;
}

void
ob_block_describe(struct outbox *o, const struct ob_block *b)
{
	struct arena_desc *d = ob_desc(o, b);

	d->epoch = arena_link(&o->arena)->epoch;
	d->channel = b->channel->id;
	atomic_store_explicit(&d->pages, b->pages, memory_order_relaxed);
	atomic_store_explicit(&d->used, b->used, memory_order_relaxed);
	d->version = b->version;
	d->first = b->first;
	d->last = b->last;
	atomic_store_explicit(&d->number, 0, memory_order_relaxed);
	d->time_ms = b->time_ms;
	atomic_store_explicit(&d->valid, ARENA_VALID, memory_order_release);
}

void
ob_forget_empty(struct outbox *o, struct ob_channel *c)
{
	if (c->open != NULL && c->open->used == 0 && c->open != o->reserved)
		ob_block_free(o, c->open);
}

struct ob_block *
ob_block_begin(struct outbox *o, struct ob_channel *c, size_t need,
    bool control)
{
	uint32_t n = ob_pages(need), got = 0;
	struct ob_block *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->page = ob_take_pages(o, n, begin_pages(o, c, n), control, &got);
	if (b->page == ARENA_NONE) {
		free(b);
		return NULL;
	}
	b->channel = c;
	b->where = OB_ARENA;
	b->pages = got;
	b->first = b->last = c->next++;
	b->time_ms = ob_now_ms();
	ob_block_describe(o, b);
	ob_forget_empty(o, c); /* in the middle it would be in the way */
	if (c->open != NULL)
		ob_block_close(o, c->open);
	TAILQ_INSERT_TAIL(&c->blocks, b, link);
	c->unsent_pages += got;
	c->open = b;
	if (c->unsent == NULL)
		c->unsent = b;
	return b;
}

bool
ob_block_grow(struct outbox *o, struct ob_block *b, size_t need, bool control)
{
	uint32_t n;

	if (b->used + need > LINK_BLOCK_MAX)
		return false;
	n = ob_pages(b->used + need);
	if (n <= b->pages)
		return true;
	n -= b->pages;
	if (!ob_may_take(o, n, control) ||
	    !arena_take_at(&o->arena, b->page + b->pages, n))
		return false;
	b->pages += n;
	b->channel->unsent_pages += n;
	atomic_store_explicit(&ob_desc(o, b)->pages, b->pages,
	    memory_order_release);
	return true;
}

void
ob_block_add(struct outbox *o, struct ob_block *b, size_t n)
{
	b->used += (uint32_t)n;
	atomic_store_explicit(&ob_desc(o, b)->used, b->used,
	    memory_order_release);
	ob_turn_want(o, b->channel);
}

void
ob_block_close(struct outbox *o, struct ob_block *b)
{
	uint32_t keep = ob_pages(b->used);

	if (b->channel->open == b)
		b->channel->open = NULL;
	if (keep == 0)
		keep = 1;
	if (keep >= b->pages || ob_is_in_reserve(o, b->page))
		return;
	atomic_store_explicit(&ob_desc(o, b)->pages, keep,
	    memory_order_release);
	arena_give(&o->arena, b->page + keep, b->pages - keep);
	if (b->number == 0)
		b->channel->unsent_pages -= b->pages - keep;
	if (b->fetched)
		o->spool.ahead_pages -= b->pages - keep;
	b->pages = keep;
}

struct ob_block *
ob_block_replace(struct outbox *o, struct ob_block *from, struct ob_block *to,
    const uint8_t *data, size_t len)
{
	struct ob_channel *c = from->channel;
	uint32_t got;
	struct ob_block *b, *next;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->page = ob_take_pages(o, ob_pages(len), 0, true, &got);
	if (b->page == ARENA_NONE) {
		free(b);
		return NULL;
	}
	b->version = 1 + (from->version > to->version ? from->version :
	    to->version);
	b->channel = c;
	b->where = OB_ARENA;
	b->pages = got;
	b->used = (uint32_t)len;
	b->first = from->first;
	b->last = to->last;
	b->time_ms = from->time_ms;
	memcpy(arena_at(&o->arena, b->page), data, len);
	ob_block_describe(o, b);
	TAILQ_INSERT_BEFORE(from, b, link);
	c->unsent_pages += got;
	if (c->unsent == from)
		c->unsent = b;
	while (from != NULL) {
		next = from == to ? NULL : TAILQ_NEXT(from, link);
		ob_block_free(o, from);
		from = next;
	}
	return b;
}

void
ob_block_destroy(struct outbox *o, struct ob_block *b)
{
	if (b->where == OB_GONE)
		TAILQ_REMOVE(&o->gone, b, link);
	if (b->page != ARENA_NONE) {
		atomic_store_explicit(&ob_desc(o, b)->valid, 0,
		    memory_order_release);
		ob_give_pages(o, b->page, b->pages);
	}
	free(b->buffer);
	free(b);
}

void
ob_not_spooled(struct ob_block *b)
{
	struct ob_channel *c = b->channel;

	if (c == NULL || c->spooled != b)
		return;
	do {
		b = TAILQ_PREV(b, ob_blocks, link);
	} while (b != NULL && b->where == OB_ARENA && b->number == 0);
	c->spooled = b != NULL && b->number == 0 ? b : NULL;
}

void
ob_block_unlink(struct outbox *o, struct ob_block *b)
{
	struct ob_channel *c = b->channel;

	if (b->fetched) {
		o->spool.ahead_pages -= b->pages;
		b->fetched = false;
	}
	if (c == NULL) {
		TAILQ_REMOVE(&o->old, b, link);
		return;
	}
	ob_not_spooled(b);
	if (b->where == OB_SPOOLED)
		c->spooled_bytes -= spool_size(b->length);
	if (c->unsent == b)
		c->unsent = TAILQ_NEXT(b, link);
	if (c->open == b)
		c->open = NULL;
	TAILQ_REMOVE(&c->blocks, b, link);
	if (b->number == 0) {
		c->unsent_pages -= b->pages;
		return;
	}
	o->sent_pages -= b->pages;
	if (o->again == b)
		o->again = TAILQ_NEXT(b, sent);
	TAILQ_REMOVE(&o->sent, b, sent);
	o->sent_count--;
}

void
ob_block_free(struct outbox *o, struct ob_block *b)
{
	ob_block_unlink(o, b);
	b->channel = NULL;
	if (b->where == OB_WRITING || b->where == OB_READING) {
		if (b->page != ARENA_NONE)
			atomic_store_explicit(&ob_desc(o, b)->valid, 0,
			    memory_order_release);
		b->where = OB_GONE;
		TAILQ_INSERT_TAIL(&o->gone, b, link);
		return;
	}
	ob_segment_release(o, b);
	ob_block_destroy(o, b);
}
