#include <string.h>

#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"

/* Bytes of the channel on the way, or at the collector and not yet applied. */
static uint64_t
sent_by(const struct ob_channel *c)
{
	return atomic_load_explicit(&c->entry->sent, memory_order_relaxed) -
	    c->consumed;
}

/*
 * Credit left to the channel: half of the window that other channels leave,
 * less its own bytes.  A channel with nothing on the way needs none.
 */
static uint64_t
credit_of(const struct outbox *o, const struct ob_channel *c)
{
	uint64_t all = arena_link(&o->arena)->sent_bytes - o->consumed;
	uint64_t own = sent_by(c), half;

	if (all >= o->window)
		return 0;
	half = (o->window - (all - own)) / 2;
	return half > own ? half - own : 0;
}

static bool
has_credit(const struct outbox *o, const struct ob_channel *c, uint32_t len)
{
	uint64_t all = arena_link(&o->arena)->sent_bytes - o->consumed;

	if (all > o->window || len > o->window - all)
		return false;
	return sent_by(c) == 0 || len <= credit_of(o, c);
}

/* Sent blocks stay in memory: 3/8 of it at most, to leave room for new ones. */
static bool
has_memory(const struct outbox *o, const struct ob_block *b)
{
	return o->sent_pages + b->pages <= arena_usable(&o->arena) / 8 * 3;
}

static bool
is_held(const struct ob_channel *c, const struct ob_block *b)
{
	return c->held && b->first >= c->held_from;
}

static void
hold(struct outbox *o, struct ob_channel *c)
{
	if (c->held)
		return;
	ob_forget_empty(o, c);
	if (c->open != NULL)
		ob_block_close(o, c->open);
	c->held = true;
	c->held_from = c->next;
}

static void
let_go(struct outbox *o, struct ob_channel *c)
{
	c->held = false;
	if (c->unsent != NULL && c->unsent->used != 0)
		ob_turn_want(o, c);
}

void
outbox_hold(struct outbox *o, uint32_t channel)
{
	struct ob_channel *c = ob_channel_find(o, channel);

	if (c != NULL)
		hold(o, c);
}

void
outbox_hold_all(struct outbox *o)
{
	struct ob_channel *c;

	o->holding = true;
	TAILQ_FOREACH(c, &o->channels, all)
		if (c->id != 0)
			hold(o, c);
}

void
outbox_let_go(struct outbox *o, uint32_t channel)
{
	struct ob_channel *c = ob_channel_find(o, channel);

	if (c != NULL)
		let_go(o, c);
}

void
outbox_release(struct outbox *o)
{
	struct ob_channel *c;

	o->holding = false;
	TAILQ_FOREACH(c, &o->channels, all)
		if (c->held)
			let_go(o, c);
}

bool
outbox_is_settled(const struct outbox *o)
{
	const struct ob_channel *c;

	if (!TAILQ_EMPTY(&o->sent))
		return false;
	TAILQ_FOREACH(c, &o->channels, all)
		if (c->unsent != NULL && c->unsent->used != 0 &&
		    !is_held(c, c->unsent))
			return false;
	return true;
}

/* Whether the channel can send its next block now; else starts to read it. */
static bool
can_send(struct outbox *o, struct ob_channel *c)
{
	struct ob_block *b = c->unsent;

	if (b == NULL || b->used == 0 || is_held(c, b) || !has_memory(o, b) ||
	    !has_credit(o, c, b->used))
		return false;
	if (c->spooled != NULL)
		ob_fetch(o, c, credit_of(o, c));
	return b->where == OB_ARENA || b->where == OB_WRITING;
}

/* Calls say() for each chunk of the block. */
static void
note_chunks(struct outbox *o, const struct ob_block *b,
    void (*say)(struct loss_account *k, uint32_t channel,
    const struct commit_chunk *c))
{
	struct loss_account k = ob_account(o);
	struct pb_reader r, commit;
	struct commit_chunk c;
	struct pb_field m;

	PB_FOREACH(&m, &r, arena_at(&o->arena, b->page), b->used) {
		if (m.number != LINK_UP_COMMIT || m.wire != PB_BYTES)
			continue;
		pb_init(&commit, m.data, m.len);
		while (commit_chunk_next(&commit, &c))
			say(&k, b->channel->id, &c);
	}
}

/*
 * Copies the block to out, less the packets of its losses that were counted
 * twice.  Returns the bytes; 0: there are none, and out is unchanged.
 */
static size_t
put_right(struct outbox *o, const struct ob_block *b, uint8_t *out)
{
	const uint8_t *copied = arena_at(&o->arena, b->page), *begin = copied;
	struct loss_account k = ob_account(o);
	struct link_loss l;
	struct pb_reader r;
	struct pb_field m;
	size_t len = 0;

	PB_FOREACH(&m, &r, begin, b->used) {
		if (m.number != LINK_UP_LOSS || m.wire != PB_BYTES ||
		    link_parse_loss(&l, m.data, m.len) != 0 ||
		    !ob_take_back(o, &k, b->channel->id, &l))
			continue;
		memcpy(out + len, copied, (size_t)(m.start - copied));
		len += (size_t)(m.start - copied);
		len += link_put_loss_message(out + len, &l);
		copied = r.p;
	}
	if (copied == begin)
		return 0;
	memcpy(out + len, copied, (size_t)(r.end - copied));
	return len + (size_t)(r.end - copied);
}

/*
 * Takes packets back from the losses in a block that is to be sent, when chunks
 * sent before show that they were counted twice: the writer may have no later
 * loss to take them from.  Returns the block, or the one in its place.
 */
static struct ob_block *
settle_losses(struct outbox *o, struct ob_block *b)
{
	struct ob_block *now = NULL;
	size_t len = 0;

	ob_undo_arm(o, b);
	note_chunks(o, b, loss_account_bridge);
	/* Without room for the copy, a packet too many may be told. */
	if (arena_has_run(&o->arena, b->pages))
		len = put_right(o, b, o->scratch);
	if (len > 0)
		now = ob_block_replace(o, b, b, o->scratch, len);
	if (len > 0 && now == NULL)
		ob_undo_now(o);
	ob_undo_disarm(o);
	return now != NULL ? now : b;
}

static void
mark_sent(struct outbox *o, struct ob_block *b)
{
	struct arena_link *l = arena_link(&o->arena);
	struct ob_channel *c = b->channel;
	struct arena_desc *d = ob_desc(o, b);
	uint64_t sent;

	ob_block_close(o, b);
	c->unsent = TAILQ_NEXT(b, link);
	c->unsent_pages -= b->pages;
	if (b->fetched)
		o->spool.ahead_pages -= b->pages;
	b->fetched = false;
	/*
	 * The spool is not needed up to this block, and may still have a
	 * record of it: one being written, or one not punched out yet.
	 */
	if (c->entry->untaken_after < b->last)
		atomic_store_explicit(&c->entry->untaken_after, b->last,
		    memory_order_release);
	c->deficit -= b->used;
	b->number = l->last_sent + 1;
	TAILQ_INSERT_TAIL(&o->sent, b, sent);
	o->sent_count++;
	o->sent_pages += b->pages;

	/*
	 * The descriptor has the totals, too: a kill may come between its
	 * number and the stores to the entry and the link.
	 */
	sent = c->entry->sent + b->used;
	atomic_store_explicit(&d->channel_sent, sent, memory_order_relaxed);
	atomic_store_explicit(&d->link_sent, l->sent_bytes + b->used,
	    memory_order_relaxed);
	atomic_store_explicit(&d->number, b->number, memory_order_release);
	atomic_store_explicit(&c->entry->sent, sent, memory_order_release);
	atomic_fetch_add(&l->sent_bytes, b->used);
	atomic_store_explicit(&l->last_sent, b->number, memory_order_release);
}

/* Takes the block whose turn it is, as sent.  NULL: none can be sent now. */
static struct ob_block *
send_next(struct outbox *o)
{
	struct ob_channel *c = ob_turn_next(o, can_send);
	struct ob_block *b;

	if (c == NULL && o->synchronous && o->spool.disk != NULL &&
	    disk_reap(o->spool.disk) > 0)
		c = ob_turn_next(o, can_send);
	if (c == NULL)
		return NULL;
	b = c->unsent;
	if (c->tracked) {
		b = settle_losses(o, b);
		/* Later losses of a chunk depend on what was sent of it. */
		ob_undo_arm(o, b);
		note_chunks(o, b, loss_account_sent);
	}
	mark_sent(o, b);
	ob_undo_disarm(o);
	return b;
}

bool
outbox_next(struct outbox *o, struct outbox_block *out)
{
	struct ob_block *b;

	if ((b = o->again) != NULL) {
		o->again = TAILQ_NEXT(b, sent);
	} else {
		b = send_next(o);
		/* Read-ahead took memory: the spool has to make some again. */
		ob_pump(o);
	}
	if (b == NULL)
		return false;
	out->number = b->number;
	out->channel = b->channel->id;
	out->data = arena_at(&o->arena, b->page);
	out->len = b->used;
	return true;
}

int
outbox_acked(struct outbox *o, uint64_t number)
{
	struct arena_link *l = arena_link(&o->arena);
	struct ob_channel *c;
	struct ob_block *b;

	if (number > l->last_sent)
		return -1;
	if (number <= l->last_acked)
		return 0;
	atomic_store_explicit(&l->last_acked, number, memory_order_release);
	while ((b = TAILQ_FIRST(&o->sent)) != NULL && b->number <= number) {
		c = b->channel;
		ob_block_free(o, b);
		ob_channel_settle(o, c);
	}
	ob_pump(o);
	/* Sent blocks may have taken all the room they are allowed. */
	ob_ready(o);
	return 0;
}

int
outbox_resume(struct outbox *o, uint64_t received)
{
	if (received < arena_link(&o->arena)->last_acked ||
	    outbox_acked(o, received) != 0)
		return -1;
	o->again = TAILQ_FIRST(&o->sent);
	ob_ready(o);
	return 0;
}

uint64_t
outbox_acked_bytes(const struct outbox *o)
{
	uint64_t bytes = arena_link(&o->arena)->sent_bytes;
	const struct ob_block *b;

	TAILQ_FOREACH(b, &o->sent, sent)
		bytes -= b->used;
	return bytes;
}

static uint64_t
acked_bytes(const struct ob_channel *c)
{
	uint64_t bytes = c->entry->sent;
	const struct ob_block *b;

	for (b = TAILQ_FIRST(&c->blocks); b != NULL && b->number != 0;
	    b = TAILQ_NEXT(b, link))
		bytes -= b->used;
	return bytes;
}

uint64_t
outbox_acked_bytes_of(const struct outbox *o, uint32_t channel)
{
	const struct ob_channel *c = ob_channel_find(o, channel);

	return c != NULL ? acked_bytes(c) : 0;
}

void
outbox_moved(struct outbox *o, const uint8_t collector_id[LINK_ID_BYTES])
{
	struct arena_link l = *arena_link(&o->arena);
	struct ob_channel *c;

	memcpy(l.collector_id, collector_id, LINK_ID_BYTES);
	l.received = 0;
	arena_set_link(&o->arena, &l);
	o->consumed = outbox_acked_bytes(o);
	TAILQ_FOREACH(c, &o->channels, all)
		c->consumed = acked_bytes(c);
	ob_ready(o);
}

void
outbox_set_window(struct outbox *o, uint64_t bytes)
{
	o->window = bytes;
	ob_ready(o);
}

int
outbox_consumed(struct outbox *o, uint32_t channel, uint64_t bytes)
{
	struct ob_channel *c = ob_channel_find(o, channel);

	if (c == NULL) /* the channel has ended, or was never used */
		return channel <= o->arena.head->last_channel ? 0 : -1;
	if (bytes > c->entry->sent)
		return -1;
	if (bytes > c->consumed) {
		c->consumed = bytes;
		ob_ready(o);
	}
	return 0;
}

int
outbox_consumed_in_all(struct outbox *o, uint64_t bytes)
{
	if (bytes > arena_link(&o->arena)->sent_bytes)
		return -1;
	if (bytes > o->consumed) {
		o->consumed = bytes;
		ob_ready(o);
	}
	return 0;
}
