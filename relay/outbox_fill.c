#include <assert.h>
#include <string.h>

#include "relay/outbox_internal.h"
#include "transport/log.h"

/*
 * The end of a channel where messages are added.  The head of a message whose
 * length is not known yet has a length of three bytes, whatever it is.
 */

_Static_assert(LINK_BLOCK_MAX % ARENA_PAGE == 0, "blocks are whole pages");
_Static_assert(LINK_MESSAGE_MAX < 1u << 21, "three bytes hold a length");

/* A block at the channel's end with room for need bytes; NULL: none. */
static struct ob_block *
room(struct outbox *o, struct ob_channel *c, size_t need, bool control)
{
	struct ob_block *b = c->open;

	if (b != NULL && ob_block_grow(o, b, need, control))
		return b;
	return ob_block_begin(o, c, need, control);
}

static uint8_t *
block_end(struct outbox *o, const struct ob_block *b)
{
	return arena_at(&o->arena, b->page) + b->used;
}

/* Nothing more is said on channels that are below it. */
static void
close_below(struct outbox *o, uint64_t below)
{
	struct ob_channel *c, *next;

	for (c = TAILQ_FIRST(&o->channels); c != NULL; c = next) {
		next = TAILQ_NEXT(c, all);
		if (c->id == 0 || c->id >= below)
			continue;
		c->closed = true;
		ob_channel_settle(o, c);
	}
}

void
outbox_put(struct outbox *o, uint32_t channel, enum link_up kind,
    const void *data, size_t len, uint64_t value)
{
	bool varint = kind == LINK_UP_UNREGISTER_WRITER ||
	    kind == LINK_UP_STARTED || kind == LINK_UP_STOPPED ||
	    kind == LINK_UP_CLOSE_BELOW;
	uint8_t head[LINK_MESSAGE_HEAD_MAX];
	struct ob_channel *c;
	struct ob_block *b;
	size_t n;

	assert(o->reserved == NULL);
	if (varint)
		len = 0;
	if (len > LINK_MESSAGE_MAX) {
		log_warn("A message of %zu bytes is too long for the link; it "
		    "is left out", len);
		return;
	}
	n = varint ? link_put_varint(head, kind, value) :
	    link_put_message_head(head, kind, len);
	if ((c = ob_channel_get(o, channel)) == NULL ||
	    (b = room(o, c, n + len, true)) == NULL) {
		ob_overflow(o);
		return;
	}
	memcpy(block_end(o, b), head, n);
	if (len > 0)
		memcpy(block_end(o, b) + n, data, len);
	ob_block_add(o, b, n + len);
	if (kind == LINK_UP_CLOSE)
		c->closed = true;
	if (kind == LINK_UP_CLOSE_BELOW)
		close_below(o, value);
}

uint8_t *
outbox_reserve(struct outbox *o, uint32_t channel, size_t max, bool data)
{
	struct ob_channel *c;
	struct ob_block *b;

	assert(o->reserved == NULL);
	if (max > LINK_MESSAGE_MAX)
		return NULL;
	if ((c = ob_channel_get(o, channel)) == NULL ||
	    (b = room(o, c, OB_COMMIT_HEAD + max, !data)) == NULL) {
		if (!data || c == NULL)
			ob_overflow(o);
		return NULL;
	}
	o->reserved = b;
	o->reserved_max = (uint32_t)max;
	return block_end(o, b) + OB_COMMIT_HEAD;
}

void
outbox_commit(struct outbox *o, uint32_t channel, size_t len)
{
	struct ob_block *b = o->reserved;
	uint8_t *p;

	assert(b != NULL && b->channel->id == channel &&
	    len <= o->reserved_max);
	o->reserved = NULL;
	if (len == 0) {
		if (b->used == 0)
			ob_block_free(o, b);
		return;
	}
	p = block_end(o, b);
	p[0] = LINK_UP_COMMIT << 3 | PB_BYTES;
	p[1] = (uint8_t)(len | 0x80);
	p[2] = (uint8_t)(len >> 7 | 0x80);
	p[3] = (uint8_t)(len >> 14);
	ob_block_add(o, b, OB_COMMIT_HEAD + len);
}

void
outbox_dropped(struct outbox *o, uint32_t channel,
    const struct link_loss *loss)
{
	struct link_loss l = *loss;
	uint8_t bytes[LINK_LOSS_MAX];

	if (l.cause == OB_LOSS(UNSPECIFIED))
		l.cause = OB_LOSS(SPOOL_FULL);
	if (l.cause >= LINK_LOSS_CAUSES)
		return;
	o->arena.head->lost[0][l.cause] += l.chunks;
	o->arena.head->lost[1][l.cause] += l.packets;
	o->arena.head->lost[2][l.cause] += l.bytes;
	outbox_put(o, channel, LINK_UP_LOSS, bytes, link_put_loss(bytes, &l),
	    0);
}

bool
outbox_channel_is_empty(const struct outbox *o, uint32_t channel)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c == NULL || TAILQ_EMPTY(&c->blocks);
}
