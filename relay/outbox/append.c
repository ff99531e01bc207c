#include <assert.h>
#include <string.h>

#include "protos/fields.h"
#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"
#include "transport/base/log.h"

/*
 * Adds messages at the end of a channel.  A reserved message has its length
 * padded to three bytes, as the head is before the length is known.
 */

_Static_assert(LINK_BLOCK_MAX % ARENA_PAGE == 0, "blocks are whole pages");
_Static_assert(LINK_MESSAGE_MAX < 1u << 21, "three bytes hold a length");

/* Bytes of losses at a channel's end after which they are added up. */
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
		if (!control && o->drop == RELAY_DROP_NEWEST)
			return NULL;
		if (!ob_drop_in_memory(o))
			return NULL;
	}
}

static uint8_t *
block_end(struct outbox *o, const struct ob_block *b)
{
	return arena_at(&o->arena, b->page) + b->used;
}

/* Adds whole encoded messages, which must not be dropped. */
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

/*
 * Counts bytes of losses at the channel's end; joins them when they are many.
 */
static void
told(struct outbox *o, struct ob_channel *c, size_t bytes)
{
	c->told_bytes += (uint32_t)bytes;
	if (c->told_bytes >= TOLD_BYTES)
		ob_compact(o, c);
}

/*
 * Adds a loss at the end of b, which has room and for which the journal is
 * armed.
 */
static void
tell(struct outbox *o, struct ob_block *b, const struct link_loss *l)
{
	size_t n = link_put_loss_message(block_end(o, b), l);

	ob_block_add(o, b, n);
	ob_undo_disarm(o);
	told(o, b->channel, n);
}

/*
 * Adds the pending losses of a writer, or of all writers of the channel
 * (UINT32_MAX), whose chunks do not come again.
 */
static void
tell_pending(struct outbox *o, struct ob_channel *c, uint32_t writer)
{
	struct loss_account k = ob_account(o);
	struct link_loss due;
	struct ob_block *b;
	uint32_t w = writer;

	for (; c->tracked && loss_account_next_pending(&k, c->id, &w);
	    w = writer) {
		if ((b = room(o, c, LINK_LOSS_MESSAGE_MAX, true)) == NULL) {
			ob_overflow(o); /* counted when the link is reset */
			return;
		}
		ob_undo_arm_end(o, b);
		k = ob_account(o);
		if (loss_account_end(&k, c->id, w, &due)) {
			ob_count_lost(o, &due);
			tell(o, b, &due);
		}
		ob_undo_disarm(o);
		ob_forget_empty(o, c);
	}
}

/* Closes all channels below a number, but for channel 0. */
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

	assert(o->reservation == OB_RESERVED_NOTHING);
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
	if (kind == LINK_UP_UNREGISTER_WRITER) {
		tell_pending(o, c, (uint32_t)value);
		ob_writer_end(c, value);
	}
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

	assert(o->reservation == OB_RESERVED_NOTHING);
	if (max > LINK_MESSAGE_MAX)
		return NULL;
	if ((c = ob_channel_get(o, channel)) != NULL)
		o->reserved = room(o, c, OB_COMMIT_HEAD + max, !data);
	o->reservation = data ? OB_RESERVED_DATA : OB_RESERVED_CONTROL;
	o->reserved_max = (uint32_t)max;
	/*
	 * Without room the message is parsed, counted and dropped when it is
	 * committed.
	 */
	return (o->reserved != NULL ? block_end(o, o->reserved) :
	    o->unplaced) +
	    OB_COMMIT_HEAD;
}

static void
put_head(uint8_t *p, size_t len)
{
	p[0] = PB_TAG(LINK_UP_COMMIT, PB_BYTES);
	p[1] = (uint8_t)(len | 0x80);
	p[2] = (uint8_t)(len >> 7 | 0x80);
	p[3] = (uint8_t)(len >> 14);
}

/* Finds the first writer whose pending loss is final with these chunks. */
static bool
next_over(struct outbox *o, struct ob_channel *c, const uint8_t *commit,
    size_t len, uint32_t *writer)
{
	struct loss_account k = ob_account(o);
	struct commit_chunk chunk;
	struct pb_reader r;

	if (!c->tracked)
		return false;
	pb_init(&r, commit, len);
	while (commit_chunk_next(&r, &chunk)) {
		*writer = chunk.writer;
		if (loss_account_is_over(&k, c->id, &chunk))
			return true;
	}
	return false;
}

/* Adds the losses that next_over() finds.  False: no room; the link ends. */
static bool
tell_over(struct outbox *o, struct ob_channel *c, const uint8_t *commit,
    size_t len)
{
	const struct arena_link *l = arena_link(&o->arena);
	uint32_t writer;

	while (l->overflowed == 0 && next_over(o, c, commit, len, &writer))
		tell_pending(o, c, writer);
	return l->overflowed == 0;
}

/*
 * Whether a complete chunk has the id of one that was dropped: another
 * writer's, or the same chunk, which is kept after all.  The run in the track
 * would hide a later loss of it.
 */
static bool
is_new(const struct ob_channel *c, const struct loss_account *k,
    const struct commit_chunk *chunk, bool kept)
{
	return !chunk->incomplete &&
	    (kept || ob_writer_has_ended(c, chunk->writer)) &&
	    loss_account_was_dropped(k, c->id, chunk->writer, chunk->id);
}

/*
 * Notes chunks in their tracks, before they are added at the end of b; arms the
 * undo log with the first.  kept: the chunks have room in b.
 */
static void
note_chunks(struct outbox *o, struct ob_block *b, const uint8_t *commit,
    size_t len, bool kept)
{
	struct ob_channel *c = b->channel;
	struct commit_chunk chunk;
	struct pb_reader r;
	struct loss_account k;

	pb_init(&r, commit, len);
	while (commit_chunk_next(&r, &chunk)) {
		if (!c->tracked && !chunk.incomplete)
			continue;
		c->tracked = true;
		if (o->arena.undo->armed == 0)
			ob_undo_arm_end(o, b);
		k = ob_account(o);
		loss_account_put(&k, c->id, &chunk);
		if (is_new(c, &k, &chunk, kept))
			loss_account_forget(&k, c->id, chunk.writer);
	}
}

/*
 * Drops the chunks of a message that has no room, and adds its rest and the
 * losses.  message begins with its head.
 */
static void
drop(struct outbox *o, struct ob_channel *c, const uint8_t *message,
    size_t len)
{
	const uint8_t *commit = message + OB_COMMIT_HEAD;
	size_t n = LINK_LOSS_MESSAGE_MAX; /* mostly the rest is one loss */
	struct ob_block *b = NULL;
	bool logged;

	for (;;) {
		if (tell_over(o, c, commit, len - OB_COMMIT_HEAD))
			b = room(o, c, n, true);
		if (b == NULL) {
			ob_old_commit(o, c->id, commit, len - OB_COMMIT_HEAD);
			ob_overflow(o);
			return;
		}
		ob_undo_arm_end(o, b);
		note_chunks(o, b, commit, len - OB_COMMIT_HEAD, false);
		n = ob_drop_chunks(o, c, message, len, o->left, &logged);
		if (ob_block_grow(o, b, n, true))
			break;
		ob_undo_now(o);
		b = NULL;
	}
	memcpy(block_end(o, b), o->left, n);
	if (!logged)
		b->bare = false;
	if (n > 0)
		ob_block_add(o, b, n);
	ob_undo_disarm(o);
	ob_forget_empty(o, c);
	told(o, c, n);
}

/*
 * Adds losses that must stand before a message which is written at b's end
 * already, and writes the message behind them.  Returns the block at whose end
 * it is then; NULL: no room, the message is in o->unplaced.
 */
static struct ob_block *
put_behind_losses(struct outbox *o, struct ob_block *b, size_t len)
{
	struct ob_channel *c = b->channel;

	memcpy(o->unplaced, block_end(o, b), OB_COMMIT_HEAD + len);
	if (!tell_over(o, c, o->unplaced + OB_COMMIT_HEAD, len) ||
	    (b = room(o, c, OB_COMMIT_HEAD + len, false)) == NULL) {
		ob_forget_empty(o, c);
		return NULL;
	}
	memcpy(block_end(o, b), o->unplaced, OB_COMMIT_HEAD + len);
	return b;
}

static void
commit_unplaced(struct outbox *o, uint32_t channel, size_t len)
{
	struct ob_channel *c = ob_channel_find(o, channel);

	put_head(o->unplaced, len);
	if (c != NULL) {
		drop(o, c, o->unplaced, OB_COMMIT_HEAD + len);
		return;
	}
	/* No channel can be made: the loss is counted with the link. */
	ob_old_commit(o, channel, o->unplaced + OB_COMMIT_HEAD, len);
	ob_overflow(o);
}

/*
 * Whether the message is a single patch whose chunk was dropped: its loss is
 * told already, and the collector must not count a failed patch as well.
 */
static bool
is_void(const struct outbox *o, const struct ob_channel *c,
    const uint8_t *commit, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, commit, len);
	return c->tracked && pb_next(&r, &f) &&
	    f.number == CommitDataRequest_chunks_to_patch &&
	    f.wire == PB_BYTES && r.p == r.end &&
	    ob_patch_is_void(o, c, &f, true);
}

void
outbox_commit(struct outbox *o, uint32_t channel, size_t len)
{
	bool data = o->reservation == OB_RESERVED_DATA;
	struct ob_block *b = o->reserved;
	uint32_t writer;
	uint8_t *p;

	assert(o->reservation != OB_RESERVED_NOTHING && len <= o->reserved_max);
	o->reservation = OB_RESERVED_NOTHING;
	o->reserved = NULL;
	if (b != NULL && len > 0 && data &&
	    next_over(o, b->channel, block_end(o, b) + OB_COMMIT_HEAD, len,
	    &writer))
		b = put_behind_losses(o, b, len);
	if (b == NULL) {
		if (len > 0)
			commit_unplaced(o, channel, len);
		ob_pump(o);
		return;
	}
	assert(b->channel->id == channel);
	if (!data && is_void(o, b->channel, block_end(o, b) +
	    OB_COMMIT_HEAD, len))
		len = 0;
	if (len == 0) {
		ob_forget_empty(o, b->channel);
		return;
	}
	p = block_end(o, b);
	put_head(p, len);
	if (data) {
		b->bare = false;
		note_chunks(o, b, p + OB_COMMIT_HEAD, len, true);
	}
	ob_block_add(o, b, OB_COMMIT_HEAD + len);
	ob_undo_disarm(o);
	ob_pump(o);
}

void
outbox_dropped(struct outbox *o, uint32_t channel,
    const struct link_loss *loss)
{
	struct ob_channel *c = ob_channel_get(o, channel);
	struct link_loss l = *loss;
	struct ob_block *b = NULL;

	if (l.cause == OB_LOSS(UNSPECIFIED))
		l.cause = ob_cause(o);
	if (c != NULL)
		b = room(o, c, LINK_LOSS_MESSAGE_MAX, true);
	if (b == NULL) {
		ob_count_lost(o, &l);
		ob_old_loss(o, channel, &l);
		ob_overflow(o);
		return;
	}
	ob_undo_arm_end(o, b);
	ob_count_lost(o, &l);
	tell(o, b, &l);
}

uint64_t
outbox_channel_place(const struct outbox *o, uint32_t channel)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c != NULL ? c->next - 1 : 0;
}

bool
outbox_has_arrived(const struct outbox *o, uint32_t channel, uint64_t place)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c == NULL || TAILQ_EMPTY(&c->blocks) ||
	    TAILQ_FIRST(&c->blocks)->first > place;
}

bool
outbox_channel_is_empty(const struct outbox *o, uint32_t channel)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c == NULL || TAILQ_EMPTY(&c->blocks);
}
