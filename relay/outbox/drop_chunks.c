#include <string.h>

#include "protos/fields.h"
#include "relay/outbox/loss_account.h"
#include "relay/outbox/outbox_internal.h"

/*
 * Rewrites a block without its chunks.  The losses of a writer are added up
 * until something comes that they must stand before: a chunk of it that is
 * kept, or anything but chunks, losses and patches.
 *
 * Losses may take more room than very small chunks: a chunk is only dropped
 * where the new block surely does not get too long.
 */

/* Writers whose losses are added up at a time. */
#define STRIP_LOSSES 32u

struct strip {
	struct outbox *o;
	struct ob_channel *c;
	struct loss_account count;
	bool drop;
	bool logged; /* no chunk had to stay as it could not be logged */
	uint32_t cause;
	uint8_t *out;
	size_t len;
	size_t rest; /* bytes of the old block that are not read yet */
	size_t n;
	struct link_loss losses[STRIP_LOSSES];
};

static void
put_raw(struct strip *s, const uint8_t *data, size_t len)
{
	memcpy(s->out + s->len, data, len);
	s->len += len;
}

static void
put_loss(struct strip *s, size_t i)
{
	s->len += link_put_loss_message(s->out + s->len, &s->losses[i]);
	s->losses[i] = s->losses[--s->n];
}

static void
put_losses(struct strip *s)
{
	while (s->n > 0)
		put_loss(s, 0);
}

static void
put_losses_of(struct strip *s, uint32_t writer)
{
	size_t i;

	for (i = s->n; i-- > 0;)
		if (s->losses[i].writer == writer)
			put_loss(s, i);
}

static bool
adds_up(struct link_loss *a, const struct link_loss *b)
{
	bool scraped_a = a->first_chunk != 0 || a->last_chunk != 0;
	bool scraped_b = b->first_chunk != 0 || b->last_chunk != 0;

	if (a->writer != b->writer || a->buffer != b->buffer ||
	    a->cause != b->cause || a->old_channel != b->old_channel ||
	    (scraped_a && scraped_b))
		return false;
	a->chunks += b->chunks;
	a->packets += b->packets;
	a->bytes += b->bytes;
	if (scraped_b) {
		a->first_chunk = b->first_chunk;
		a->last_chunk = b->last_chunk;
	}
	return true;
}

static void
add_loss(struct strip *s, const struct link_loss *l)
{
	size_t i;

	/* The last one of the same writer, or a new one behind it. */
	for (i = s->n; i-- > 0;) {
		if (s->losses[i].writer != l->writer)
			continue;
		if (adds_up(&s->losses[i], l))
			return;
		put_loss(s, i);
		break;
	}
	if (s->n == STRIP_LOSSES)
		put_loss(s, 0);
	s->losses[s->n++] = *l;
}

bool
ob_patch_is_void(const struct outbox *o, const struct ob_channel *c,
    const struct pb_field *patch, bool at_end)
{
	struct loss_account k = ob_account(o);
	uint32_t writer = 0, chunk = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, patch->data, patch->len) {
		if (f.number == ChunkToPatch_writer_id && f.wire == PB_VARINT)
			writer = (uint32_t)f.value;
		else if (f.number == ChunkToPatch_chunk_id &&
		    f.wire == PB_VARINT)
			chunk = (uint32_t)f.value;
	}
	/* The dropped chunk of that id may be an older writer's. */
	if (at_end && ob_writer_has_ended(c, writer))
		return false;
	return !r.bad && loss_account_was_dropped(&k, c->id, writer, chunk);
}

static void
drop_chunk(struct strip *s, const struct commit_chunk *c)
{
	struct link_loss l;

	if (!loss_account_drop(&s->count, s->c->id, c, s->cause, &l))
		return;
	ob_count_lost(s->o, &l);
	add_loss(s, &l);
}

static bool
goes(struct strip *s, const struct pb_field *f, bool is_chunk,
    const struct commit_chunk *c, size_t kept)
{
	if (!s->drop)
		return false;
	if (is_chunk && !loss_account_note(&s->count, s->c->id, c->writer)) {
		s->logged = false;
		return false;
	}
	if (is_chunk)
		return s->len + (s->n + 1) * LINK_LOSS_MESSAGE_MAX + kept +
		    s->rest <= LINK_BLOCK_MAX;
	return f->number == CommitDataRequest_chunks_to_patch &&
	    f->wire == PB_BYTES && ob_patch_is_void(s->o, s->c, f, false);
}

static void
strip_commit(struct strip *s, const struct pb_field *m)
{
	uint8_t *kept = s->out + OB_STRIP_KEPT;
	struct commit_chunk c = { .writer = 0 };
	struct pb_reader r;
	struct pb_field f;
	bool is_chunk;
	size_t n = 0;

	pb_init(&r, m->data, m->len);
	while (commit_chunk_next_field(&r, &f, &is_chunk, &c)) {
		if (goes(s, &f, is_chunk, &c, n)) {
			if (is_chunk)
				drop_chunk(s, &c);
			continue;
		}
		if (is_chunk)
			put_losses_of(s, c.writer);
		else if (f.number != CommitDataRequest_chunks_to_patch)
			put_losses(s); /* before a flush is acknowledged */
		memcpy(kept + n, f.start, (size_t)(r.p - f.start));
		n += (size_t)(r.p - f.start);
	}
	if (n == 0)
		return;
	s->len += link_put_message_head(s->out + s->len, LINK_UP_COMMIT, n);
	put_raw(s, kept, n);
}

static void
strip_message(struct strip *s, const struct pb_field *m, size_t size)
{
	struct link_loss l;

	switch (m->number) {
	case LINK_UP_COMMIT:
		if (m->wire == PB_BYTES) {
			strip_commit(s, m);
			return;
		}
		break;
	case LINK_UP_LOSS:
		if (m->wire == PB_BYTES &&
		    link_parse_loss(&l, m->data, m->len) == 0) {
			add_loss(s, &l);
			return;
		}
		break;
	case LINK_UP_UNREGISTER_WRITER:
		if (s->drop && loss_account_note(&s->count, s->c->id,
		    (uint32_t)m->value))
			loss_account_forget(&s->count, s->c->id,
			    (uint32_t)m->value);
		break;
	}
	put_losses(s);
	put_raw(s, m->start, size);
}

uint32_t
ob_cause(const struct outbox *o)
{
	return o->spool.state != SPOOL_WORKS ? OB_LOSS(DISK) :
	    OB_LOSS(SPOOL_FULL);
}

static size_t
rewrite(struct strip *s, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, len) {
		s->rest = (size_t)(r.end - r.p);
		strip_message(s, &f, (size_t)(r.p - f.start));
	}
	put_losses(s);
	return s->len;
}

size_t
ob_drop_chunks(struct outbox *o, struct ob_channel *c, const uint8_t *data,
    size_t len, uint8_t *out, bool *logged)
{
	struct strip s = { .o = o, .c = c, .count = ob_account(o), .drop = true,
		.cause = ob_cause(o), .out = out, .logged = true };
	size_t n;

	c->tracked = true;
	n = rewrite(&s, data, len);
	*logged = s.logged;
	return n;
}

size_t
ob_join_losses(const uint8_t *data, size_t len, uint8_t *out)
{
	struct strip s = { .out = out };

	return rewrite(&s, data, len);
}

bool
ob_has_chunks(const uint8_t *data, size_t len)
{
	struct pb_reader r, commit;
	struct pb_field m;
	struct commit_chunk c;

	PB_FOREACH(&m, &r, data, len) {
		if (m.number != LINK_UP_COMMIT || m.wire != PB_BYTES)
			continue;
		pb_init(&commit, m.data, m.len);
		if (commit_chunk_next(&commit, &c))
			return true;
	}
	return false;
}
