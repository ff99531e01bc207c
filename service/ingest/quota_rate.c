/*
 * Rate limits of trace data: chunks over a rate are held back, or dropped and
 * counted.
 *
 * A chunk is dropped as a whole, and the loss is counted in packets that begin
 * in it.  So that no packet is cut in two, a chunk that continues a kept
 * packet, or of which a scraped version was kept, is kept too, as long as the
 * bucket gives credit (fair_bucket_lends()).
 */
#include <stdlib.h>

#include "protos/link.pb-c.h"
#include "service/ingest/losses.h"
#include "service/ingest/quota_internal.h"
#include "service/model/model.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/shm/shm.h"

#define LOSS_OF_QUOTA TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_QUOTA

/* ---- waiting ---- */

static bool
drops_over(const struct producer_quota *q)
{
	return q->machine != NULL && q->machine->rule != NULL &&
	    q->machine->rule->drop;
}

static void
count_held(struct producer_quota *q, uint64_t times, uint64_t ms)
{
	q->amount.held_times += times;
	q->amount.held_ms += ms;
	if (q->machine == NULL)
		return;
	q->machine->amount.held_times += times;
	q->machine->amount.held_ms += ms;
}

static void
let_go(struct producer_quota *q)
{
	q->own.turn = q->shared.turn = 0;
	fair_queue_leave(&q->own);
	fair_queue_leave(&q->shared);
	if (!q->held)
		return;
	count_held(q, 0, loop_now_ms() - q->held_since_ms);
	q->held = false;
}

static void
hold(struct producer_quota *q, struct fair_bucket *b, struct fair_place *at,
    size_t len)
{
	if (!q->held) {
		q->held_since_ms = loop_now_ms();
		count_held(q, 1, 0);
	}
	q->held = true;
	fair_bucket_wait(b, at, len);
}

bool
quota_hold(struct producer *p, size_t len)
{
	struct producer_quota *q = p->quota;

	if (q->machine == NULL || drops_over(q))
		return false;
	if (len == 0) {
		let_go(q);
		return false;
	}
	if (!fair_bucket_admits(&q->bucket, &q->own)) {
		hold(q, &q->bucket, &q->own, len);
		return true;
	}
	if (!fair_bucket_admits(&q->machine->bucket, &q->shared)) {
		hold(q, &q->machine->bucket, &q->shared, len);
		return true;
	}
	let_go(q);
	return false;
}

bool
quota_is_held(const struct producer *p)
{
	return p->quota != NULL && p->quota->held;
}

void
quota_wake_all(struct service *s)
{
	struct producer *p;

	TAILQ_FOREACH(p, &s->producers, link)
		if (quota_is_held(p))
			p->ops->resume(p->port);
}

static void
use_credit(struct fair_place *at, size_t n)
{
	at->credit -= n < at->credit ? n : at->credit;
}

void
quota_charge(struct producer *p, size_t n)
{
	struct producer_quota *q = p->quota;

	use_credit(&q->own, n);
	use_credit(&q->shared, n);
	fair_bucket_charge(&q->bucket, n);
	if (q->machine != NULL)
		fair_bucket_charge(&q->machine->bucket, n);
}

/* ---- dropping ---- */

static struct quota_dropped *
find_dropped(struct producer_quota *q, uint32_t writer)
{
	size_t i;

	for (i = 0; i < q->n_dropped; i++)
		if (q->dropped[i].writer == writer)
			return &q->dropped[i];
	return NULL;
}

static void
remember(struct producer_quota *q, struct quota_dropped *d, uint32_t writer,
    uint32_t chunk, uint32_t packets)
{
	size_t cap = q->dropped_cap == 0 ? 4 : q->dropped_cap * 2;
	struct quota_dropped *grown;

	if (d == NULL && q->n_dropped == q->dropped_cap) {
		if (cap > QUOTA_DROPPED_MAX)
			return;
		grown = reallocarray(q->dropped, cap, sizeof(*grown));
		if (grown == NULL)
			return;
		q->dropped = grown;
		q->dropped_cap = cap;
	}
	if (d == NULL)
		d = &q->dropped[q->n_dropped++];
	*d = (struct quota_dropped){ .writer = writer, .chunk = chunk,
		.packets = packets };
}

static void
forget(struct producer_quota *q, struct quota_dropped *d)
{
	if (d != NULL)
		*d = q->dropped[--q->n_dropped];
}

/*
 * Packets that are lost with the chunk: those that begin in it, and a packet
 * that continues from a chunk that was kept.
 */
static uint32_t
packets_of(const struct shm_chunk *c, bool complete, bool before_kept)
{
	bool goes_on = (c->flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0;
	uint32_t n = c->num_fragments;

	/* The last packet of an incomplete chunk comes again. */
	n -= n > 0 && !complete;
	return n - (n > 0 && goes_on && !before_kept);
}

static void
count_dropped(struct producer_quota *q, const struct link_loss *l)
{
	struct quota_amount *a = &q->amount;
	int i;

	for (i = 0; i < 2 && a != NULL; i++) {
		a->dropped_chunks += l->chunks;
		a->dropped_packets += l->packets;
		a->dropped_bytes += l->bytes;
		a = q->machine != NULL ? &q->machine->amount : NULL;
	}
}

static void
drop(struct producer *p, struct session_buffer *b, const struct shm_chunk *c,
    bool complete)
{
	struct producer_quota *q = p->quota;
	struct quota_dropped *d = find_dropped(q, c->writer_id);
	bool again = d != NULL && d->chunk == c->chunk_id;
	uint32_t packets = packets_of(c, complete, d == NULL);
	struct link_loss loss = {
		.writer = c->writer_id,
		.buffer = b->id,
		.cause = LOSS_OF_QUOTA,
		.chunks = !again,
		.packets = packets,
		.bytes = again ? 0 : c->len,
	};

	/* An earlier version was dropped: count only packets that are new. */
	if (again)
		loss.packets -= d->packets < packets ? d->packets : packets;
	p->wrote.lost += loss.chunks;
	count_dropped(q, &loss);
	losses_of_producer(p, &loss);
	remember(q, d, c->writer_id, c->chunk_id, packets);
}

/*
 * Drops a chunk of a sequence that the producer may not have.  Such sequences
 * are not remembered, as a producer can name any number of them.
 */
static void
drop_of_stranger(struct producer *p, struct session_buffer *b,
    const struct shm_chunk *c, bool complete)
{
	struct link_loss loss = {
		.writer = c->writer_id,
		.buffer = b->id,
		.cause = LOSS_OF_QUOTA,
		.chunks = 1,
		.packets = packets_of(c, complete, false),
		.bytes = c->len,
	};

	p->wrote.lost++;
	count_dropped(p->quota, &loss);
	losses_of_machine(p->machine, b->session, &loss);
}

static bool
has_tokens(struct producer_quota *q)
{
	/* Where chunks are dropped no producer waits in the buckets. */
	return fair_bucket_admits(&q->bucket, &q->own) &&
	    (q->machine == NULL ||
	    fair_bucket_admits(&q->machine->bucket, &q->shared));
}

static bool
is_lent(struct producer_quota *q)
{
	return fair_bucket_lends(&q->bucket) &&
	    (q->machine == NULL || fair_bucket_lends(&q->machine->bucket));
}

/* Whether a chunk is kept though there are no tokens. */
static bool
belongs_to_kept(const struct producer *p, const struct session_buffer *b,
    const struct shm_chunk *c, const struct quota_dropped *d)
{
	if ((c->flags & SHM_FIRST_CONTINUES_FROM_PREV) != 0 && d == NULL)
		return true;
	return trace_buffer_may_add(b->tb, p->id, c->writer_id, c->chunk_id);
}

bool
quota_drop(struct producer *p, struct session_buffer *b,
    const struct shm_chunk *c, bool complete, bool last)
{
	struct producer_quota *q = p->quota;
	struct quota_dropped *d = find_dropped(q, c->writer_id);
	bool keep;

	if (!quota_take_sequence(p, c->writer_id)) {
		drop_of_stranger(p, b, c, complete);
		return true;
	}
	if (d != NULL && d->chunk == c->chunk_id)
		keep = false; /* another version of it was dropped */
	else if (last)
		keep = is_lent(q);
	else if (!drops_over(q))
		keep = true;
	else
		keep = has_tokens(q) ||
		    (belongs_to_kept(p, b, c, d) && is_lent(q));
	if (keep)
		forget(q, d);
	else
		drop(p, b, c, complete);
	return !keep;
}
