#include <string.h>

#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"

/*
 * Counts blocks of links that are over, in their order, as lost, and frees
 * them; blocks in the spool are read for that.  The losses wait in the arena
 * until they are put on the next link.  After a kill the next process goes on,
 * as descriptors have the epoch of the old link.
 */

static bool
same(const struct link_loss *a, const struct link_loss *b)
{
	return a->old_channel == b->old_channel && a->writer == b->writer &&
	    a->buffer == b->buffer && a->cause == b->cause;
}

/*
 * The place of a loss in the table, old or new; ARENA_LOSSES: the table is
 * full.
 */
static uint32_t
place_for(struct outbox *o, const struct link_loss *l)
{
	struct arena_loss *losses = o->arena.losses;
	uint32_t i;

	for (i = o->old_losses; i-- > 0;)
		if (losses[i].full != 0 && same(&losses[i].loss, l))
			return i;
	return o->old_losses < ARENA_LOSSES ? o->old_losses++ : ARENA_LOSSES;
}

static void
remember(struct outbox *o, const struct link_loss *l)
{
	struct link_loss whole = *l;
	struct arena_loss *at;
	uint32_t place;

	if ((place = place_for(o, &whole)) == ARENA_LOSSES) {
		/* Too many sequences: of the channel, or of all, as one. */
		whole.writer = 0;
		whole.buffer = 0;
		place = place_for(o, &whole);
	}
	if (place < ARENA_LOSSES) {
		at = &o->arena.losses[place];
	} else {
		at = &o->arena.losses[ARENA_LOSSES - 1];
		at->loss.old_channel = 0;
		at->loss.writer = 0;
		at->loss.buffer = 0;
	}
	if (at->full == 0) {
		at->loss = whole;
		at->loss.first_chunk = 0;
		at->loss.last_chunk = 0;
		atomic_store_explicit(&at->full, 1, memory_order_release);
		return;
	}
	at->loss.chunks += l->chunks;
	at->loss.packets += l->packets;
	at->loss.bytes += l->bytes;
}

void
ob_old_loss(struct outbox *o, uint32_t channel, struct link_loss *l)
{
	l->old_channel = channel;
	remember(o, l);
}

static void
lose(struct outbox *o, uint32_t channel, struct link_loss *l)
{
	ob_count_lost(o, l);
	ob_old_loss(o, channel, l);
}

static void
count_commit(struct outbox *o, struct loss_account *k, uint32_t channel,
    uint32_t cause, const uint8_t *commit, size_t len)
{
	struct commit_chunk c;
	struct link_loss l;
	struct pb_reader r;

	pb_init(&r, commit, len);
	while (commit_chunk_next(&r, &c)) {
		if (loss_account_drop(k, channel, &c, cause, &l))
			lose(o, channel, &l);
	}
}

void
ob_old_commit(struct outbox *o, uint32_t channel, const uint8_t *commit,
    size_t len)
{
	struct loss_account k = ob_account(o);
	struct commit_chunk c;
	struct link_loss l;
	struct pb_reader r;

	/*
	 * Counted as if it had been put: of an incomplete chunk more may come.
	 */
	pb_init(&r, commit, len);
	while (commit_chunk_next(&r, &c)) {
		if (loss_account_is_over(&k, channel, &c) &&
		    loss_account_end(&k, channel, c.writer, &l))
			lose(o, channel, &l);
		loss_account_put(&k, channel, &c);
	}
	o->old_tracks = true;
	count_commit(o, &k, channel, ob_cause(o), commit, len);
}

static void
count_block(struct outbox *o, const struct ob_block *b, const uint8_t *data,
    size_t len)
{
	struct loss_account k = {
		.tracks = o->arena.tracks,
		.epoch = b->old_epoch,
	};
	struct link_loss l;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, len) {
		if (f.wire == PB_VARINT &&
		    f.number == LINK_UP_UNREGISTER_WRITER)
			loss_account_forget(&k, b->old_channel,
			    (uint32_t)f.value);
		if (f.wire != PB_BYTES)
			continue;
		if (f.number == LINK_UP_COMMIT)
			count_commit(o, &k, b->old_channel,
			    b->old_cause, f.data, f.len);
		/*
		 * In the totals since it was dropped, but not told yet.
		 * Channel 0 carries losses of links before, which name their
		 * old channel.
		 */
		if (f.number == LINK_UP_LOSS &&
		    link_parse_loss(&l, f.data, f.len) == 0) {
			(void)ob_take_back(o, &k, b->old_channel, &l);
			ob_old_loss(o, b->old_channel != 0 ? b->old_channel :
			    l.old_channel, &l);
		}
	}
}

/*
 * Counts what was pending, when all blocks of links before this one are
 * counted.
 */
static void
count_pending(struct outbox *o)
{
	struct loss_account k = { .tracks = o->arena.tracks };
	uint32_t epoch = arena_link(&o->arena)->epoch, i;
	struct arena_track *t;
	struct link_loss l;

	for (i = 0; i < ARENA_TRACKS; i++) {
		t = &o->arena.tracks[i];
		if (t->epoch == 0 || t->epoch == epoch)
			continue;
		k.epoch = t->epoch;
		if (loss_account_end(&k, t->channel, t->writer, &l))
			lose(o, t->channel, &l);
		atomic_store(&t->epoch, 0);
	}
	o->old_tracks = false;
}

void
ob_old_add(struct outbox *o, struct ob_block *b, uint32_t channel,
    uint32_t epoch, uint32_t cause)
{
	b->channel = NULL;
	b->old_channel = channel;
	b->old_epoch = epoch;
	b->old_cause = cause;
	TAILQ_INSERT_TAIL(&o->old, b, link);
	o->old_tracks = true;
}

void
ob_old_all(struct outbox *o, uint32_t cause)
{
	uint32_t epoch = arena_link(&o->arena)->epoch;
	struct ob_channel *c;
	struct ob_block *b;

	while ((c = TAILQ_FIRST(&o->channels)) != NULL) {
		while ((b = TAILQ_FIRST(&c->blocks)) != NULL) {
			ob_block_unlink(o, b);
			ob_old_add(o, b, c->id, epoch, cause);
		}
		ob_channel_free(o, c);
	}
	o->old_tracks = true;
}

void
ob_old_pump(struct outbox *o)
{
	struct ob_block *b;

	while ((b = TAILQ_FIRST(&o->old)) != NULL) {
		if (b->where == OB_SPOOLED)
			ob_read_old(o, b);
		if (b->where == OB_SPOOLED || b->where == OB_READING)
			return;
		count_block(o, b, b->buffer != NULL ? b->buffer :
		    arena_at(&o->arena, b->page), b->used);
		ob_block_free(o, b);
	}
	if (o->old_tracks)
		count_pending(o);
}

size_t
outbox_take_old_losses(struct outbox *o, struct link_loss *out, size_t max)
{
	size_t n = 0;

	if (!TAILQ_EMPTY(&o->old))
		return 0; /* losses of the same sequences may be added */
	while (n < max && o->old_losses > 0) {
		o->old_losses--;
		if (o->arena.losses[o->old_losses].full == 0)
			continue;
		out[n++] = o->arena.losses[o->old_losses].loss;
		atomic_store(&o->arena.losses[o->old_losses].full, 0);
	}
	return n;
}
