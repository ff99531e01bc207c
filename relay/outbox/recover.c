#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "relay/outbox/loss_track.h"
#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"

/*
 * Restores what an earlier process left in the arena and the spool.  The file
 * was ours, but a damaged one must do no harm: whatever is read is checked.
 */

static int
random_id(uint8_t id[LINK_ID_BYTES])
{
	return getrandom(id, LINK_ID_BYTES, 0) == (ssize_t)LINK_ID_BYTES ? 0 :
	    -1;
}

int
ob_new_link(struct outbox *o)
{
	struct arena_link l;

	memset(&l, 0, sizeof(l));
	l.epoch = arena_link(&o->arena)->epoch + 1;
	if (l.epoch == 0)
		l.epoch = 1;
	if (random_id(l.link_id) != 0 || random_id(l.tag) != 0)
		return -1;
	arena_set_link(&o->arena, &l);
	o->window = 0;
	o->consumed = 0;
	return 0;
}

/* Returns the bytes of whole messages at the beginning of data. */
static uint32_t
whole(const uint8_t *data, uint32_t len)
{
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *end = data;

	PB_FOREACH(&f, &r, data, len)
		end = r.p;
	return (uint32_t)(end - data);
}

/*
 * Makes the block that a descriptor tells of, or NULL; `now`: of this link.
 * Its channel is in old_channel.
 */
static struct ob_block *
read_desc(struct outbox *o, uint32_t page, bool *now)
{
	struct arena_desc *d = &o->arena.desc[page];
	const struct arena_link *l = arena_link(&o->arena);
	uint32_t pages = d->pages, used = d->used;
	struct ob_block *b;

	if (d->valid != ARENA_VALID || used == 0 || used > LINK_BLOCK_MAX ||
	    d->first == 0 || d->last < d->first || d->last == UINT64_MAX ||
	    pages > OB_BLOCK_PAGES || used > pages * ARENA_PAGE)
		return NULL;
	*now = d->epoch == l->epoch;
	if (*now && d->number != 0 && d->number <= l->last_acked)
		return NULL;
	if (!arena_take_at(&o->arena, page, pages))
		return NULL;
	if ((b = calloc(1, sizeof(*b))) == NULL) {
		arena_give(&o->arena, page, pages);
		return NULL;
	}
	b->where = OB_ARENA;
	b->page = page;
	b->pages = pages;
	b->used = whole(arena_at(&o->arena, page), used);
	b->first = d->first;
	b->last = d->last;
	b->number = d->number;
	b->time_ms = d->time_ms;
	b->version = d->version;
	b->old_channel = d->channel;
	b->old_epoch = d->epoch;
	return b;
}

/*
 * Orders blocks of one link by channel and first sequence; of blocks with the
 * same one, the newest first: it has the highest last sequence, or is in
 * memory, or has the highest version.
 */
static int
compare_places(const struct ob_block *a, const struct ob_block *b)
{
	if (a->old_channel != b->old_channel)
		return a->old_channel < b->old_channel ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last > b->last ? -1 : 1;
	if ((a->where == OB_ARENA) != (b->where == OB_ARENA))
		return a->where == OB_ARENA ? -1 : 1;
	return a->version > b->version ? -1 : a->version < b->version;
}

/* Orders sent blocks first, by number; then by place. */
static int
compare(const void *left, const void *right)
{
	const struct ob_block *a = *(struct ob_block *const *)left;
	const struct ob_block *b = *(struct ob_block *const *)right;

	if ((a->number == 0) != (b->number == 0))
		return a->number == 0 ? 1 : -1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return compare_places(a, b);
}

/* Orders by link, then by place, sent blocks as the others. */
static int
compare_old(const void *left, const void *right)
{
	const struct ob_block *a = *(struct ob_block *const *)left;
	const struct ob_block *b = *(struct ob_block *const *)right;

	if (a->old_epoch != b->old_epoch)
		return a->old_epoch < b->old_epoch ? -1 : 1;
	return compare_places(a, b);
}

static void
add_sent(struct outbox *o, struct ob_block *b)
{
	struct arena_link *l = arena_link(&o->arena);
	const struct arena_desc *d = ob_desc(o, b);
	struct ob_channel *c = b->channel;

	TAILQ_INSERT_TAIL(&c->blocks, b, link);
	TAILQ_INSERT_TAIL(&o->sent, b, sent);
	o->sent_count++;
	o->sent_pages += b->pages;
	if (l->last_sent < b->number)
		l->last_sent = b->number;
	if (c->entry->sent < d->channel_sent)
		c->entry->sent = d->channel_sent;
	if (l->sent_bytes < d->link_sent)
		l->sent_bytes = d->link_sent;
}

static void
add_unsent(struct ob_block *b)
{
	struct ob_channel *c = b->channel;

	TAILQ_INSERT_TAIL(&c->blocks, b, link);
	if (c->unsent == NULL)
		c->unsent = b;
	c->unsent_pages += b->pages;
	if (b->where == OB_SPOOLED) {
		c->spooled = b;
		c->spooled_bytes += spool_size(b->length);
	}
}

/* Whether every sent block that was not acknowledged is there. */
static bool
in_a_row(struct outbox *o, struct ob_block **blocks, size_t n)
{
	uint64_t number = arena_link(&o->arena)->last_acked;
	size_t i;

	/* Numbers that no link reaches, or that were never given. */
	if (number > arena_link(&o->arena)->last_sent ||
	    arena_link(&o->arena)->last_sent > UINT64_MAX / 2)
		return false;
	for (i = 0; i < n && blocks[i]->number != 0; i++)
		if (blocks[i]->number != ++number)
			return false;
	return arena_link(&o->arena)->last_sent <= number;
}

static void
discard(struct outbox *o, struct ob_block *b)
{
	ob_segment_release(o, b);
	ob_block_destroy(o, b);
}

/* Takes over blocks of this link.  Their channels exist, or are made. */
static int
adopt(struct outbox *o, struct ob_block **blocks, size_t n)
{
	struct ob_block *b, *before = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		b = blocks[i];
		/*
		 * Two blocks with the same sequences: the process died between
		 * writing one and deleting the other.
		 */
		if (before != NULL && before->old_channel == b->old_channel &&
		    b->first <= before->last && b->number == 0 &&
		    before->number == 0) {
			discard(o, b);
			continue;
		}
		if ((b->channel = ob_channel_get(o, b->old_channel)) == NULL)
			return -1;
		if (b->number != 0)
			add_sent(o, b);
		else
			add_unsent(b);
		if (b->channel->next <= b->last)
			b->channel->next = b->last + 1;
		if (b->old_channel > o->arena.head->last_channel)
			o->arena.head->last_channel = b->old_channel;
		ob_turn_want(o, b->channel);
		before = b;
	}
	return 0;
}

/* Takes over blocks of an earlier link. */
static void
adopt_old(struct outbox *o, struct ob_block **blocks, size_t n, uint32_t cause)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i > 0 && blocks[i - 1] != NULL &&
		    blocks[i - 1]->old_channel == blocks[i]->old_channel &&
		    blocks[i - 1]->old_epoch == blocks[i]->old_epoch &&
		    blocks[i]->first <= blocks[i - 1]->last) {
			discard(o, blocks[i]);
			blocks[i] = NULL;
			continue;
		}
		ob_old_add(o, blocks[i], blocks[i]->old_channel,
		    blocks[i]->old_epoch, cause);
	}
}

/* Clears tracks that fail validation. */
static void
check_tracks(struct outbox *o)
{
	struct arena_track *t;
	uint32_t i;

	for (i = 0; i < ARENA_TRACKS; i++) {
		t = &o->arena.tracks[i];
		if (!loss_track_is_sound(t))
			memset(t, 0, sizeof(*t));
	}
}

/* Takes over tracks, and losses that were not told. */
static void
adopt_tables(struct outbox *o)
{
	uint32_t epoch = arena_link(&o->arena)->epoch, i;
	const struct arena_track *t;
	struct ob_channel *c;

	for (i = 0; i < ARENA_TRACKS; i++) {
		t = &o->arena.tracks[i];
		if (t->epoch == epoch &&
		    (c = ob_channel_find(o, t->channel)) != NULL)
			c->tracked = true;
		else if (t->epoch != 0)
			o->old_tracks = true;
	}
	for (i = 0; i < ARENA_LOSSES; i++)
		if (o->arena.losses[i].full != 0)
			o->old_losses = i + 1;
}

static int
adopt_channels(struct outbox *o)
{
	uint32_t epoch = arena_link(&o->arena)->epoch, i;

	for (i = 0; i < ARENA_CHANNELS; i++)
		if (o->arena.channels[i].epoch == epoch &&
		    ob_channel_adopt(o, &o->arena.channels[i]) != 0)
			return -1;
	return 0;
}

/*
 * Makes blocks of all valid descriptors: *of_now of this link, then the others.
 * Returns how many.
 */
static size_t
read_all(struct outbox *o, struct ob_block **blocks, size_t *of_now)
{
	struct ob_block *b;
	size_t n = 0, old = 0;
	uint32_t page;
	bool now;

	*of_now = 0;
	for (page = 0; page < o->arena.pages; page++) {
		if ((b = read_desc(o, page, &now)) == NULL) {
			if (o->arena.desc[page].valid != 0)
				o->arena.desc[page].valid = 0;
			continue;
		}
		if (now)
			blocks[n++] = b;
		else
			blocks[o->arena.pages - ++old] = b;
	}
	*of_now = n;
	memmove(blocks + n, blocks + o->arena.pages - old,
	    old * sizeof(blocks[0]));
	return n + old;
}

/* Whether a record of this link is still needed. */
static bool
needed(const struct outbox *o, const struct ob_block *b)
{
	const struct ob_channel *c = ob_channel_find(o, b->old_channel);

	return c != NULL && b->first > c->entry->untaken_after;
}

/*
 * Sorts the records found in the spool: needed blocks of this link are added
 * behind the n of the arena, others of this link are discarded, and blocks of
 * other links stay in f.  Returns the new n.
 */
static size_t
sort_out(struct outbox *o, struct ob_found *f, struct ob_block **blocks,
    size_t n)
{
	uint32_t epoch = o->recovered ? arena_link(&o->arena)->epoch : 0;
	size_t i, others = 0;
	struct ob_block *b;

	for (i = 0; i < f->n; i++) {
		b = f->blocks[i];
		if (b->old_epoch != epoch || epoch == 0)
			f->blocks[others++] = b;
		else if (needed(o, b))
			blocks[n++] = b;
		else
			discard(o, b);
	}
	f->n = others;
	return n;
}

/* The arena's blocks and the spool's, in the order of their channels. */
static int
put_together(struct outbox *o, struct ob_block **blocks, size_t now,
    struct ob_found *f)
{
	struct ob_block **all;
	int ret;

	if ((all = calloc(now + f->n + 1, sizeof(all[0]))) == NULL)
		return -1;
	memcpy(all, blocks, now * sizeof(all[0]));
	now = sort_out(o, f, all, now);
	qsort(all, now, sizeof(all[0]), compare);
	ret = adopt(o, all, now);
	free(all);
	return ret;
}

static int
recover_arena(struct outbox *o, struct ob_found *f)
{
	struct ob_block **blocks;
	size_t n, now;
	int ret = -1;

	if ((blocks = calloc(o->arena.pages, sizeof(blocks[0]))) == NULL)
		return -1;
	ob_undo_recover(o);
	check_tracks(o);
	n = read_all(o, blocks, &now);
	qsort(blocks, now, sizeof(blocks[0]), compare);
	qsort(blocks + now, n - now, sizeof(blocks[0]), compare_old);
	adopt_old(o, blocks + now, n - now, OB_LOSS(GRACE));
	o->recovered = in_a_row(o, blocks, now);
	if (o->recovered) {
		if (adopt_channels(o) != 0 ||
		    put_together(o, blocks, now, f) != 0)
			goto out;
	} else {
		log_warn("The state kept by the last relay is inconsistent; "
		    "the link begins anew");
		adopt_old(o, blocks, now, OB_LOSS(SPOOL_DAMAGED));
	}
	adopt_tables(o);
	ret = 0;
out:
	free(blocks);
	return ret;
}

int
ob_recover(struct outbox *o, bool found)
{
	struct ob_found f = { .n = 0 };
	int ret;

	if ((ret = ob_spool_scan(o, &f)) == 0 && found)
		ret = recover_arena(o, &f);
	if (ret == 0 && o->recovered)
		ret = ob_tell_missing(o);
	/* Other records of the spool are of links that are over. */
	if (f.n > 0)
		qsort(f.blocks, f.n, sizeof(f.blocks[0]), compare_old);
	adopt_old(o, f.blocks, f.n, OB_LOSS(GRACE));
	free(f.blocks);
	return ret;
}
