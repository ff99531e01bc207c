/*
 * What is guaranteed to a producer stays when others flood the buffer; and what
 * holds of all else holds meanwhile, with random writers.
 *
 * usage: test_tb_share [SECONDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/transport/buffer/tb_fixture.h"
#include "transport/buffer/tb_state.h"

static double seconds = 3;
static uint64_t seed;

static bool
write_as(struct trace_buffer *tb, uint64_t producer, uint32_t machine,
    uint32_t writer, uint32_t id, size_t len)
{
	struct tb_origin origin = { .producer = producer, .writer = writer,
		.share = machine, .machine = machine };
	uint8_t bytes[8192] = { 0 };
	struct tb_chunk c = { .id = id, .num_fragments = 1, .complete = true,
		.payload = bytes, .len = len };

	/* One fragment: a varint of two bytes, and the rest. */
	assert_in_range(len, 130, sizeof(bytes));
	bytes[0] = (uint8_t)((len - 2) & 0x7f) | 0x80;
	bytes[1] = (uint8_t)((len - 2) >> 7);
	memcpy(bytes + 2, &id, sizeof(id));
	memcpy(bytes + 6, &producer, sizeof(producer));
	memcpy(bytes + 14, &writer, sizeof(writer));
	return trace_buffer_write(tb, &origin, &c);
}

/* read: of chunks that are only there for what may be added to them. */
static uint64_t
held_of(const struct trace_buffer *tb, uint64_t producer, bool read)
{
	const struct tb_sequence *s;
	const struct tb_record *r;
	uint64_t n = 0;
	uint32_t i, k;

	for (i = 0; i < tb->seqs.n_slots; i++) {
		s = tb_sequence_at(&tb->seqs, i);
		if (s->origin.producer != producer)
			continue;
		for (k = 0; k < s->len; k++) {
			r = tb_chunk_at(tb, s, k);
			if (!read || !tb_has_unread(r))
				n += tb_record_size(r);
		}
	}
	return n;
}

static uint64_t
held(const struct trace_buffer *tb, uint64_t producer)
{
	return held_of(tb, producer, false);
}

static size_t
count_packets(struct trace_buffer *tb, uint64_t producer, uint32_t *loss)
{
	struct tb_packet p;
	size_t n = 0;

	trace_buffer_begin_read(tb);
	while (trace_buffer_read(tb, &p)) {
		if (p.origin->producer != producer)
			continue;
		*loss |= p.loss;
		n++;
	}
	return n;
}

/* ---- the promise, example by example ---- */

static void
a_flood_takes_nothing_below_another_s_share(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	uint32_t i, loss = 0;

	assert_true(trace_buffer_guarantee(tb, 0, 50));
	for (i = 0; i < 20; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 500));
	for (i = 0; i < 5000; i++)
		assert_true(write_as(tb, 2, 0, 1, i, 1000));
	assert_int_equal(held(tb, 1), 20 * tb_outer_size(500));
	/* Each lap passes them once. */
	assert_in_range(trace_buffer_stats(tb)->chunks_kept, 20 * 50,
	    20 * 200);
	assert_int_equal(count_packets(tb, 1, &loss), 20);
	assert_int_equal(loss, 0);
	trace_buffer_free(tb);
}

static void
who_has_more_than_its_share_keeps_about_its_share(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	uint32_t i, loss = 0;
	size_t n;

	assert_true(trace_buffer_guarantee(tb, 0, 50));
	for (i = 0; i < 200; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 500));
	for (i = 0; i < 5000; i++)
		assert_true(write_as(tb, 2, 0, 1, i, 1000));
	/* A quarter: half of the buffer, for two. */
	assert_in_range(held(tb, 1), 65536 / 4 - 100, 65536 / 4 + 600);
	n = count_packets(tb, 1, &loss);
	assert_in_range(n, 30, 32);
	assert_true((loss & TB_LOSS_OVERWRITE) != 0);
	trace_buffer_free(tb);
}

/* It is refused after a lap, not after thousands. */
static void
a_chunk_that_finds_no_gap_costs_a_lap(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(16384, TB_RING);
	uint64_t laps;
	uint32_t i;

	assert_true(trace_buffer_guarantee(tb, 0, 50));
	for (i = 0; i < 20; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 1720));
	/* Five chunks are guaranteed as long as there is no other producer. */
	for (i = 0; i < 20; i++) {
		laps = trace_buffer_stats(tb)->write_wrap_count;
		assert_false(write_as(tb, 2, 0, 1, i, 7800));
		laps = trace_buffer_stats(tb)->write_wrap_count - laps;
		assert_in_range(laps, 1, 2);
	}
	assert_int_equal(held(tb, 1), 5 * tb_outer_size(1720));
	assert_true(write_as(tb, 2, 0, 1, i, 7000));
	trace_buffer_free(tb);
}

static void
without_a_guarantee_the_oldest_goes(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	uint32_t i;

	assert_true(trace_buffer_guarantee(tb, 0, 0));
	for (i = 0; i < 20; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 500));
	for (i = 0; i < 100; i++)
		assert_true(write_as(tb, 2, 0, 1, i, 1000));
	assert_int_equal(held(tb, 1), 0);
	trace_buffer_free(tb);
}

static void
machines_share_equally_however_many_producers_they_have(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	uint32_t i, p;

	assert_true(trace_buffer_guarantee(tb, 1, 50));
	assert_true(trace_buffer_guarantee(tb, 2, 50));
	for (i = 0; i < 200; i++)
		assert_true(write_as(tb, 1, 1, 1, i, 500));
	for (i = 0; i < 2000; i++)
		for (p = 2; p < 12; p++)
			assert_true(write_as(tb, p, 2, 1, i, 200));
	assert_in_range(held(tb, 1), 65536 / 4 - 100, 65536 / 4 + 600);
	trace_buffer_free(tb);
}

static void
those_who_are_gone_are_one_together(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	uint64_t all = 0;
	uint32_t i, p;

	assert_true(trace_buffer_guarantee(tb, 0, 50));
	for (p = 1; p <= 100; p++) {
		assert_true(write_as(tb, p, 0, 1, 0, 400));
		trace_buffer_retire(tb, p);
	}
	for (i = 0; i < 5000; i++)
		assert_true(write_as(tb, 101, 0, 1, i, 1000));
	for (p = 1; p <= 100; p++)
		all += held(tb, p);
	assert_in_range(all, 65536 / 4 - 100, 65536 / 4 + 500);
	/* The newest of them. */
	assert_int_equal(held(tb, 1), 0);
	assert_int_equal(held(tb, 100), tb_outer_size(400));
	trace_buffer_free(tb);
}

static void
a_packet_in_many_chunks_stays_as_a_whole(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_RING);
	struct tb_packet p;
	uint32_t i;

	assert_true(trace_buffer_guarantee(tb, 7, 50));
	for (i = 0; i < 30; i++)
		assert_true(commit(tb, 1, 1, i, (i > 0 ? FROM_PREV : 0) |
		    (i < 29 ? TO_NEXT : 0), "a400"));
	for (i = 0; i < 1000; i++)
		assert_true(commit(tb, 2, 1, i, 0, "b900"));
	trace_buffer_begin_read(tb);
	do
		assert_true(trace_buffer_read(tb, &p));
	while (p.origin->producer != 1);
	assert_int_equal(p.size, 12000);
	assert_int_equal(p.loss, 0);
	trace_buffer_free(tb);
}

/* Each chunk of it is passed in each lap: that must not be a walk each time. */
static void
a_packet_in_very_many_chunks_is_passed_quickly(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(16u << 20, TB_RING);
	const uint32_t n = 60000;
	uint32_t i;

	assert_true(trace_buffer_guarantee(tb, 7, 50));
	for (i = 0; i < n; i++)
		assert_true(commit(tb, 1, 1, i, (i > 0 ? FROM_PREV : 0) |
		    (i < n - 1 ? TO_NEXT : 0), "a3"));
	for (i = 0; i < 60000; i++)
		assert_true(commit(tb, 2, 1, i, 0, "b900"));
	assert_int_equal(held(tb, 1), n * outer("a3"));
	trace_buffer_free(tb);
}

static void
a_write_that_leaves_no_room_for_others_is_not_stored(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(8192, TB_RING);
	uint32_t i, loss = 0;

	assert_true(trace_buffer_guarantee(tb, 0, 90));
	for (i = 0; i < 6; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 500));
	assert_true(write_as(tb, 2, 0, 1, 0, 1000));
	assert_false(write_as(tb, 2, 0, 1, 1, 6000));
	assert_int_equal(trace_buffer_stats(tb)->chunks_discarded, 1);
	assert_true(write_as(tb, 2, 0, 1, 2, 1000));
	assert_int_equal(count_packets(tb, 1, &loss), 6);
	assert_int_equal(loss, 0);
	trace_buffer_free(tb);
}

static void
asking_for_room_takes_none_where_all_is_kept(void **state)
{
	struct tb_shares *t = tb_shares_new(65536, true);
	uint32_t a, b, i;

	assert_non_null(t);
	assert_true(tb_shares_set(t, 0, 50));
	a = tb_shares_join(t, &(struct tb_origin){ .producer = 1 });
	b = tb_shares_join(t, &(struct tb_origin){ .producer = 2 });
	tb_shares_add(t, a, 1000);
	tb_shares_add(t, b, 1000);
	/* 15375 bytes are missing to the share of each. */
	for (i = 0; i < 30; i++)
		assert_true(tb_shares_leave_room(t, b, 1000, 16375));
	assert_false(tb_shares_leave_room(t, b, 20000, 35374));
	for (i = 0; i < 30; i++)
		assert_true(tb_shares_leave_room(t, b, 1000, 16375));
	assert_true(tb_shares_leave_room(t, b, 20000, 35375));
	/* What was stored does not miss any more; the share is full then. */
	tb_shares_add(t, b, 15375);
	assert_false(tb_shares_leave_room(t, b, 1001, 16375));
	assert_true(tb_shares_leave_room(t, a, 16375, 16375));
	tb_shares_add(t, a, 20000);
	assert_true(tb_shares_leave_room(t, b, 1000, 1000));
	tb_shares_free(t);
}

/* Devices come and go for months; what is known of them is bounded. */
static void
producers_that_come_and_go_leave_nothing_behind(void **state)
{
	struct tb_shares *t = tb_shares_new(65536, false);
	uint32_t owner, pooled, slots = 0;
	uint64_t i;

	assert_non_null(t);
	assert_true(tb_shares_set(t, 3, 50));
	for (i = 1; i <= 5000; i++) {
		/* One leaves with nothing, one while its chunks are there. */
		owner = tb_shares_join(t, &(struct tb_origin){
		    .producer = 2 * i, .share = 3 });
		pooled = tb_shares_join(t, &(struct tb_origin){
		    .producer = 2 * i + 1, .share = 3 });
		assert_int_not_equal(owner, TB_OWNER_NONE);
		assert_int_not_equal(pooled, TB_OWNER_NONE);
		tb_shares_leave(t, owner);
		tb_shares_add(t, pooled, 100);
		tb_shares_retire(t, 2 * i + 1);
		tb_shares_sub(t, pooled, 100);
		tb_shares_leave(t, pooled);
		if (i == 2)
			slots = t->n;
		if (i >= 2)
			assert_int_equal(t->n, slots);
	}
	assert_int_equal(t->members, 0);
	assert_int_equal(t->active, 0);
	tb_shares_free(t);
}

static void
a_buffer_that_keeps_all_keeps_room_for_those_who_wrote_less(void **state)
{
	struct trace_buffer *tb = trace_buffer_new(65536, TB_DISCARD);
	uint32_t i, n = 0;

	assert_true(trace_buffer_guarantee(tb, 0, 50));
	assert_true(write_as(tb, 1, 0, 1, 0, 1000));
	for (i = 0; i < 1000; i++)
		n += write_as(tb, 2, 0, 1, i, 1000);
	assert_in_range(held(tb, 2), 65536 * 3 / 4 - 1100, 65536 * 3 / 4);
	for (i = 1; i < 1000; i++)
		n += write_as(tb, 1, 0, 1, i, 1000);
	assert_in_range(held(tb, 1), 65536 / 4 - 1100, 65536 / 4 + 1100);
	assert_int_equal(n, held(tb, 2) / tb_outer_size(1000) +
	    held(tb, 1) / tb_outer_size(1000) - 1);
	/* Alone one has all of it. */
	trace_buffer_free(tb);
	tb = trace_buffer_new(65536, TB_DISCARD);
	assert_true(trace_buffer_guarantee(tb, 0, 50));
	for (i = 0; i < 64; i++)
		(void)write_as(tb, 2, 0, 1, i, 1000);
	assert_in_range(held(tb, 2), 65536 - 1100, 65536);
	trace_buffer_free(tb);
}

static void
a_long_run_of_what_is_guaranteed_is_passed_in_bounded_steps(void **state)
{
	const uint64_t size = 64u << 20;
	struct trace_buffer *tb = trace_buffer_new(size, TB_RING);
	uint32_t i, refused = 0;
	uint64_t before;

	assert_true(trace_buffer_guarantee(tb, 0, 90));
	/* More records than a write looks at. */
	for (i = 0; i < 180000; i++)
		assert_true(write_as(tb, 1, 0, 1, i, 130));
	before = held(tb, 1);
	assert_true(before > 0 && before < size * 45 / 100);
	for (i = 0; i < 70000; i++)
		refused += !write_as(tb, 2, 0, 1, i, 1000);
	assert_int_equal(held(tb, 1), before);
	assert_in_range(refused, 1, 10);
	trace_buffer_free(tb);
}

/* ---- random writers ---- */

#define PRODUCERS 6u
#define WRITERS   3u
/* Of the machines 0 to 2. */
#define NO_SHARE  2u

static uint64_t rnd;

static uint64_t
next_random(void)
{
	uint64_t z = (rnd += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint32_t
below(uint32_t n)
{
	return (uint32_t)(next_random() % n);
}

/*
 * A writer numbers its packets, and says with each how long it is.  A packet is
 * {number, length, filler}; of one that is to be patched the number is missing.
 */
struct writer {
	uint32_t next_packet;
	uint32_t next_chunk;
	uint32_t read;      /* number of the next packet to be read */
	bool in_packet;     /* the last chunk ended in the middle of one */
	uint32_t left;      /* bytes of it */
	uint32_t number;    /* its number */
	bool incomplete;    /* the newest chunk was only scraped */
	uint32_t said;      /* fragments of it, that were kept */
	uint8_t bytes[2048]; /* of the newest chunk */
	size_t len;
	uint16_t fragments;
	uint8_t flags;
	uint32_t patch_chunk; /* that waits for a patch */
	bool to_patch;
};

struct world {
	struct trace_buffer *tb;
	uint64_t seed;
	struct writer w[PRODUCERS][WRITERS];
	bool gone[PRODUCERS];
	uint64_t read, lost;
};

static void
put_fragment(struct writer *w, uint32_t len, uint32_t number, bool begins)
{
	uint8_t *p = w->bytes + w->len;

	p[0] = (uint8_t)(len & 0x7f) | 0x80;
	p[1] = (uint8_t)(len >> 7);
	memset(p + 2, (int)(number & 0xff), len);
	if (begins)
		memcpy(p + 2, &number, 4);
	w->len += 2 + len;
	w->fragments++;
}

static void
build_chunk(struct writer *w)
{
	uint32_t n = 1 + below(4), len;
	bool goes_on = below(4) == 0;

	w->len = 0;
	w->fragments = 0;
	w->flags = w->in_packet ? FROM_PREV : 0;
	if (w->in_packet) {
		put_fragment(w, 20 + below(200), w->number, false);
		if (below(3) == 0) {
			w->flags |= TO_NEXT; /* all of the chunk is its */
			return;
		}
		w->in_packet = false;
	}
	while (n-- > 0) {
		len = 20 + below(300);
		w->number = w->next_packet++;
		put_fragment(w, len, w->number, true);
	}
	if (goes_on) {
		w->in_packet = true;
		w->flags |= TO_NEXT;
		if (below(3) == 0) {
			w->flags |= PATCH;
			w->to_patch = true;
			w->patch_chunk = w->next_chunk;
		}
	}
}

static struct tb_origin
origin_of(uint32_t p, uint32_t i)
{
	return (struct tb_origin){ .producer = p + 1, .writer = i + 1,
		.share = p % 3, .machine = p % 3 };
}

/* Of each producer: what it may not be made to fall below. */
static void
note_held(struct world *x, uint64_t *least)
{
	struct tb_shares *t = x->tb->seqs.shares;
	uint64_t h, share;
	uint32_t p, i;

	for (p = 0; p < PRODUCERS; p++) {
		least[p] = 0;
		for (i = 1; t != NULL && i < t->n; i++) {
			if (t->all[i].is_group || !t->all[i].hashed ||
			    t->all[i].key != p + 1 || t->all[i].pool != 0)
				continue;
			h = held(x->tb, p + 1);
			assert_int_equal(t->all[i].held, h);
			share = tb_shares_bytes_of(t, &t->all[i]);
			least[p] = h < share ? h : share;
			h = held_of(x->tb, p + 1, true);
			least[p] -= h < least[p] ? h : least[p];
		}
	}
}

static void
do_write(struct world *x, uint32_t p, uint32_t i)
{
	struct writer *w = &x->w[p][i];
	struct tb_origin origin = origin_of(p, i);
	struct tb_chunk c = { .complete = true };
	uint64_t least[PRODUCERS];
	uint32_t other;

	if (!w->incomplete) {
		/* One with a patch is waited for; so the writer waits. */
		if (w->to_patch)
			return;
		build_chunk(w);
		c.complete = below(5) != 0 || w->to_patch;
		w->incomplete = !c.complete;
	} else {
		w->incomplete = false;
	}
	c.id = w->next_chunk;
	c.num_fragments = w->fragments;
	c.flags = w->flags;
	c.payload = w->bytes;
	c.len = w->len;
	if (!w->incomplete)
		w->next_chunk++;
	note_held(x, least);
	(void)trace_buffer_write(x->tb, &origin, &c);
	for (other = 0; other < PRODUCERS; other++)
		if (other != p && held(x->tb, other + 1) < least[other])
			fail_msg("world %llu: producer %u had %llu guaranteed, "
			    "has %llu", (unsigned long long)x->seed, other + 1,
			    (unsigned long long)least[other],
			    (unsigned long long)held(x->tb, other + 1));
}

static void
do_patch(struct world *x, uint32_t p, uint32_t i)
{
	struct writer *w = &x->w[p][i];
	uint8_t data[4] = { 0 };
	struct tb_patch patch = { .data = data, .len = 0 };

	if (!w->to_patch)
		return;
	w->to_patch = false;
	(void)trace_buffer_patch(x->tb, p + 1, i + 1, w->patch_chunk,
	    &(struct tb_patches){ &patch, 1, false });
}

/* Whole, in order, and whatever is missing before it is told. */
static void
take(struct world *x, const struct tb_packet *p, bool really)
{
	struct writer *w = &x->w[p->origin->producer - 1]
	    [p->origin->writer - 1];
	uint32_t number, i;
	size_t k;

	assert_true(p->slices[0].len >= 4);
	memcpy(&number, p->slices[0].data, 4);
	for (i = 0; i < p->n_slices; i++)
		for (k = i == 0 ? 4 : 0; k < p->slices[i].len; k++)
			assert_int_equal(p->slices[i].data[k], number & 0xff);
	if (!really)
		return;
	assert_true(number >= w->read);
	if (number > w->read)
		assert_true(p->loss != 0);
	x->lost += number - w->read;
	x->read++;
	w->read = number + 1;
}

static void
do_read(struct world *x, unsigned most)
{
	struct tb_packet p;

	trace_buffer_begin_read(x->tb);
	while (most-- > 0 && trace_buffer_read(x->tb, &p))
		take(x, &p, true);
}

/* A copy holds the same; it changes nothing. */
static void
do_clone(struct world *x)
{
	struct trace_buffer *copy = whole_clone(x->tb, false);
	struct tb_packet p;

	assert_non_null(copy);
	trace_buffer_begin_read(copy);
	while (trace_buffer_read(copy, &p))
		take(x, &p, false);
	trace_buffer_free(copy);
}

/* The ring is a gapless row, and the counters agree with it. */
static void
check_ring(const struct trace_buffer *tb)
{
	uint64_t off, chunks = 0, bytes = 0, padding = 0, in_shares = 0;
	const struct tb_stats *st = trace_buffer_stats(tb);
	const struct tb_shares *t = tb->seqs.shares;
	const struct tb_record *r;
	uint32_t i;

	for (off = 0; off < tb->top; off += tb_record_size(r)) {
		r = tb_record_at(tb, off);
		assert_true(tb_record_size(r) > 0);
		if (r->kind == TB_CHUNK) {
			chunks++;
			bytes += tb_record_size(r);
		} else if (r->kind == TB_PADDING) {
			padding += tb_record_size(r);
		}
	}
	assert_int_equal(off, tb->top);
	assert_int_equal(st->chunks_written,
	    st->chunks_read + st->chunks_overwritten + chunks);
	assert_int_equal(st->bytes_written,
	    st->bytes_read + st->bytes_overwritten + bytes);
	assert_int_equal(st->padding_bytes_written,
	    st->padding_bytes_cleared + padding);
	assert_int_equal(tb->held, bytes);
	for (i = 1; i < t->n; i++)
		if (!t->all[i].is_group)
			in_shares += t->all[i].held;
	for (i = 0; i < PRODUCERS; i++)
		if (i % 3 == NO_SHARE)
			in_shares += held(tb, i + 1);
	assert_int_equal(in_shares, bytes);
}

static void
run_world(uint64_t of)
{
	struct world *x = calloc(1, sizeof(*x));
	uint32_t ops = 200 + (uint32_t)(of % 3000), p, i, m;

	assert_non_null(x);
	rnd = x->seed = of;
	x->tb = trace_buffer_new(4096u << below(4), TB_RING);
	assert_non_null(x->tb);
	for (m = 0; m < 3; m++)
		assert_true(trace_buffer_guarantee(x->tb, m, m == NO_SHARE ?
		    0 : 1 + below(90)));
	while (ops-- > 0) {
		/* Some write far more than others. */
		p = below(3) == 0 ? below(PRODUCERS) : (uint32_t)(of % 3);
		i = below(WRITERS);
		switch (below(24)) {
		case 0:
			do_read(x, 1 + below(20));
			break;
		case 1:
			if (below(4) == 0)
				do_read(x, UINT32_MAX);
			break;
		case 2:
		case 3:
		case 4:
			do_patch(x, p, i);
			break;
		case 5:
			if (below(4) == 0)
				do_clone(x);
			break;
		case 6:
			if (below(3) == 0)
				(void)trace_buffer_compact(x->tb);
			break;
		case 7:
			if (below(40) == 0)
				trace_buffer_retire(x->tb, p + 1);
			break;
		default:
			do_write(x, p, i);
			break;
		}
		check_ring(x->tb);
	}
	do_read(x, UINT32_MAX);
	check_ring(x->tb);
	trace_buffer_free(x->tb);
	free(x);
}

static void
random_writers_get_what_is_promised(void **state)
{
	struct timespec t;
	double end, now;
	uint64_t n = 0;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (double)t.tv_sec + (double)t.tv_nsec / 1e9 + seconds;
	run_world(1000004878); /* lost what had been counted, but held */
	run_world(2000010182);
	if (seed == 0)
		seed = (uint64_t)t.tv_nsec * 1000003 + (uint64_t)t.tv_sec;
	do {
		/* A world that fails is the last one to be named. */
		if (getenv("TB_SHARE_SEEDS") != NULL)
			fprintf(stderr, "%llu\n",
			    (unsigned long long)(seed + n));
		run_world(seed + n);
		n++;
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	} while (now < end);
	print_message("%llu worlds from %llu\n", (unsigned long long)n,
	    (unsigned long long)seed);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_takes_nothing_below_another_s_share),
		cmocka_unit_test(
		    who_has_more_than_its_share_keeps_about_its_share),
		cmocka_unit_test(a_chunk_that_finds_no_gap_costs_a_lap),
		cmocka_unit_test(without_a_guarantee_the_oldest_goes),
		cmocka_unit_test(
		    machines_share_equally_however_many_producers_they_have),
		cmocka_unit_test(those_who_are_gone_are_one_together),
		cmocka_unit_test(a_packet_in_many_chunks_stays_as_a_whole),
		cmocka_unit_test(
		    a_packet_in_very_many_chunks_is_passed_quickly),
		cmocka_unit_test(
		    a_write_that_leaves_no_room_for_others_is_not_stored),
		cmocka_unit_test(asking_for_room_takes_none_where_all_is_kept),
		cmocka_unit_test(producers_that_come_and_go_leave_nothing_behind),
		cmocka_unit_test(
		    a_buffer_that_keeps_all_keeps_room_for_those_who_wrote_less),
		cmocka_unit_test(
		    a_long_run_of_what_is_guaranteed_is_passed_in_bounded_steps),
		cmocka_unit_test(random_writers_get_what_is_promised),
	};

	if (argc > 1)
		seconds = atof(argv[1]);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
