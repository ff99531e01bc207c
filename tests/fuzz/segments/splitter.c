/*
 * The splitter: takes the input as a stream, whole and packet by packet, as one
 * file and by machine.  However it comes, the segments have the same bytes, are
 * whole packets, and end exactly once.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/segments/segments.h"
#include "transport/segment/segment_splitter.h"
#include "transport/wire/pb_reader.h"

struct segment {
	struct segment *next;
	uint32_t number;
	uint32_t machine;
	uint64_t sum; /* of its bytes (FNV-1a) */
	uint64_t packets;
	bool ended;
};

struct taker {
	struct segment *all; /* the newest first */
};

static int
begin(void *arg, const struct segment_id *id, void **segment)
{
	struct taker *t = arg;
	struct segment *g;

	for (g = t->all; g != NULL; g = g->next)
		if (g->machine == id->machine && g->number >= id->number)
			abort();
	if ((g = calloc(1, sizeof(*g))) == NULL)
		abort();
	g->number = id->number;
	g->machine = id->machine;
	g->sum = 0xcbf29ce484222325ull;
	g->next = t->all;
	t->all = g;
	*segment = g;
	return 0;
}

static int
put(void *arg, void *segment, const uint8_t *packets, size_t len)
{
	struct segment *g = segment;
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	if (g->ended || len == 0)
		abort();
	PB_FOREACH(&f, &r, packets, len) {
		if (f.number != 1 || f.wire != PB_BYTES)
			abort();
		g->packets++;
	}
	if (r.bad)
		abort();
	for (i = 0; i < len; i++)
		g->sum = (g->sum ^ packets[i]) * 0x100000001b3ull;
	return 0;
}

static int
end(void *arg, void *segment, const struct segment_summary *of)
{
	struct segment *g = segment;

	if (g->ended || of->number != g->number || of->machine != g->machine ||
	    of->packets + 3 > g->packets)
		abort();
	g->ended = true;
	return 0;
}

/* Whole fields at the begin of the input. */
static size_t
whole(const uint8_t *data, size_t size)
{
	struct pb_reader r;
	struct pb_field f;
	size_t n = 0;

	PB_FOREACH(&f, &r, data, size) {
		if (f.number != 1 || f.wire != PB_BYTES)
			break;
		n = (size_t)(r.p - data);
	}
	return n;
}

static void
put_each(struct segment_splitter *s, const uint8_t *data, size_t size)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, data, size)
		if (segment_splitter_put(s, f.start,
		    (size_t)(r.p - f.start)) != SEGMENT_OK)
			abort();
}

static void
split(struct taker *t, const uint8_t *data, size_t size, bool by_machine,
    bool each)
{
	static const struct segment_ops ops = { begin, put, end };
	struct segment_splitter *s = segment_splitter_new(
	    &(struct segment_options){ .by_machine = by_machine }, &ops, t);
	struct segment *g;

	if (s == NULL)
		abort();
	if (each)
		put_each(s, data, size);
	else if (segment_splitter_put(s, data, size) != SEGMENT_OK)
		abort();
	if (segment_splitter_finish(s) != SEGMENT_OK)
		abort();
	segment_splitter_free(s);
	for (g = t->all; g != NULL; g = g->next)
		if (!g->ended)
			abort();
}

static void
compare_and_free(struct taker *a, struct taker *b)
{
	struct segment *ga, *gb;

	while ((ga = a->all) != NULL) {
		if ((gb = b->all) == NULL || ga->number != gb->number ||
		    ga->machine != gb->machine || ga->sum != gb->sum)
			abort();
		a->all = ga->next;
		b->all = gb->next;
		free(ga);
		free(gb);
	}
	if (b->all != NULL)
		abort();
}

/* Bytes that are no packets end it, where they come. */
static void
split_raw(const uint8_t *data, size_t size)
{
	static const struct segment_ops ops = { begin, put, end };
	struct taker t = { NULL };
	struct segment *g;
	struct segment_splitter *s = segment_splitter_new(
	    &(struct segment_options){ .by_machine = true }, &ops, &t);

	if (s == NULL)
		abort();
	if (segment_splitter_put(s, data, size) == SEGMENT_OK &&
	    whole(data, size) != size)
		abort();
	segment_splitter_free(s);
	while ((g = t.all) != NULL) {
		t.all = g->next;
		free(g);
	}
}

void
fuzz_splitter(const uint8_t *data, size_t size)
{
	size_t n = whole(data, size);
	struct taker at_once, each;
	int by_machine;

	for (by_machine = 0; by_machine < 2; by_machine++) {
		at_once.all = each.all = NULL;
		split(&at_once, data, n, by_machine == 1, false);
		split(&each, data, n, by_machine == 1, true);
		compare_and_free(&at_once, &each);
	}
	split_raw(data, size);
}
