#include "relay/outbox/outbox_internal.h"
#include "transport/loop/loop.h"

/*
 * Delay until an empty outbox gives its memory back, and period in which one
 * whose file system is full looks for space.
 */
#define TRIM_MS 1000u

/* Pages that data leaves free for messages that must not be dropped. */
static uint32_t
kept_for_control(const struct outbox *o)
{
	return arena_usable(&o->arena) / 16;
}

bool
ob_may_take(const struct outbox *o, uint32_t n, bool control)
{
	uint32_t keep = control ? 0 : kept_for_control(o);

	return o->arena.free_pages >= keep && n <= o->arena.free_pages - keep;
}

static void
trim_soon(struct outbox *o)
{
	uint64_t left;

	if (o->trim == NULL || (o->arena.set_aside == 0 &&
	    arena_taken(&o->arena) > o->arena.touched / 4) ||
	    loop_timer_left(o->trim, &left))
		return;
	loop_timer_set(o->trim, TRIM_MS, 0);
}

uint32_t
ob_take_pages(struct outbox *o, uint32_t need, uint32_t want, bool control,
    uint32_t *got)
{
	uint32_t page = ARENA_NONE;

	if (want > need && ob_may_take(o, want, control)) {
		page = arena_take(&o->arena, want);
		*got = want;
	}
	if (page == ARENA_NONE && ob_may_take(o, need, control)) {
		page = arena_take(&o->arena, need);
		*got = need;
	}
	if (page == ARENA_NONE)
		trim_soon(o);
	return page;
}

void
ob_give_pages(struct outbox *o, uint32_t page, uint32_t pages)
{
	if (ob_is_in_reserve(o, page)) {
		o->spool.read_reserve = RESERVE_FREE;
		return;
	}
	arena_give(&o->arena, page, pages);
	ob_keep_spare(o);
	trim_soon(o);
}

bool
ob_has_room(struct outbox *o)
{
	return ob_may_take(o, OB_BLOCK_PAGES, false) &&
	    arena_has_run(&o->arena, OB_BLOCK_PAGES);
}

void
ob_keep_spare(struct outbox *o)
{
	if (o->spare == ARENA_NONE)
		o->spare = arena_take(&o->arena, 1);
}

void
ob_keep_read_reserve(struct outbox *o)
{
	if (o->spool.read_reserve == RESERVE_MISSING && o->spool.disk != NULL &&
	    arena_take_at(&o->arena, 0, OB_READ_RESERVE))
		o->spool.read_reserve = RESERVE_FREE;
}

void
ob_trim_cb(void *arg)
{
	struct outbox *o = arg;

	arena_trim(&o->arena);
}
