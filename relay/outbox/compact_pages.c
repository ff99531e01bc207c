#include <stdlib.h>

#include "relay/outbox/outbox_internal.h"

/*
 * Free pages in a row: without, nothing can be read back from the spool.  The
 * gate is kept for that, but what an earlier process left may lie across its
 * place.  Blocks that nobody holds move down, the highest first, each as if it
 * were replaced by itself: a kill in between leaves two, and the newer counts.
 */

/* Not what was sent, which is shown to others by its address. */
static size_t
movable(const struct outbox *o, struct ob_block **out)
{
	const struct ob_channel *c;
	struct ob_block *b;
	size_t n = 0;

	TAILQ_FOREACH (c, &o->channels, all)
		TAILQ_FOREACH (b, &c->blocks, link)
			if (ob_is_idle(o, b))
				out[n++] = b;
	return n;
}

static int
highest_first(const void *left, const void *right)
{
	const struct ob_block *a = *(struct ob_block *const *)left;
	const struct ob_block *b = *(struct ob_block *const *)right;

	return a->page > b->page ? -1 : a->page < b->page;
}

static void
move_down(struct outbox *o, struct ob_block *b)
{
	struct ob_block *now;
	uint32_t pages, page;
	bool bare = b->bare;

	/* The lowest run there is; it is the one that is found again. */
	page = ob_take_pages(o, b->used, true, &pages);
	if (page == ARENA_NONE)
		return;
	ob_give_pages(o, page, pages);
	if (page > b->page)
		return;
	now = ob_block_replace(o, b, b, arena_at(&o->arena, b->page), b->used);
	if (now != NULL)
		now->bare = bare;
}

void
ob_gather(struct outbox *o, uint32_t n)
{
	struct ob_block **blocks;
	size_t count, i;

	if (arena_has_run(&o->arena, n) ||
	    (blocks = calloc(o->arena.pages, sizeof(blocks[0]))) == NULL)
		return;
	count = movable(o, blocks);
	if (count > 0)
		qsort(blocks, count, sizeof(blocks[0]), highest_first);
	for (i = 0; i < count && !arena_has_run(&o->arena, n); i++)
		move_down(o, blocks[i]);
	free(blocks);
}
