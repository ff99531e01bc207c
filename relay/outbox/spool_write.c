#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/outbox/commit_chunk.h"
#include "relay/outbox/outbox_internal.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/*
 * Moves blocks from memory to the spool.  Low-water mark: 5/16 of the memory
 * are kept free, so that a burst finds room while the disk works.  The oldest
 * block of the channel that takes most memory goes first, but the block that
 * the channel sends next stays while it has another.
 */

#define SYNC_MS  1000u
#define RETRY_MS 1000u

static bool
want_spill(struct outbox *o)
{
	uint32_t soon = o->arena.free_pages + o->spool.writing_pages;
	uint32_t usable = arena_usable(&o->arena);

	if (soon < usable / 4 + usable / 16)
		return true;
	/* Or free pages are in pieces. */
	return o->spool.writing_pages == 0 &&
	    !arena_has_run(&o->arena, OB_BLOCK_PAGES);
}

/* The block of a channel that would be moved next; NULL: none. */
static struct ob_block *
next_of(const struct outbox *o, const struct ob_channel *c)
{
	struct ob_block *b;

	if (c->spooled != NULL)
		b = TAILQ_NEXT(c->spooled, link);
	else if (c->unsent != NULL && TAILQ_NEXT(c->unsent, link) != NULL)
		b = TAILQ_NEXT(c->unsent, link);
	else
		b = c->unsent;
	while (b != NULL && !ob_is_idle(o, b))
		b = TAILQ_NEXT(b, link);
	return b;
}

static struct ob_block *
next_to_spill(struct outbox *o)
{
	struct ob_block *found = NULL, *b;
	struct ob_channel *c;
	uint32_t most = 0;

	TAILQ_FOREACH (c, &o->channels, all) {
		if (c->unsent_pages <= most || (b = next_of(o, c)) == NULL)
			continue;
		most = c->unsent_pages;
		found = b;
	}
	return found;
}

/* Sums up what is lost with the block if its record cannot be read. */
static void
sum_up(const struct outbox *o, struct ob_block *b)
{
	struct pb_reader r, commit;
	struct commit_chunk c;
	struct pb_field m;

	b->chunks = b->packets = b->bytes = 0;
	PB_FOREACH(&m, &r, arena_at(&o->arena, b->page), b->used) {
		if (m.number == LINK_UP_CLOSE)
			b->closes = true;
		if (m.number != LINK_UP_COMMIT || m.wire != PB_BYTES)
			continue;
		pb_init(&commit, m.data, m.len);
		while (commit_chunk_next(&commit, &c)) {
			b->chunks++;
			b->packets += c.fragments -
			    (c.continues && c.fragments > 0 ? 1 : 0);
			b->bytes += c.bytes;
		}
	}
}

static void
set_state(struct ob_spool *s, enum ob_spool_state state)
{
	s->state = state;
	if (state == SPOOL_FAILED && s->retry != NULL)
		loop_timer_set(s->retry, RETRY_MS, 0);
}

static void
write_failed(struct outbox *o, struct ob_block *b, int error)
{
	struct ob_spool *s = &o->spool;

	ob_segment_unplace(o, b);
	if (s->state == SPOOL_WORKS)
		log_warn("The spool in %s cannot be written: %s; blocks that "
		    "find no room in memory are dropped, until it can", s->dir,
		    strerror(error));
	snprintf(s->error, sizeof(s->error), "%s", strerror(error));
	set_state(s, SPOOL_FAILED);
}

void
ob_retry_cb(void *arg)
{
	struct outbox *o = arg;

	set_state(&o->spool, SPOOL_TRIED);
	ob_spool_find_folder(o);
	ob_pump(o);
}

/* Frees the memory of a block that the spool has. */
static void
moved(struct outbox *o, struct ob_block *b)
{
	struct arena_channel *e = b->channel->entry;
	uint32_t page = b->page, pages = b->pages;

	e->held_chunks += b->chunks;
	e->held_packets += b->packets;
	e->held_bytes += b->bytes;
	atomic_store_explicit(&e->spooled_last, b->last, memory_order_release);
	atomic_store_explicit(&ob_desc(o, b)->valid, 0, memory_order_release);
	b->where = OB_SPOOLED;
	b->page = ARENA_NONE;
	b->pages = 0;
	b->channel->unsent_pages -= pages;
	b->channel->spooled_bytes += spool_size(b->length);
	ob_give_pages(o, page, pages);
}

static void
wrote(struct disk_job *j)
{
	struct ob_block *b = j->arg;
	struct outbox *o = j->owner;
	struct ob_spool *s = &o->spool;
	uint64_t left;

	s->writing_pages -= b->pages;
	if (b->where == OB_WRITING)
		b->where = OB_ARENA;
	if (j->error != 0) {
		write_failed(o, b, j->error);
		ob_not_spooled(b);
	} else if (b->channel == NULL || b->number != 0) {
		ob_not_spooled(b);
		ob_segment_release(o, b);
	} else {
		moved(o, b);
	}
	if (j->error == 0) {
		if (s->state == SPOOL_TRIED) {
			log_info("The spool in %s is written again", s->dir);
			set_state(s, SPOOL_WORKS);
		}
		if (s->fsync == RELAY_FSYNC_PERIODIC && s->sync != NULL &&
		    !loop_timer_left(s->sync, &left))
			loop_timer_set(s->sync, SYNC_MS, 0);
	}
	if (b->where == OB_GONE)
		ob_block_destroy(o, b);
	free(j);
}

static bool
spill(struct outbox *o, struct ob_block *b)
{
	struct ob_spool *s = &o->spool;
	struct disk_job *j;

	if ((j = disk_job_new(DISK_WRITE, 0, wrote, o)) == NULL)
		return false;
	if (!ob_segment_place(o, b)) {
		free(j);
		return false;
	}
	ob_block_close(o, b);
	sum_up(o, b);
	if (b->channel->spooled == NULL)
		atomic_store_explicit(&b->channel->entry->untaken_after,
		    b->first - 1, memory_order_release);
	if (b->fetched)
		s->ahead_pages -= b->pages;
	b->fetched = false;
	memcpy(b->tag, arena_link(&o->arena)->tag, LINK_ID_BYTES);
	b->where = OB_WRITING;
	s->writing_pages += b->pages;
	b->channel->spooled = b;

	j->segment = b->segment->id;
	ob_segment_describe(b, j);
	j->data = arena_at(&o->arena, b->page);
	j->sync = s->fsync == RELAY_FSYNC_ALWAYS;
	j->arg = b;
	disk_submit(s->disk, j);
	return true;
}

static bool
fits(const struct ob_spool *s, const struct ob_block *b)
{
	return s->used + spool_size(b->used) <= s->limit;
}

/* Moves a block to the spool, or drops one there.  False: nothing to do now. */
static bool
move_one(struct outbox *o)
{
	struct ob_block *b;

	if (!want_spill(o) || o->spool.state == SPOOL_FAILED ||
	    (b = next_to_spill(o)) == NULL)
		return false;
	if (fits(&o->spool, b))
		return spill(o, b);
	return o->drop == RELAY_DROP_OLDEST && ob_drop_in_spool(o);
}

/*
 * True: no block can be sent, as every channel goes on in the spool, and blocks
 * that an earlier process left lie in the pages that are kept to read into.
 */
static bool
is_stuck(const struct outbox *o)
{
	const struct ob_spool *s = &o->spool;
	const struct ob_channel *c;

	if (s->read_reserve != RESERVE_MISSING || s->used == 0 ||
	    s->writing_pages > 0 || s->dropping > 0 || !TAILQ_EMPTY(&o->sent))
		return false;
	TAILQ_FOREACH (c, &o->channels, all)
		if (c->unsent != NULL && c->unsent->where != OB_SPOOLED)
			return false;
	return true;
}

/* Writes blocks that lie in the read reserve anew, elsewhere. */
static void
clear_read_reserve(struct outbox *o)
{
	struct ob_block *b, *next, *now;
	struct ob_channel *c;
	bool bare;

	TAILQ_FOREACH (c, &o->channels, all)
		for (b = TAILQ_FIRST(&c->blocks); b != NULL; b = next) {
			next = TAILQ_NEXT(b, link);
			bare = b->bare;
			if (b->page >= OB_READ_RESERVE || !ob_is_idle(o, b))
				continue;
			now = ob_block_replace(o, b, b,
			    arena_at(&o->arena, b->page), b->used);
			if (now != NULL)
				now->bare = bare;
		}
}

/*
 * Frees the read reserve; drops data while there is no other place for its
 * blocks.
 */
static void
make_read_reserve(struct outbox *o)
{
	do {
		clear_read_reserve(o);
		ob_keep_read_reserve(o);
	} while (o->spool.read_reserve == RESERVE_MISSING &&
	    ob_drop_in_memory(o));
	if (o->spool.read_reserve != RESERVE_MISSING)
		ob_ready(o);
}

bool
outbox_is_busy(struct outbox *o)
{
	return (o->spool.writing_pages > 0 || o->spool.dropping > 0) &&
	    !ob_has_room(o);
}

void
outbox_want_room(struct outbox *o)
{
	o->wanted = true;
}

void
ob_pump(struct outbox *o)
{
	struct ob_spool *s = &o->spool;

	if (s->disk == NULL || o->pumping)
		return;
	o->pumping = true;
	do {
		ob_old_pump(o);
		ob_keep_read_reserve(o);
		while (move_one(o))
			;
	} while (o->synchronous && disk_reap(s->disk) > 0);
	if (is_stuck(o))
		make_read_reserve(o);
	o->pumping = false;
	/* Producers that were put off: there is room, or no hope for any. */
	if (o->wanted && !outbox_is_busy(o)) {
		o->wanted = false;
		ob_ready(o);
	}
}

static void
reap(void *arg)
{
	struct outbox *o = arg;

	disk_reap(o->spool.disk);
	ob_pump(o);
}

int
ob_spool_start(struct outbox *o, char *err, size_t err_size)
{
	struct ob_spool *s = &o->spool;

	o->arena.set_apart = OB_READ_RESERVE;
	s->disk = disk_new(o->loop, s->dirfd, o->synchronous, reap, o);
	if (o->loop != NULL) {
		s->sync = loop_timer_new(o->loop, ob_segment_sync_cb, o);
		s->retry = loop_timer_new(o->loop, ob_retry_cb, o);
	}
	if (s->disk != NULL && (o->loop == NULL ||
	    (s->sync != NULL && s->retry != NULL)))
		return 0;
	return FAILURE(err, err_size, "no memory or thread for the spool");
}
