#include <assert.h>
#include <string.h>

#include "relay/outbox_count.h"
#include "relay/outbox_internal.h"
#include "transport/log.h"

/*
 * The end of a channel where messages are added.  The head of a message whose
 * length is not known yet has a length of three bytes, whatever it is.
 */

_Static_assert(LINK_BLOCK_MAX % ARENA_PAGE == 0, "blocks are whole pages");
_Static_assert(LINK_MESSAGE_MAX < 1u << 21, "three bytes hold a length");

/* Losses at a channel's end are added up when they have become so long. */
#define TOLD_BYTES 2048u

/* A block at the channel's end with room for need bytes; NULL: none. */
static struct ob_block *
room(struct outbox *o, struct ob_channel *c, size_t need, bool control)
{
	struct ob_block *b;

	for (;;) {
		if (c->open != NULL &&
		    ob_block_grow(o, c->open, need, control))
			return c->open;
		if ((b = ob_block_begin(o, c, need, control)) != NULL)
			return b;
		if (!control && o->drop == OUTBOX_DROP_NEWEST)
			return NULL;
		if (!ob_squeeze(o))
			return NULL;
	}
}

static uint8_t *
block_end(struct outbox *o, const struct ob_block *b)
{
	return arena_at(&o->arena, b->page) + b->used;
}

/* Encoded messages, whole ones, which must not be dropped. */
static void
append(struct outbox *o, struct ob_channel *c, const uint8_t *head, size_t n,
    const void *data, size_t len)
{
	struct ob_block *b;

	if ((b = room(o, c, n + len, true)) == NULL) {
		ob_overflow(o);
		return;
	}
	if (n > 0)
		memcpy(block_end(o, b), head, n);
	if (len > 0)
		memcpy(block_end(o, b) + n, data, len);
	ob_block_add(o, b, n + len);
}

void
ob_tell(struct outbox *o, struct ob_channel *c, const struct link_loss *l)
{
	uint8_t head[LINK_MESSAGE_HEAD_MAX], bytes[LINK_LOSS_MAX];
	size_t len = link_put_loss(bytes, l);

	append(o, c, head, link_put_message_head(head, LINK_UP_LOSS, len),
	    bytes, len);
	c->told_bytes += (uint32_t)len;
	if (c->told_bytes >= TOLD_BYTES)
		ob_compact(o, c);
}

/* A writer, or all of the channel, will say no more: what was pending is lost. */
static void
tell_pending(struct outbox *o, struct ob_channel *c, uint32_t writer)
{
	struct count k = ob_count(o);
	struct link_loss due;

	while (c->tracked && count_end(&k, c->id, writer, &due)) {
		ob_count_lost(o, &due);
		ob_tell(o, c, &due);
	}
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
		tell_pending(o, c, UINT32_MAX);
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
	size_t n;

	assert(!o->reserving);
	if (varint)
		len = 0;
	if (len > LINK_MESSAGE_MAX) {
		log_warn("A message of %zu bytes is too long for the link; it "
		    "is left out", len);
		return;
	}
	if ((c = ob_channel_get(o, channel)) == NULL) {
		ob_overflow(o);
		return;
	}
	if (kind == LINK_UP_UNREGISTER_WRITER)
		tell_pending(o, c, (uint32_t)value);
	if (kind == LINK_UP_CLOSE)
		tell_pending(o, c, UINT32_MAX);
	if (kind == LINK_UP_CLOSE_BELOW)
		close_below(o, value);
	n = varint ? link_put_varint(head, kind, value) :
	    link_put_message_head(head, kind, len);
	append(o, c, head, n, data, len);
	if (kind == LINK_UP_CLOSE)
		c->closed = true;
	ob_pump(o);
}

uint8_t *
outbox_reserve(struct outbox *o, uint32_t channel, size_t max, bool data)
{
	struct ob_channel *c;

	assert(!o->reserving);
	if (max > LINK_MESSAGE_MAX)
		return NULL;
	if ((c = ob_channel_get(o, channel)) != NULL)
		o->reserved = room(o, c, OB_COMMIT_HEAD + max, !data);
	o->reserving = true;
	o->reserved_data = data;
	o->reserved_max = (uint32_t)max;
	/* Without room it is looked at, counted and dropped. */
	return (o->reserved != NULL ? block_end(o, o->reserved) :
	    o->unplaced) +
	    OB_COMMIT_HEAD;
}

static void
put_head(uint8_t *p, size_t len)
{
	p[0] = LINK_UP_COMMIT << 3 | PB_BYTES;
	p[1] = (uint8_t)(len | 0x80);
	p[2] = (uint8_t)(len >> 7 | 0x80);
	p[3] = (uint8_t)(len >> 14);
}

/*
 * Remembers a chunk that may come again, and tells what is lost now that it
 * came.
 */
static void
note_chunks(struct outbox *o, struct ob_channel *c, const uint8_t *commit,
    size_t len)
{
	struct count k = ob_count(o);
	struct count_chunk chunk;
	struct link_loss due;
	struct pb_reader r;
	struct pb_field f;
	bool is_chunk;

	pb_init(&r, commit, len);
	while (count_next(&r, &f, &is_chunk, &chunk)) {
		if (!is_chunk || (!c->tracked && !chunk.incomplete))
			continue;
		c->tracked = true;
		if (count_put(&k, c->id, &chunk, &due)) {
			ob_count_lost(o, &due);
			ob_tell(o, c, &due);
		}
	}
}

/* A message of len bytes, with its head, for which there is no room. */
static void
drop(struct outbox *o, struct ob_channel *c, const uint8_t *message,
    size_t len)
{
	size_t n;

	note_chunks(o, c, message + OB_COMMIT_HEAD, len - OB_COMMIT_HEAD);
	n = ob_strip(o, c, true, ob_cause(o), message, len, o->left);
	if (n == 0)
		return;
	append(o, c, NULL, 0, o->left, n);
	c->told_bytes += (uint32_t)n;
	if (c->told_bytes >= TOLD_BYTES)
		ob_compact(o, c);
}

void
outbox_commit(struct outbox *o, uint32_t channel, size_t len)
{
	struct ob_channel *c = ob_channel_find(o, channel);
	struct ob_block *b = o->reserved;
	uint8_t *p;

	assert(o->reserving && len <= o->reserved_max);
	o->reserving = false;
	o->reserved = NULL;
	if (b == NULL) {
		put_head(o->unplaced, len);
		if (c == NULL)
			ob_overflow(o);
		else if (len > 0)
			drop(o, c, o->unplaced, OB_COMMIT_HEAD + len);
		ob_pump(o);
		return;
	}
	assert(b->channel == c);
	if (len == 0) {
		if (b->used == 0)
			ob_block_free(o, b);
		return;
	}
	p = block_end(o, b);
	put_head(p, len);
	ob_block_add(o, b, OB_COMMIT_HEAD + len);
	if (o->reserved_data) {
		b->bare = false;
		note_chunks(o, c, p + OB_COMMIT_HEAD, len);
	}
	ob_pump(o);
}

bool
outbox_is_busy(struct outbox *o)
{
	if ((o->spool.writing_pages == 0 && o->spool.dooming == 0) ||
	    ob_has_room(o))
		return false;
	o->wanted = true;
	return true;
}

void
outbox_dropped(struct outbox *o, uint32_t channel,
    const struct link_loss *loss)
{
	struct link_loss l = *loss;
	struct ob_channel *c;

	if (l.cause == OB_LOSS(UNSPECIFIED))
		l.cause = ob_cause(o);
	ob_count_lost(o, &l);
	if ((c = ob_channel_get(o, channel)) == NULL)
		ob_overflow(o);
	else
		ob_tell(o, c, &l);
}

bool
outbox_channel_is_empty(const struct outbox *o, uint32_t channel)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c == NULL || TAILQ_EMPTY(&c->blocks);
}
