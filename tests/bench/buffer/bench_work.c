#include "tests/bench/buffer/bench_work.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double
bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void
bench_use(uint64_t value)
{
	static volatile uint64_t sink;

	sink = value;
	(void)sink;
}

/* ---- Templates ---- */

static uint32_t
pick(uint32_t *state, uint32_t lo, uint32_t hi)
{
	*state = *state * 1664525u + 1013904223u;
	return lo + (uint32_t)(((uint64_t)*state * (hi - lo + 1)) >> 32);
}

static uint32_t
put_varint(uint8_t *p, uint32_t v)
{
	uint32_t n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}

/* A TracePacket of exactly size bytes (50 at least): time, sequence, string. */
static void
put_packet(uint8_t *p, uint32_t size)
{
	uint32_t n = 0, rest;

	p[n++] = 8 << 3; /* timestamp */
	n += put_varint(p + n, 0x7654321);
	p[n++] = 11 << 3 | 2; /* track_event */
	rest = size - n - (size - n > 129 ? 2 : 1);
	n += put_varint(p + n, rest);
	p[n++] = ((23 << 3) & 0x7f) | 2 | 0x80; /* name */
	p[n++] = 23 >> 4;
	rest = size - n - (size - n > 129 ? 2 : 1);
	n += put_varint(p + n, rest);
	memset(p + n, 'x', size - n);
}

/* Packets of 50-500 bytes end to end, cut wherever the chunks need it. */
struct stream {
	uint8_t bytes[600];
	uint32_t at, len;
	uint32_t random;
};

static uint32_t
left(const struct stream *s)
{
	return s->len - s->at;
}

static void
next_packet(struct stream *s)
{
	s->len = pick(&s->random, 50, 500);
	/* 128 and 129 bytes of string cannot be said in one size */
	put_packet(s->bytes, s->len);
	s->at = 0;
}

/* Writers reserve four bytes for the size of what may be cut. */
static void
put_fragment(struct template *t, struct stream *s, uint32_t n, bool redundant)
{
	uint32_t i, v = n;

	if (redundant) {
		for (i = 0; i < 3; i++, v >>= 7)
			t->bytes[t->len++] = (uint8_t)(v | 0x80);
		t->bytes[t->len++] = (uint8_t)v;
	} else {
		t->len += put_varint(t->bytes + t->len, n);
	}
	t->patch_at = t->len;
	memcpy(t->bytes + t->len, s->bytes + s->at, n);
	t->len += n;
	t->fragments++;
	s->at += n;
	t->packets += left(s) == 0;
}

static void
put_whole(struct template *t, struct stream *s)
{
	next_packet(s);
	put_fragment(t, s, left(s), false);
}

static void
make_fragmented(struct template *t, struct stream *s)
{
	if (left(s) > 0) {
		t->flags |= TB_FIRST_CONTINUES_FROM_PREV;
		put_fragment(t, s, left(s), true);
	}
	put_whole(t, s);
	put_whole(t, s);
	next_packet(s);
	put_fragment(t, s, left(s) / 2, true);
	t->flags |= TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING;
}

static void
make_full(struct template *t, struct stream *s)
{
	const uint32_t room = 4096 - 16;

	if (left(s) > 0) {
		t->flags |= TB_FIRST_CONTINUES_FROM_PREV;
		put_fragment(t, s, left(s), true);
	}
	for (;;) {
		next_packet(s);
		if (t->len + 4 + left(s) > room)
			break;
		put_fragment(t, s, left(s), false);
	}
	if (room - t->len < 8) {
		s->at = s->len; /* dropped */
		return;
	}
	put_fragment(t, s, room - t->len - 4, true);
	t->flags |= TB_LAST_CONTINUES_ON_NEXT | TB_NEEDS_PATCHING;
}

void
work_make(struct work *w, enum work_kind kind)
{
	struct stream s = {.random = 1};
	struct template *t;
	uint32_t i, n;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < TEMPLATES; i++) {
		t = &w->t[i];
		switch (kind) {
		case WORK_WHOLE:
			for (n = pick(&s.random, 5, 15); n > 0; n--)
				put_whole(t, &s);
			break;
		case WORK_FRAGMENTED:
			make_fragmented(t, &s);
			break;
		case WORK_FULL:
			make_full(t, &s);
			break;
		}
		w->bytes += t->len;
	}
	/* The row of templates repeats; nothing goes on from last to first. */
	if (kind == WORK_WHOLE)
		return;
	t = &w->t[TEMPLATES - 1];
	t->flags &= TB_FIRST_CONTINUES_FROM_PREV;
}

/* ---- Limits ---- */

void
limit_write(const struct work *w, uint8_t *ring, size_t size, uint64_t bytes)
{
	uint64_t done = 0;
	size_t at = 0;
	uint32_t i = 0;

	while (done < bytes) {
		if (w->t[i].len > size - at)
			at = 0;
		memcpy(ring + at, w->t[i].bytes, w->t[i].len);
		at += w->t[i].len;
		done += w->t[i].len;
		if (++i == TEMPLATES)
			i = 0;
	}
}

void
limit_read(const struct work *w, const uint8_t *ring, size_t size, uint8_t *to,
    size_t to_size)
{
	size_t at = 0, out = 0;
	uint32_t i = 0;

	while (w->t[i].len <= size - at) {
		if (w->t[i].len > to_size - out)
			out = 0;
		memcpy(to + out, ring + at, w->t[i].len);
		at += w->t[i].len;
		out += w->t[i].len;
		if (++i == TEMPLATES)
			i = 0;
	}
	bench_use(to[0]);
}

/* ---- Writing ---- */

static void
patch_before(struct trace_buffer *tb, const struct work *w, uint32_t i,
    const struct tb_origin *origin, uint32_t id)
{
	const struct template *t = &w->t[i];
	struct tb_patch patch = {
		.offset = t->patch_at,
		.data = t->bytes + t->patch_at,
		.len = 4,
	};

	(void)trace_buffer_patch(tb, origin->producer, origin->writer, id,
	    &(struct tb_patches){ &patch, 1, false });
}

/*
 * All writers write the same template in turn, so that what one begins is
 * continued by its next.
 */
uint64_t
work_write(struct trace_buffer *tb, const struct work *w,
    struct writers *writers, uint64_t bytes)
{
	struct tb_origin origin = {.uid = 1000, .pid = 1};
	struct tb_chunk c = {.complete = true};
	const struct template *t;
	uint64_t done = 0;
	uint32_t i = 0, j;

	while (done < bytes) {
		t = &w->t[i];
		c.num_fragments = t->fragments;
		c.flags = t->flags;
		c.payload = t->bytes;
		c.len = t->len;
		for (j = 0; j < writers->n && done < bytes; j++) {
			origin.producer = j + 1;
			origin.writer = 1;
			c.id = writers->next_id[j]++;
			trace_buffer_write(tb, &origin, &c);
			done += t->len;
			if ((t->flags & TB_FIRST_CONTINUES_FROM_PREV) != 0)
				patch_before(tb, w, i == 0 ? TEMPLATES - 1 :
				    i - 1, &origin, c.id - 1);
		}
		if (++i == TEMPLATES)
			i = 0;
	}
	return done;
}
