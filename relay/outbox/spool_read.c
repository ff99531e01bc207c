#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/*
 * From the spool back into memory: what is sent next, some blocks ahead; what
 * is dropped, into a buffer of its own, to be counted; and what an old link
 * left, the same.
 */

/* Blocks of a channel that are read ahead, and those to be dropped. */
#define AHEAD_BLOCKS 6u
#define DOOM_BLOCKS  4u

static struct disk_job *
read_job(struct outbox *o, struct ob_block *b, uint8_t *into,
    void (*done)(struct disk_job *j))
{
	struct disk_job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->kind = DISK_READ;
	j->segment = b->segment->id;
	j->offset = b->offset;
	memcpy(j->record.tag, b->tag, LINK_ID_BYTES);
	j->record.channel = b->channel != NULL ? b->channel->id :
	    b->old_channel;
	j->record.len = b->length;
	j->record.first = b->first;
	j->record.last = b->last;
	j->data = into;
	j->done = done;
	j->owner = o;
	j->arg = b;
	return j;
}

/* What stands in a block's place when it cannot be read.  Returns bytes. */
static size_t
epitaph(struct outbox *o, const struct ob_block *b, int error, uint8_t *out)
{
	struct link_loss l = {
		.cause = error != 0 ? OB_LOSS(DISK) : OB_LOSS(SPOOL_DAMAGED),
		.chunks = b->chunks, .packets = b->packets, .bytes = b->bytes,
	};
	uint8_t bytes[LINK_LOSS_MAX];
	size_t n, len = link_put_loss(bytes, &l);

	if (error == 0)
		o->spool.damaged++;
	log_limited(&o->spool.log_limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "A block of the spool in %s %s; %u chunks are lost", o->spool.dir,
	    error != 0 ? "cannot be read" : "is damaged", b->chunks);
	ob_count_lost(o, &l);
	n = link_put_message_head(out, LINK_UP_LOSS, len);
	memcpy(out + n, bytes, len);
	n += len;
	if (b->closes)
		n += link_put_message_head(out + n, LINK_UP_CLOSE, 0);
	return n;
}

/*
 * Up to where no record is needed, once b's is not.  Older ones may be, which
 * were passed over as there was nothing to drop in them.
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
 * The record of a block with these sums is not needed: its place in the order
 * is taken by memory, or by nothing.
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

	b->where = OB_ARENA;
	if (b->gone) {
		ob_segment_release(o, b);
		ob_block_destroy(o, b);
		free(j);
		return;
	}
	if (j->error != 0 || j->damaged) {
		/* Of an old link, too: it is counted, and then skipped. */
		b->used = (uint32_t)epitaph(o, b, j->error,
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
 * Pages to read a block into; the gate's, when it has to be.  Not those that
 * are kept for what is left of blocks: it could not be kept then.
 */
static bool
pages_for(struct outbox *o, struct ob_block *b)
{
	struct ob_spool *s = &o->spool;
	uint32_t page, pages;

	page = ob_take_pages(o, ob_pages(b->length), 0, false, &pages);
	if (page == ARENA_NONE && s->gate != ARENA_NONE && !s->gate_taken) {
		s->gate_taken = true;
		page = s->gate;
		pages = OB_GATE_PAGES;
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
 * What is left of b stands in its place before its record is given up, and
 * where nothing is left the record is given up first: killed in between, the
 * next process finds one or the other, and what was counted is undone where it
 * is the record.  So it is here where there is not a page: this link cannot be
 * kept then, and the record is counted with all that is left of it.
 */
static void
replace_record(struct outbox *o, struct ob_block *b, size_t n)
{
	struct arena_channel *e = b->channel->entry;
	uint64_t untaken_after = untaken_without(b);
	struct ob_block sums = *b;

	if (n == 0)
		taken(e, untaken_after, &sums);
	if (!ob_keep_rest(o, b, n)) {
		ob_uncount(o);
		ob_overflow(o);
	} else if (n > 0) {
		taken(e, untaken_after, &sums);
	}
}

static void
doomed(struct disk_job *j)
{
	struct ob_block *b = j->arg;
	struct outbox *o = j->owner;
	struct ob_channel *c = b->channel;
	size_t n;

	o->spool.dooming--;
	b->where = OB_SPOOLED;
	if (b->gone) {
		ob_segment_release(o, b);
		ob_block_destroy(o, b);
		free(j);
		return;
	}
	if (c == NULL) {
		/* A reset came in between: it is counted as part of that. */
		free(b->buffer);
		b->buffer = NULL;
		free(j);
		return;
	}
	ob_arm(o, b);
	n = ob_strip(o, c, true, ob_cause(o), b->buffer,
	    j->error != 0 || j->damaged ? 0 : b->length, o->scratch);
	if (j->error != 0 || j->damaged)
		n = epitaph(o, b, j->error, o->scratch);
	free(b->buffer);
	b->buffer = NULL;
	c->spooled_bytes += spool_size(b->length);
	replace_record(o, b, n);
	ob_disarm(o);
	free(j);
}

static bool
doom(struct outbox *o, struct ob_block *b)
{
	struct disk_job *j;

	if ((b->buffer = malloc(b->length)) == NULL)
		return false;
	if ((j = read_job(o, b, b->buffer, doomed)) == NULL) {
		free(b->buffer);
		b->buffer = NULL;
		return false;
	}
	b->where = OB_READING;
	b->channel->spooled_bytes -= spool_size(b->length);
	o->spool.dooming++;
	disk_submit(o->spool.disk, j);
	return true;
}

/*
 * The oldest of a channel with something to drop in it.  What was read to be
 * sent is older than what is in the spool, and goes first.
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
ob_doom(struct outbox *o)
{
	struct ob_block *found = NULL, *b;
	struct ob_channel *c;
	uint64_t most = 0;

	/* Of a link that ends all is counted, and nothing dropped any more. */
	if (o->spool.dooming >= DOOM_BLOCKS ||
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
		return doom(o, found);
	ob_strip_block(o, found);
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
		b->used = (uint32_t)epitaph(o, b, j->error, b->buffer);
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
