#include "client/show/top_counts.h"

#include <stdlib.h>
#include <string.h>

/* Things whose counters are kept from one answer to the next. */
#define MAX_COUNTS 65536u

void
top_counts_done(struct top_counts *c)
{
	free(c->all);
}

static int
by_id(const void *a, const void *b)
{
	const struct top_count *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

bool
top_counts_begin(struct top_counts *next, size_t n, uint64_t now_ms)
{
	if (n > MAX_COUNTS)
		n = MAX_COUNTS;
	*next = (struct top_counts){ .at_ms = now_ms };
	return (next->all = calloc(n + 1, sizeof(*next->all))) != NULL;
}

void
top_counts_keep(struct top_counts *kept, struct top_counts *next)
{
	qsort(next->all, next->n, sizeof(*next->all), by_id);
	free(kept->all);
	*kept = *next;
}

static double
per_second(uint64_t now, uint64_t before, double seconds)
{
	/* A counter that went back was reset: all of it is new. */
	return (double)(now < before ? now : now - before) / seconds;
}

/* The rates of the previous answers, without the oldest, and the newest. */
static void
set_past(double past[TOP_COUNTS_PAST], const struct top_count *was,
    double newest)
{
	size_t i;

	for (i = 0; i + 1 < TOP_COUNTS_PAST; i++)
		past[i] = was == NULL ? -1 : was->past[i + 1];
	past[i] = newest;
}

struct top_rates
top_counts_note(const struct top_counts *before, struct top_counts *next,
    struct top_count c)
{
	struct top_rates r = { .known = false };
	const struct top_count *was = NULL;
	double seconds;

	if (before->at_ms != 0 && next->at_ms > before->at_ms) {
		was = bsearch(&c, before->all, before->n, sizeof(c), by_id);
		seconds = (double)(next->at_ms - before->at_ms) / 1000;
		r.known = was != NULL;
	}
	if (r.known) {
		r.bytes = per_second(c.bytes, was->bytes, seconds);
		r.packets = per_second(c.packets, was->packets, seconds);
		r.lost = per_second(c.lost, was->lost, seconds);
	}
	set_past(c.past, was, r.known ? r.bytes : -1);
	memcpy(r.past, c.past, sizeof(r.past));
	if (next->n < MAX_COUNTS)
		next->all[next->n++] = c;
	return r;
}
