#include <stdlib.h>
#include <string.h>

#include "tests/bench/load/device_internal.h"
#include "tests/bench/load/load_totals.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

/* Nobody writes on while so much has not been taken by the socket. */
#define QUEUED_MAX (256u << 10)
/* Of one call, at --rate max: others have their turn, too. */
#define TURN_BYTES (128.0 * 1024)
#define HELD_RETRY_MS 2u

static uint64_t
now_us(void)
{
	return loop_boottime_ns() / 1000;
}

/* ---- chunks into commits ---- */

/* ChunksToMove: where it lies, or the chunk itself. */
static void
put_move_place(struct pb_writer *w, const struct shm_slot *slot,
    uint32_t buffer)
{
	size_t mark = pb_nest_begin(w, 1);

	pb_put_uint(w, 1, slot->page);
	pb_put_uint(w, 2, slot->index);
	pb_put_uint(w, 3, buffer);
	pb_nest_end(w, mark);
}

static void
put_move_data(struct pb_writer *w, const struct chunker_chunk *c,
    uint16_t writer, uint32_t buffer)
{
	uint16_t packed = (uint16_t)(c->fragments | c->flags << 10);
	size_t len = SHM_CHUNK_HEADER_BYTES + c->len;

	/* By hand: nested writing would move the chunk twice. */
	pb_put_varint(w, 1 << 3 | 2);
	pb_put_varint(w, 4 + 1 + pb_varint_size(buffer) + 1 +
	    pb_varint_size(len) + len);
	pb_put_uint(w, 1, 0);
	pb_put_uint(w, 2, 0);
	pb_put_uint(w, 3, buffer);
	pb_put_varint(w, 4 << 3 | 2);
	pb_put_varint(w, len);
	pb_put_raw(w, &c->id, 4);
	pb_put_raw(w, &writer, 2);
	pb_put_raw(w, &packed, 2);
	pb_put_raw(w, c->payload, c->len);
}

static bool
put_into_memory(struct device *d, const struct chunker_chunk *c,
    uint16_t writer, uint32_t buffer)
{
	struct shm_slot slot;
	uint16_t i;

	if (!shm_acquire(d->shm, SHM_DIV1, writer, c->id, c->flags, &slot))
		return false;
	memcpy(slot.payload, c->payload, c->len);
	for (i = 0; i < c->fragments; i++)
		shm_add_fragment(d->shm, &slot);
	shm_complete(d->shm, &slot);
	put_move_place(&d->shared->commit, &slot, buffer);
	return true;
}

static void
hold(struct device *d, const struct chunker_chunk *c,
    const struct device_sequence *s)
{
	struct device_held *h = malloc(sizeof(*h));

	d->shared->totals->stalls++;
	if (h == NULL) {
		load_totals_error(d->shared->totals, "memory",
		    "out of memory: a chunk is lost");
		return;
	}
	h->next = NULL;
	h->key = s->key;
	h->buffer = s->buffer;
	h->writer = s->writer;
	h->chunk = c->id;
	h->fragments = c->fragments;
	h->flags = c->flags;
	h->len = c->len;
	memcpy(h->payload, c->payload, c->len);
	*d->held_end = h;
	d->held_end = &h->next;
}

static void
send_commit(struct device *d, bool wants_reply, struct device_sequence *s)
{
	struct device_shared *sh = d->shared;
	struct device_waiting *w;
	uint64_t ticket, at = now_us();

	if (sh->commit.len == 0 && !wants_reply)
		return;
	if (sh->commit.failed)
		load_totals_error(sh->totals, "memory", "out of memory");
	if (d->n_waiting == DEVICE_WAITING_MAX)
		wants_reply = false;
	ticket = d->line->type->call(d->line, LINE_COMMIT, sh->commit.data,
	    sh->commit.len, wants_reply);
	pb_writer_reset(&sh->commit);
	sh->totals->commits++;
	d->made = 0;
	d->unasked = ticket != 0 ? 0 : d->unasked + 1;
	if (ticket == 0)
		return;
	w = &d->waiting[(d->waiting_at + d->n_waiting++) %
	    DEVICE_WAITING_MAX];
	w->ticket = ticket;
	w->sent_us = at;
	w->key = s != NULL ? s->key : 0;
	w->sure = s != NULL ? chunker_complete(&s->chunker) : 0;
	if (s != NULL) {
		s->last_ticket = ticket;
		s->asked = w->sure;
	}
}

static void
chunk_cb(void *arg, const struct chunker_chunk *c)
{
	struct device *d = arg;
	struct device_sequence *s = d->making;

	d->shared->totals->chunks++;
	d->made++;
	if (d->shm == NULL)
		put_move_data(&d->shared->commit, c, s->writer, s->buffer);
	else if (d->held != NULL || !put_into_memory(d, c, s->writer,
	    s->buffer))
		hold(d, c, s);
	if (d->shared->commit.len > DEVICE_COMMIT_MAX)
		send_commit(d, false, NULL);
}

/* What was held goes as far as there is room now. */
static void
release_held(struct device *d)
{
	struct device_held *h;

	while ((h = d->held) != NULL && d->shm != NULL) {
		struct chunker_chunk c = {
			.id = h->chunk,
			.fragments = h->fragments,
			.flags = h->flags,
			.payload = h->payload,
			.len = h->len,
		};

		if (!put_into_memory(d, &c, h->writer, h->buffer))
			break;
		d->held = h->next;
		if (d->held == NULL)
			d->held_end = &d->held;
		free(h);
	}
	send_commit(d, false, NULL);
}

/* ---- the book ---- */

static void
book_written(struct device *d, struct device_sequence *s)
{
	struct load_entry *e = load_ledger_at(d->shared->ledger, s->key);

	e->written = s->chunker.next_packet;
	e->bytes = s->chunker.bytes;
}

static void
book_sure(struct device *d, uint32_t key, uint64_t sure)
{
	struct load_entry *e = load_ledger_at(d->shared->ledger, key);

	if (e != NULL && sure > e->sure)
		e->sure = sure;
}

void
device_replied(struct device *d, uint64_t ticket, bool ok)
{
	struct device_waiting *w = &d->waiting[d->waiting_at];
	struct load_totals *t = d->shared->totals;
	size_t i;

	if (d->n_waiting == 0 || w->ticket != ticket)
		return; /* not a commit's */
	d->waiting_at = (d->waiting_at + 1) % DEVICE_WAITING_MAX;
	d->n_waiting--;
	t->replies++;
	if (!ok) {
		load_totals_error(t, "commit", "a commit was rejected");
		return;
	}
	histogram_add(&t->round_trip_us, now_us() - w->sent_us);
	book_sure(d, w->key, w->sure);
	for (i = 0; i < d->n_sequences; i++)
		if (d->sequences[i].last_ticket == ticket)
			d->sequences[i].last_ticket = 0;
	device_settle(d);
}

/* ---- writing ---- */

static size_t
choose_size(struct device_shared *s)
{
	const struct load_options *o = s->options;

	if (o->big_per_mille > 0 &&
	    device_random(s, 1000) < o->big_per_mille)
		return o->big_size;
	return o->size_min + device_random(s, o->size_max - o->size_min + 1);
}

static bool
may_write(const struct device *d, const struct device_sequence *s)
{
	uint64_t packets = d->shared->options->packets;
	size_t i;

	if (s->committed_all ||
	    (packets > 0 && s->chunker.next_packet >= packets))
		return false;
	for (i = 0; i < d->n_instances; i++)
		if (d->instances[i].id == s->instance)
			return !d->instances[i].stopping;
	return false;
}

/* The sequence whose turn it is, or NULL: none may write. */
static struct device_sequence *
next_sequence(struct device *d)
{
	struct device_sequence *s;
	size_t i;

	for (i = 0; i < d->n_sequences; i++) {
		s = &d->sequences[d->turn++ % d->n_sequences];
		if (may_write(d, s))
			return s;
	}
	return NULL;
}

/* The next packet, or with --repeat chunk; -1: no memory. */
static int
write_next(struct device *d, struct device_sequence *s)
{
	struct device_shared *sh = d->shared;
	int (*write)(struct chunker *, size_t, uint64_t, struct pb_writer *,
	    chunker_fn, void *) = sh->options->repeat ? chunker_repeat :
	    chunker_packet;

	/* Booked before it is where somebody may find it. */
	load_ledger_at(sh->ledger, s->key)->written =
	    s->chunker.next_packet + 1;
	return write(&s->chunker, choose_size(sh), loop_boottime_ns(),
	    &sh->packet, chunk_cb, d);
}

/* One commit's worth of packets; -1: no memory. */
static int
write_commit(struct device *d, struct device_sequence *s)
{
	struct device_shared *sh = d->shared;
	const struct load_options *o = sh->options;
	uint64_t before = s->chunker.bytes, packets = s->chunker.next_packet;
	bool last = false, patches = s->chunker.n_patches > 0;

	d->making = s;
	d->made = 0;
	while (d->made < o->chunks && d->held == NULL && !last) {
		if (write_next(d, s) != 0)
			return -1;
		last = o->packets > 0 && s->chunker.next_packet >= o->packets;
		if (d->made == 0 && sh->rate != LOAD_RATE_MAX &&
		    s->chunker.bytes - before > d->owed)
			break;
	}
	book_written(d, s);
	d->packets += s->chunker.next_packet - packets;
	d->bytes += s->chunker.bytes - before;
	sh->totals->packets += s->chunker.next_packet - packets;
	sh->totals->bytes += s->chunker.bytes - before;
	d->owed -= (double)(s->chunker.bytes - before);
	if (last) {
		device_commit_all(d, s, 0);
		return 0;
	}
	if (patches && d->held == NULL)
		chunker_put_patches(&s->chunker, s->buffer, s->writer,
		    &sh->commit);
	if (sh->commit.len > 0)
		send_commit(d, d->held == NULL && o->reply_every > 0 &&
		    d->unasked + 1 >= o->reply_every, s);
	return 0;
}

/* All that is written of it into the commit; false: memory is full. */
static bool
gather_all(struct device *d, struct device_sequence *s)
{
	if (d->held != NULL)
		return false;
	d->making = s;
	(void)chunker_flush(&s->chunker, chunk_cb, d);
	if (d->held != NULL)
		return false;
	if (s->chunker.n_patches > 0) {
		/* They go behind their chunks. */
		send_commit(d, false, NULL);
		chunker_put_patches(&s->chunker, s->buffer, s->writer,
		    &d->shared->commit);
	}
	return true;
}

void
device_commit_all(struct device *d, struct device_sequence *s, uint64_t flush)
{
	bool all = s == NULL || gather_all(d, s), ask;

	if (!all) {
		send_commit(d, false, NULL);
		if (flush != 0)
			d->flush = flush; /* not before the rest */
		return;
	}
	if (flush != 0)
		pb_put_uint(&d->shared->commit, 3, flush);
	ask = s != NULL && chunker_complete(&s->chunker) > s->asked;
	if (ask && d->n_waiting == DEVICE_WAITING_MAX) {
		send_commit(d, false, NULL);
		return; /* asked when one is answered */
	}
	send_commit(d, ask, s);
	if (s != NULL)
		s->committed_all = !may_write(d, s);
}

static uint64_t
pause_ms(const struct device *d)
{
	const struct load_options *o = d->shared->options;
	double unit = CHUNKER_BYTES * (double)o->chunks, ms;

	if (d->held != NULL)
		return HELD_RETRY_MS;
	if (o->burst_ms > 0)
		return o->burst_ms;
	if (d->shared->rate == LOAD_RATE_MAX)
		return 0;
	ms = (unit - d->owed) * 1000 / (double)d->shared->rate;
	return ms < 1 ? 1 : ms > 10000 ? 10000 : (uint64_t)ms;
}

static void
earn(struct device *d)
{
	uint64_t now = loop_now_ms();
	double unit = CHUNKER_BYTES * (double)d->shared->options->chunks;
	double most;

	if (d->shared->rate == LOAD_RATE_MAX) {
		d->owed = TURN_BYTES;
		return;
	}
	/* What it was kept from for a second is not made up for. */
	most = (double)d->shared->rate *
	    (1 + (double)d->shared->options->burst_ms / 1000);
	d->owed += (double)(now - d->last_ms) * (double)d->shared->rate / 1000;
	if (d->owed > most + unit)
		d->owed = most + unit;
	d->last_ms = now;
}

void
device_write_cb(void *arg)
{
	struct device *d = arg;
	struct device_sequence *s = NULL;
	double unit = CHUNKER_BYTES * (double)d->shared->options->chunks;

	if (d->line == NULL)
		return;
	if (d->held != NULL)
		release_held(d);
	if (d->held == NULL)
		device_settle(d);
	if (d->line == NULL)
		return;
	earn(d);
	if (d->shared->options->burst_ms > 0 ||
	    d->shared->rate == LOAD_RATE_MAX)
		unit = 1;
	while (d->shared->writing && !d->ending && d->held == NULL &&
	    d->owed >= unit && (s = next_sequence(d)) != NULL) {
		if (d->line->type->queued(d->line) > QUEUED_MAX) {
			d->shared->totals->held_back++;
			return; /* drained() comes back */
		}
		if (write_commit(d, s) != 0)
			break;
	}
	if (d->held != NULL || (d->shared->writing && d->n_sequences > 0 &&
		(s != NULL || d->owed < unit)))
		loop_timer_set(d->timer, pause_ms(d), 0);
}

void
device_go_on(struct device *d)
{
	const struct load_options *o = d->shared->options;
	uint64_t period;

	if (d->line == NULL || d->n_sequences == 0 || d->shared->rate == 0)
		return;
	if (loop_timer_left(d->timer, &period))
		return;
	/* They do not all begin in the same moment. */
	if (d->packets == 0 && d->shared->rate != LOAD_RATE_MAX) {
		period = o->burst_ms > 0 ? o->burst_ms :
		    (uint64_t)CHUNKER_BYTES * o->chunks * 1000 /
		    d->shared->rate;
		d->last_ms = loop_now_ms();
		loop_timer_set(d->timer, device_random(d->shared,
		    (period < 10000 ? period : 10000) + 1), 0);
		return;
	}
	if (d->last_ms == 0)
		d->last_ms = loop_now_ms();
	loop_timer_set(d->timer, 0, 0);
}

void
device_finish(struct device *d)
{
	size_t i;

	if (d->line == NULL || !d->up)
		return;
	if (d->held == NULL)
		for (i = 0; i < d->n_sequences; i++)
			device_commit_all(d, &d->sequences[i], 0);
	if (d->held != NULL)
		loop_timer_set(d->timer, HELD_RETRY_MS, 0);
}

/* ---- the end of it ---- */

void
device_drop_sequence(struct device *d, size_t i, enum load_end end)
{
	struct device_sequence *s = &d->sequences[i];
	struct load_entry *e = load_ledger_at(d->shared->ledger, s->key);

	/* What never left the open chunk was not written. */
	e->written = s->chunker.next_packet - s->chunker.fragments;
	e->end = end;
	chunker_done(&s->chunker);
	*s = d->sequences[--d->n_sequences];
}

void
device_drop_writing(struct device *d, enum load_end end)
{
	struct device_held *h;

	while (d->n_sequences > 0)
		device_drop_sequence(d, d->n_sequences - 1, end);
	free(d->sequences);
	d->sequences = NULL;
	while ((h = d->held) != NULL) {
		d->held = h->next;
		free(h);
	}
	d->held_end = &d->held;
	d->n_waiting = 0;
	d->unasked = 0;
	d->owed = 0;
}

bool
device_is_quiet(const struct device *d)
{
	size_t i;

	if (d->line == NULL || !d->up)
		return true;
	for (i = 0; i < d->n_sequences; i++)
		if (d->sequences[i].last_ticket != 0 ||
		    chunker_complete(&d->sequences[i].chunker) <
			d->sequences[i].chunker.next_packet)
			return false;
	return d->held == NULL;
}

bool
device_has_written_all(const struct device *d)
{
	uint64_t packets = d->shared->options->packets;
	size_t i;

	for (i = 0; i < d->n_sequences; i++)
		if (d->sequences[i].chunker.next_packet < packets)
			return false;
	return d->had_sequences;
}
