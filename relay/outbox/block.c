#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/loop/loop.h"

/*
 * An empty outbox gives its memory back after so long; one whose file system is
 * full looks for room as often.
 */
#define TRIM_MS 1000u

static uint32_t
pages_of(size_t bytes)
{
	return (uint32_t)((bytes + ARENA_PAGE - 1) / ARENA_PAGE);
}

/* What data leaves free, for all that must not be dropped. */
static uint32_t
kept_for_control(const struct outbox *o)
{
	return arena_usable(&o->arena) / 16;
}

static bool
may_take(const struct outbox *o, uint32_t n, bool control)
{
	uint32_t keep = control ? 0 : kept_for_control(o);

	return o->arena.free_pages >= keep && n <= o->arena.free_pages - keep;
}

/*
 * How much to take for a block that is begun: a channel that waits for its turn
 * will fill it, and others who begin blocks beside it would keep it from
 * growing.
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

static void
trim_soon(struct outbox *o)
{
	if (o->trim == NULL || o->trim_armed || (o->arena.set_aside == 0 &&
	    arena_taken(&o->arena) > o->arena.touched / 4))
		return;
	loop_timer_set(o->trim, TRIM_MS, 0);
	o->trim_armed = true;
}

static uint32_t
take(struct outbox *o, uint32_t need, uint32_t want, bool control,
    uint32_t *got)
{
	uint32_t page = ARENA_NONE;

	if (want > need && may_take(o, want, control)) {
		page = arena_take(&o->arena, want);
		*got = want;
	}
	if (page == ARENA_NONE && may_take(o, need, control)) {
		page = arena_take(&o->arena, need);
		*got = need;
	}
	if (page == ARENA_NONE)
		trim_soon(o);
	return page;
}

uint32_t
ob_take_pages(struct outbox *o, size_t n, bool control, uint32_t *pages)
{
	return take(o, pages_of(n), 0, control, pages);
}

void
ob_give_pages(struct outbox *o, uint32_t page, uint32_t pages)
{
	if (page == o->spool.gate) {
		o->spool.gate_taken = false;
		return;
	}
	arena_give(&o->arena, page, pages);
	ob_keep_spare(o);
	trim_soon(o);
}

bool
ob_has_room(struct outbox *o)
{
	return may_take(o, OB_BLOCK_PAGES, false) &&
	    arena_has_run(&o->arena, OB_BLOCK_PAGES);
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
	uint32_t n = pages_of(need), got = 0;
	struct ob_block *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->page = take(o, n, begin_pages(o, c, n), control, &got);
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
	n = pages_of(b->used + need);
	if (n <= b->pages)
		return true;
	n -= b->pages;
	if (!may_take(o, n, control) ||
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
	uint32_t keep = pages_of(b->used);

	if (b->channel->open == b)
		b->channel->open = NULL;
	if (keep == 0)
		keep = 1;
	if (keep >= b->pages || b->page == o->spool.gate)
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
	b->page = take(o, pages_of(len), 0, true, &got);
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
	if (b->gone)
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
		b->gone = true;
		TAILQ_INSERT_TAIL(&o->gone, b, link);
		return;
	}
	ob_release(o, b);
	ob_block_destroy(o, b);
}
