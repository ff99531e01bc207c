#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/*
 * From memory to the spool.  So much of the memory is kept free that a burst
 * finds room while the disk works.  Of the channel that takes most memory the
 * oldest goes first, but what it will send next stays.
 */

#define SYNC_MS  1000u
#define RETRY_MS 1000u
/* Files, at most: those that a channel keeps which does not move. */
#define SEGMENTS_MAX 4096u

static bool
want_spill(struct outbox *o)
{
	uint32_t soon = o->arena.free_pages + o->spool.writing_pages;
	uint32_t usable = arena_usable(&o->arena);

	if (soon < usable / 4 + usable / 16)
		return true;
	/* Or what is free is in pieces. */
	return o->spool.writing_pages == 0 &&
	    !arena_has_run(&o->arena, OB_BLOCK_PAGES);
}

/* The block of a channel that goes next; NULL: none. */
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

/* What there is to lose with the block, should it not be readable. */
static void
sum_up(const struct outbox *o, struct ob_block *b)
{
	struct pb_reader r, commit;
	struct count_chunk c;
	struct pb_field m;

	b->chunks = b->packets = b->bytes = 0;
	pb_init(&r, arena_at(&o->arena, b->page), b->used);
	while (pb_next(&r, &m)) {
		if (m.number == LINK_UP_CLOSE)
			b->closes = true;
		if (m.number != LINK_UP_COMMIT || m.wire != PB_BYTES)
			continue;
		pb_init(&commit, m.data, m.len);
		while (count_next_chunk(&commit, &c)) {
			b->chunks++;
			b->packets += c.fragments -
			    (c.continues && c.fragments > 0 ? 1 : 0);
			b->bytes += c.bytes;
		}
	}
}

static void
done_with(struct disk_job *j)
{
	free(j);
}

static void
synced(struct disk_job *j)
{
	struct outbox *o = j->owner;

	if (j->error != 0)
		log_limited(&o->spool.log_limit, loop_now_ms(),
		    LOG_LEVEL_WARN, "What the spool in %s has got may not "
		    "survive a power cut: %s", o->spool.dir,
		    strerror(j->error));
	free(j);
}

static void
sync_segment(struct outbox *o)
{
	struct disk_job *j;

	if (o->spool.current == NULL ||
	    (j = calloc(1, sizeof(*j))) == NULL)
		return;
	j->kind = DISK_SYNC;
	j->segment = o->spool.current->id;
	j->done = synced;
	j->owner = o;
	disk_submit(o->spool.disk, j);
}

void
ob_sync_cb(void *arg)
{
	struct outbox *o = arg;

	o->spool.sync_armed = false;
	sync_segment(o);
}

/* The segment that takes size more bytes. */
static struct ob_segment *
segment_for(struct outbox *o, uint64_t size)
{
	struct ob_spool *s = &o->spool;
	struct ob_segment *g = s->current;

	if (g != NULL && g->size + size <= s->segment_bytes)
		return g;
	if (s->n_segments >= SEGMENTS_MAX)
		return NULL;
	if ((g = calloc(1, sizeof(*g))) == NULL)
		return NULL;
	if (s->sync_armed)
		sync_segment(o);
	g->id = s->next_id++;
	TAILQ_INSERT_TAIL(&s->segments, g, link);
	s->n_segments++;
	s->current = g;
	return g;
}

static void
segment_drop(struct outbox *o, struct ob_segment *g)
{
	struct ob_spool *s = &o->spool;
	struct disk_job *j;

	if (s->current == g)
		s->current = NULL;
	s->used -= g->held;
	TAILQ_REMOVE(&s->segments, g, link);
	s->n_segments--;
	if ((j = calloc(1, sizeof(*j))) != NULL) {
		j->kind = DISK_UNLINK;
		j->segment = g->id;
		j->done = done_with;
		disk_submit(s->disk, j);
	}
	free(g);
}

static void
punched(struct disk_job *j)
{
	struct outbox *o = j->owner;

	if (j->error != 0)
		o->spool.no_punch = true;
	free(j);
}

void
ob_release(struct outbox *o, struct ob_block *b)
{
	struct ob_segment *g = b->segment;
	struct ob_spool *s = &o->spool;
	struct disk_job *j;

	if (g == NULL)
		return;
	b->segment = NULL;
	if (--g->live == 0) {
		segment_drop(o, g);
		return;
	}
	if (!s->no_punch) {
		s->used -= spool_size(b->length);
		g->held -= spool_size(b->length);
	}
	if ((j = calloc(1, sizeof(*j))) == NULL)
		return;
	j->kind = DISK_PUNCH;
	j->segment = g->id;
	j->offset = b->offset;
	j->len = spool_size(b->length);
	j->done = punched;
	j->owner = o;
	disk_submit(s->disk, j);
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

static void
write_failed(struct outbox *o, struct ob_block *b, int error)
{
	struct ob_segment *g = b->segment;
	struct ob_spool *s = &o->spool;

	b->segment = NULL;
	g->held -= spool_size(b->length);
	s->used -= spool_size(b->length);
	if (s->current == g)
		s->current = NULL;
	if (--g->live == 0)
		segment_drop(o, g);
	if (s->error[0] == '\0')
		log_warn("The spool in %s cannot be written: %s; what finds no "
		    "room in memory is dropped, until it can", s->dir,
		    strerror(error));
	snprintf(s->error, sizeof(s->error), "%s", strerror(error));
	s->failed = true;
	if (s->retry != NULL)
		loop_timer_set(s->retry, RETRY_MS, 0);
}

void
ob_retry_cb(void *arg)
{
	struct outbox *o = arg;

	o->spool.failed = false;
	ob_spool_find_folder(o);
	ob_pump(o);
}

/* The spool has it now, and memory need not. */
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

	s->writing_pages -= b->pages;
	b->where = OB_ARENA;
	if (j->error != 0) {
		write_failed(o, b, j->error);
		ob_not_spooled(b);
	} else if (b->gone || b->channel == NULL || b->number != 0) {
		ob_not_spooled(b);
		ob_release(o, b);
	} else {
		moved(o, b);
	}
	if (j->error == 0) {
		if (s->error[0] != '\0' && !s->failed) {
			log_info("The spool in %s is written again", s->dir);
			s->error[0] = '\0';
		}
		if (s->fsync == RELAY_FSYNC_PERIODIC && !s->sync_armed &&
		    s->sync != NULL) {
			loop_timer_set(s->sync, SYNC_MS, 0);
			s->sync_armed = true;
		}
	}
	if (b->gone)
		ob_block_destroy(o, b);
	free(j);
}

static bool
spill(struct outbox *o, struct ob_block *b)
{
	struct ob_spool *s = &o->spool;
	uint64_t size = spool_size(b->used);
	struct ob_segment *g;
	struct disk_job *j;

	if ((j = calloc(1, sizeof(*j))) == NULL)
		return false;
	if ((g = segment_for(o, size)) == NULL) {
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
	b->segment = g;
	memcpy(b->tag, arena_link(&o->arena)->tag, LINK_ID_BYTES);
	b->offset = g->size;
	b->length = b->used;
	b->where = OB_WRITING;
	g->size += size;
	g->held += size;
	g->live++;
	s->used += size;
	s->writing_pages += b->pages;
	b->channel->spooled = b;

	j->kind = DISK_WRITE;
	j->segment = g->id;
	j->offset = b->offset;
	memcpy(j->record.tag, b->tag, LINK_ID_BYTES);
	j->record.channel = b->channel->id;
	j->record.len = b->length;
	j->record.first = b->first;
	j->record.last = b->last;
	j->record.time_ms = b->time_ms;
	j->record.closes = b->closes;
	j->record.chunks = b->chunks;
	j->record.packets = b->packets;
	j->record.bytes = b->bytes;
	j->data = arena_at(&o->arena, b->page);
	j->sync = s->fsync == RELAY_FSYNC_ALWAYS;
	j->done = wrote;
	j->owner = o;
	j->arg = b;
	disk_submit(s->disk, j);
	return true;
}

static bool
fits(const struct ob_spool *s, const struct ob_block *b)
{
	return s->used + spool_size(b->used) <= s->limit;
}

void
ob_keep_gate(struct outbox *o)
{
	if (o->spool.gate == ARENA_NONE && o->spool.disk != NULL)
		o->spool.gate = arena_take(&o->arena, OB_BLOCK_PAGES);
}

/* Towards the spool, or out of it.  False: there is nothing to do now. */
static bool
move_one(struct outbox *o)
{
	struct ob_block *b;

	if (!want_spill(o) || o->spool.failed ||
	    (b = next_to_spill(o)) == NULL)
		return false;
	if (fits(&o->spool, b))
		return spill(o, b);
	return o->drop == RELAY_DROP_OLDEST && ob_doom(o);
}

/* Nothing goes on: what would be sent must be read, and there is no gate. */
static bool
is_stuck(const struct outbox *o)
{
	const struct ob_spool *s = &o->spool;
	const struct ob_channel *c;

	if (s->gate != ARENA_NONE || s->used == 0 || s->writing_pages > 0 ||
	    s->dooming > 0 || !TAILQ_EMPTY(&o->sent))
		return false;
	TAILQ_FOREACH (c, &o->channels, all)
		if (c->unsent != NULL && c->unsent->where != OB_SPOOLED)
			return false;
	return true;
}

/*
 * Where memory holds so much that no pages come together for a gate, some of
 * that has to go: the spool has no room for it.
 */
static void
make_gate(struct outbox *o)
{
	do {
		ob_gather(o, OB_BLOCK_PAGES);
		ob_keep_gate(o);
	} while (o->spool.gate == ARENA_NONE && ob_squeeze(o));
	if (o->spool.gate != ARENA_NONE)
		ob_ready(o);
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
		ob_keep_gate(o);
		while (move_one(o))
			;
	} while (o->synchronous && disk_reap(s->disk) > 0);
	if (is_stuck(o))
		make_gate(o);
	o->pumping = false;
	/* Those who were put off: there is room, or no hope for any. */
	if (o->wanted && !outbox_is_busy(o)) {
		o->wanted = false;
		ob_ready(o);
	}
}
