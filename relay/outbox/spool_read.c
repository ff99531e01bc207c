#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/*
 * Reads blocks back from the spool: blocks to be sent next into the arena, some
 * ahead (read-ahead); blocks to be dropped or counted into a buffer of their
 * own.
 */

/* Blocks of a channel that are read ahead. */
#define AHEAD_BLOCKS 6u
/* Records that are read at a time to be dropped. */
#define DROPS_MAX  4u

static struct disk_job *
read_job(struct outbox *o, struct ob_block *b, uint8_t *into,
    void (*done)(struct disk_job *j))
{
	struct disk_job *j;

	if ((j = disk_job_new(DISK_READ, b->segment->id, done, o)) == NULL)
		return NULL;
	ob_segment_describe(b, j);
	j->data = into;
	j->arg = b;
	return j;
}

/* Writes a loss in the place of a block that cannot be read.  Returns bytes. */
static size_t
put_read_loss(struct outbox *o, const struct ob_block *b, int error,
    uint8_t *out)
{
	struct link_loss l = {
		.cause = error != 0 ? OB_LOSS(DISK) : OB_LOSS(SPOOL_DAMAGED),
		.chunks = b->chunks, .packets = b->packets, .bytes = b->bytes,
	};
	size_t n = link_put_loss_message(out, &l);

	if (error == 0)
		o->spool.damaged++;
	log_limited(&o->spool.log_limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "A block of the spool in %s %s; %u chunks are lost", o->spool.dir,
	    error != 0 ? "cannot be read" : "is damaged", b->chunks);
	ob_count_lost(o, &l);
	if (b->closes)
		n += link_put_message_head(out + n, LINK_UP_CLOSE, 0);
	return n;
}

/*
 * The channel's high-water mark once b's record is not needed.  Older records
 * may still be needed: passed over, as there was nothing to drop in them.
 */
static uint64_t
untaken_without(const struct ob_block *b)
{
	const struct ob_block *older = b->channel->unsent;

	while (older != NULL && older != b && older->segment == NULL)
		older = TAILQ_NEXT(older, link);
	return older == NULL || older == b ? b->last : older->first - 1;
}

/*
 * Notes that a record with these sums is not needed any more, as its block is
 * in memory or was dropped whole.
 */
static void
taken(struct arena_channel *e, uint64_t untaken_after,
    const struct ob_block *sums)
{
	atomic_store_explicit(&e->untaken_after, untaken_after,
	    memory_order_release);
	e->held_chunks -= sums->chunks;
	e->held_packets -= sums->packets;
	e->held_bytes -= sums->bytes;
}

static void
fetched(struct disk_job *j)
{
	struct ob_block *b = j->arg;
	struct outbox *o = j->owner;

	if (b->where == OB_GONE) {
		ob_segment_release(o, b);
		ob_block_destroy(o, b);
		free(j);
		return;
	}
	b->where = OB_ARENA;
	if (j->error != 0 || j->damaged) {
		/* Also for an old link: the loss is counted. */
		b->used = (uint32_t)put_read_loss(o, b, j->error,
		    arena_at(&o->arena, b->page));
		b->bare = true;
	}
	if (b->channel != NULL) {
		b->version++;
		ob_block_describe(o, b);
		taken(b->channel->entry, untaken_without(b), b);
		ob_not_spooled(b);
		ob_block_close(o, b);
		ob_turn_want(o, b->channel);
	}
	ob_segment_release(o, b);
	free(j);
}

/*
 * Takes pages to read a block into; the read reserve, when no others are free.
 * Leaves the pages for control messages, which the rests of dropped blocks
 * need.
 */
static bool
pages_for(struct outbox *o, struct ob_block *b)
{
	struct ob_spool *s = &o->spool;
	uint32_t page, pages;

	page = ob_take_pages(o, ob_pages(b->length), 0, false, &pages);
	if (page == ARENA_NONE && s->read_reserve == RESERVE_FREE) {
		s->read_reserve = RESERVE_USED;
		page = 0;
		pages = OB_READ_RESERVE;
	}
	if (page == ARENA_NONE)
		return false;
	b->page = page;
	b->pages = pages;
	return true;
}

static bool
fetch(struct outbox *o, struct ob_block *b)
{
	struct disk_job *j;

	if (!pages_for(o, b))
		return false;
	j = read_job(o, b, arena_at(&o->arena, b->page), fetched);
	if (j == NULL) {
		ob_give_pages(o, b->page, b->pages);
		b->page = ARENA_NONE;
		b->pages = 0;
		return false;
	}
	b->where = OB_READING;
	b->channel->spooled_bytes -= spool_size(b->length);
	b->fetched = true;
	b->channel->unsent_pages += b->pages;
	o->spool.ahead_pages += b->pages;
	disk_submit(o->spool.disk, j);
	return true;
}

void
ob_fetch(struct outbox *o, struct ob_channel *c, uint64_t credit)
{
	struct ob_spool *s = &o->spool;
	struct ob_block *b = c->unsent;
	unsigned ahead = 0;
	uint64_t bytes = 0;

	for (; b != NULL && ahead < AHEAD_BLOCKS; b = TAILQ_NEXT(b, link)) {
		bytes += b->used;
		if (b->where == OB_SPOOLED) {
			if (ahead > 0 && bytes > credit)
				return;
			if (s->ahead_pages > 0 && s->ahead_pages +
			    OB_BLOCK_PAGES > arena_usable(&o->arena) / 4)
				return;
			if (!fetch(o, b))
				return;
		}
		ahead++;
	}
}

/* ---- to be dropped ---- */

/*
 * Replaces b by its rest, the first n bytes of scratch, and gives up its
 * record.  The rest is written first; with no rest the record goes first: a
 * kill in between leaves one or the other, and the undo log rolls back when the
 * record is left.  Without a page for the rest the counts are rolled back here:
 * the link must end, and the record is counted with it.
 */
static void
replace_record(struct outbox *o, struct ob_block *b, size_t n, bool bare)
{
	struct arena_channel *e = b->channel->entry;
	uint64_t untaken_after = untaken_without(b);
	struct ob_block sums = *b;

	if (n == 0)
		taken(e, untaken_after, &sums);
	if (!ob_keep_rest(o, b, n, bare)) {
		ob_undo_now(o);
		ob_overflow(o);
	} else if (n > 0) {
		taken(e, untaken_after, &sums);
	}
}

static void
read_to_drop(struct disk_job *j)
{
	struct ob_block *b = j->arg;
	struct outbox *o = j->owner;
	struct ob_channel *c = b->channel;
	bool logged;
	size_t n;

	o->spool.dropping--;
	if (b->where == OB_GONE) {
		ob_segment_release(o, b);
		ob_block_destroy(o, b);
		free(j);
		return;
	}
	b->where = OB_SPOOLED;
	if (c == NULL) {
		/*
		 * A reset came in between: the block is counted with the old
		 * link.
		 */
		free(b->buffer);
		b->buffer = NULL;
		free(j);
		return;
	}
	ob_undo_arm(o, b);
	n = ob_drop_chunks(o, c, b->buffer,
	    j->error != 0 || j->damaged ? 0 : b->length, o->scratch,
	    &logged);
	if (j->error != 0 || j->damaged)
		n = put_read_loss(o, b, j->error, o->scratch);
	free(b->buffer);
	b->buffer = NULL;
	c->spooled_bytes += spool_size(b->length);
	replace_record(o, b, n, logged);
	ob_undo_disarm(o);
	free(j);
}

static bool
drop_spooled(struct outbox *o, struct ob_block *b)
{
	struct disk_job *j;

	if ((b->buffer = malloc(b->length)) == NULL)
		return false;
	if ((j = read_job(o, b, b->buffer, read_to_drop)) == NULL) {
		free(b->buffer);
		b->buffer = NULL;
		return false;
	}
	b->where = OB_READING;
	b->channel->spooled_bytes -= spool_size(b->length);
	o->spool.dropping++;
	disk_submit(o->spool.disk, j);
	return true;
}

/*
 * The oldest block of a channel with chunks to drop.  Blocks that were read to
 * be sent are older than the blocks in the spool, and go first.
 */
static struct ob_block *
oldest_of(struct outbox *o, const struct ob_channel *c)
{
	struct ob_block *b;

	for (b = c->unsent; b != NULL; b = TAILQ_NEXT(b, link)) {
		if (b->where == OB_SPOOLED ? b->chunks > 0 :
		    b->where != OB_ARENA || ob_can_drop(o, b))
			return b;
	}
	return NULL;
}

bool
ob_drop_in_spool(struct outbox *o)
{
	struct ob_block *found = NULL, *b;
	struct ob_channel *c;
	uint64_t most = 0;

	/*
	 * When the link ends everything is counted, so nothing is dropped any
	 * more.
	 */
	if (o->spool.dropping >= DROPS_MAX ||
	    arena_link(&o->arena)->overflowed != 0)
		return false;
	TAILQ_FOREACH (c, &o->channels, all) {
		if (c->spooled_bytes <= most || (b = oldest_of(o, c)) == NULL)
			continue;
		if (b->where != OB_SPOOLED && b->where != OB_ARENA)
			continue; /* the disk works on it */
		most = c->spooled_bytes;
		found = b;
	}
	if (found == NULL)
		return false;
	if (found->where == OB_SPOOLED)
		return drop_spooled(o, found);
	ob_drop_block(o, found);
	return true;
}

/* ---- to be counted ---- */

static void
read_old(struct disk_job *j)
{
	struct ob_block *b = j->arg;
	struct outbox *o = j->owner;

	b->where = OB_ARENA;
	if (j->error != 0 || j->damaged)
		b->used = (uint32_t)put_read_loss(o, b, j->error, b->buffer);
	free(j);
	ob_ready(o);
}

void
ob_read_old(struct outbox *o, struct ob_block *b)
{
	struct disk_job *j = NULL;

	if (b->buffer == NULL)
		b->buffer = malloc(LINK_BLOCK_MAX);
	if (b->buffer == NULL ||
	    (j = read_job(o, b, b->buffer, read_old)) == NULL)
		return; /* the next pump tries again */
	b->where = OB_READING;
	disk_submit(o->spool.disk, j);
}
