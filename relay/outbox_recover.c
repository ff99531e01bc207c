#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "relay/outbox_internal.h"
#include "transport/log.h"

/*
 * What an earlier process left in the arena.  It was ours, but a damaged file
 * must do no harm: nothing in it is believed that is not checked.
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
	if (random_id(l.link_id) != 0)
		return -1;
	arena_set_link(&o->arena, &l);
	o->window = 0;
	o->consumed = 0;
	return 0;
}

/* Whole messages in data, of len bytes: how many of them. */
static uint32_t
whole(const uint8_t *data, uint32_t len)
{
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *end = data;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		end = r.p;
	return (uint32_t)(end - data);
}

/* The block that a descriptor tells of, or NULL. */
static struct ob_block *
read_desc(struct outbox *o, uint32_t page)
{
	struct arena_desc *d = &o->arena.desc[page];
	struct ob_channel *c;
	struct ob_block *b;
	uint32_t pages = d->pages, used = d->used;

	if (d->valid != ARENA_VALID ||
	    d->epoch != arena_link(&o->arena)->epoch || used == 0 ||
	    used > LINK_BLOCK_MAX || d->first == 0 || d->last < d->first ||
	    pages > OB_BLOCK_PAGES || used > pages * ARENA_PAGE ||
	    (d->number != 0 && d->number <= arena_link(&o->arena)->last_acked))
		return NULL;
	if ((c = ob_channel_get(o, d->channel)) == NULL ||
	    !arena_take_at(&o->arena, page, pages))
		return NULL;
	if ((b = calloc(1, sizeof(*b))) == NULL) {
		arena_give(&o->arena, page, pages);
		return NULL;
	}
	b->channel = c;
	b->where = OB_ARENA;
	b->page = page;
	b->pages = pages;
	b->used = whole(arena_at(&o->arena, page), used);
	b->first = d->first;
	b->last = d->last;
	b->number = d->number;
	b->time_ms = d->time_ms;
	return b;
}

/* Sent ones first, by number; then by channel and sequence. */
static int
compare(const void *left, const void *right)
{
	const struct ob_block *a = *(struct ob_block *const *)left;
	const struct ob_block *b = *(struct ob_block *const *)right;

	if ((a->number == 0) != (b->number == 0))
		return a->number == 0 ? 1 : -1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	if (a->channel != b->channel)
		return a->channel->id < b->channel->id ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return 0;
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
}

/* Whether every sent block that was not acknowledged is there. */
static bool
in_a_row(struct outbox *o, struct ob_block **blocks, size_t n)
{
	uint64_t number = arena_link(&o->arena)->last_acked;
	size_t i;

	for (i = 0; i < n && blocks[i]->number != 0; i++)
		if (blocks[i]->number != ++number)
			return false;
	return arena_link(&o->arena)->last_sent <= number;
}

static void
discard(struct outbox *o, struct ob_block *b)
{
	ob_desc(o, b)->valid = 0;
	arena_give(&o->arena, b->page, b->pages);
	free(b);
}

static void
adopt(struct outbox *o, struct ob_block **blocks, size_t n)
{
	struct ob_block *b, *before = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		b = blocks[i];
		/* Two that hold the same: the process died in between. */
		if (before != NULL && before->channel == b->channel &&
		    b->first <= before->last && b->number == 0) {
			discard(o, b);
			continue;
		}
		if (b->number != 0)
			add_sent(o, b);
		else
			add_unsent(b);
		if (b->channel->next <= b->last)
			b->channel->next = b->last + 1;
		ob_turn_want(o, b->channel);
		before = b;
	}
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

int
ob_recover(struct outbox *o)
{
	struct ob_block **blocks, *b;
	uint32_t page;
	size_t n = 0, i;

	if ((blocks = calloc(o->arena.pages, sizeof(blocks[0]))) == NULL ||
	    adopt_channels(o) != 0) {
		free(blocks);
		return -1;
	}
	for (page = 0; page < o->arena.pages; page++) {
		if ((b = read_desc(o, page)) != NULL) {
			blocks[n++] = b;
			page += b->pages - 1;
		} else if (o->arena.desc[page].valid != 0) {
			o->arena.desc[page].valid = 0;
		}
	}
	qsort(blocks, n, sizeof(blocks[0]), compare);
	o->recovered = in_a_row(o, blocks, n);
	if (o->recovered) {
		adopt(o, blocks, n);
	} else {
		log_warn("What the relay kept does not hold together; the link "
		    "begins anew");
		for (i = 0; i < n; i++)
			discard(o, blocks[i]);
	}
	free(blocks);
	return 0;
}
