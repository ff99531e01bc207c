/* clock_way: finds the way between two clocks and goes it. */
#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_graph_internal.h"

static int
grow(uint32_t **a, size_t n)
{
	uint32_t *grown = realloc(*a, n * sizeof(*grown));

	if (grown == NULL)
		return -1;
	*a = grown;
	return 0;
}

/* A new round with room for all that there is.  -1: no memory. */
static int
begin_round(const struct clock_graph *g)
{
	struct clock_scratch *x = g->scratch;
	size_t clocks = g->cap_clocks, series = g->cap_series;

	if (clocks > x->cap_clocks) {
		if (grow(&x->seen, clocks) != 0 ||
		    grow(&x->parent, clocks) != 0 ||
		    grow(&x->depth, clocks) != 0 ||
		    grow(&x->queue, clocks) != 0)
			return -1;
		x->cap_clocks = clocks;
		x->round = 0;
	}
	if (series > x->cap_series) {
		if (grow(&x->seen_series, series) != 0)
			return -1;
		x->cap_series = series;
		x->round = 0;
	}
	if (x->round == UINT32_MAX)
		x->round = 0;
	if (x->round == 0) {
		memset(x->seen, 0, x->cap_clocks * sizeof(*x->seen));
		if (x->cap_series > 0)
			memset(x->seen_series, 0,
			    x->cap_series * sizeof(*x->seen_series));
	}
	x->round++;
	return 0;
}

static void
write_way(const struct clock_graph *g, struct clock_way *w)
{
	const struct clock_scratch *x = g->scratch;
	uint32_t at = w->to, i;

	w->n = x->depth[w->to];
	for (i = w->n;; i--) {
		w->clocks[i] = at;
		if (i == 0)
			return;
		at = x->parent[at];
	}
}

static int
by_key(const void *a, const void *b, void *arg)
{
	const struct clock_graph *g = arg;

	return clock_key_compare(&g->clocks[*(const uint32_t *)a].key,
	    &g->clocks[*(const uint32_t *)b].key);
}

/*
 * Appends unvisited clocks that were read together with `clock` to the queue,
 * in the order of their keys; returns its new end.
 */
static uint32_t
expand(const struct clock_graph *g, uint32_t clock, uint32_t end)
{
	const struct clock_node *node = &g->nodes[clock];
	struct clock_scratch *x = g->scratch;
	const struct clock_series *s;
	uint32_t i, c, next, from = end;

	for (i = 0; i < node->n; i++) {
		if (x->seen_series[node->series[i]] == x->round)
			continue;
		x->seen_series[node->series[i]] = x->round;
		s = &g->series[node->series[i]];
		for (c = 0; c < s->n; c++) {
			next = s->columns[c];
			if (x->seen[next] == x->round)
				continue;
			x->seen[next] = x->round;
			x->parent[next] = clock;
			x->depth[next] = x->depth[clock] + 1;
			x->queue[end++] = next;
		}
	}
	qsort_r(x->queue + from, end - from, sizeof(*x->queue), by_key,
	    (void *)(uintptr_t)g);
	return end;
}

/* Whether both clocks are in one set, so that the way has one step. */
static bool
is_next(const struct clock_graph *g, uint32_t from, uint32_t to)
{
	const struct clock_node *a = &g->nodes[from], *b = &g->nodes[to];
	uint32_t i, other = to;

	if (a->n > b->n) {
		a = b;
		other = from;
	}
	for (i = 0; i < a->n; i++) {
		if (clock_series_column(&g->series[a->series[i]], other) !=
		    CLOCK_NONE)
			return true;
	}
	return false;
}

/* The only clock that `clock` was read with; CLOCK_NONE: there are more. */
static uint32_t
only_neighbour(const struct clock_graph *g, uint32_t clock)
{
	const struct clock_series *s;

	if (g->nodes[clock].n != 1)
		return CLOCK_NONE;
	s = &g->series[g->nodes[clock].series[0]];
	if (s->n != 2)
		return CLOCK_NONE;
	return s->columns[0] == clock ? s->columns[1] : s->columns[0];
}

/* Looks for a way of two steps, over the queued clocks in their order. */
static bool
is_second(const struct clock_graph *g, struct clock_way *w, uint32_t at,
    uint32_t end)
{
	const struct clock_scratch *x = g->scratch;

	for (; at < end; at++) {
		if (g->clocks[x->queue[at]].went_back ||
		    !is_next(g, x->queue[at], w->to))
			continue;
		w->n = 2;
		w->clocks[0] = w->from;
		w->clocks[1] = x->queue[at];
		w->clocks[2] = w->to;
		return true;
	}
	return false;
}

/* Breadth first search, where no cheaper case applies.  -1: no memory. */
static int
search_far(const struct clock_graph *g, struct clock_way *w)
{
	struct clock_scratch *x = g->scratch;
	uint32_t at = 0, end = 0, clock;

	if (begin_round(g) != 0)
		return -1;
	x->seen[w->from] = x->round;
	x->depth[w->from] = 0;
	x->queue[end++] = w->from;
	while (at < end) {
		clock = x->queue[at++];
		if (x->depth[clock] == CLOCK_GRAPH_MAX_STEPS)
			return 0;
		if (g->clocks[clock].went_back)
			continue;
		end = expand(g, clock, end);
		if (at == 1 && is_second(g, w, at, end))
			return 0;
		if (x->seen[w->to] == x->round) {
			write_way(g, w);
			return 0;
		}
	}
	return 0;
}

static struct clock_way *way_of(struct clock_graph *g, uint32_t from,
    uint32_t to);

/*
 * Most clocks are those of sequences, and were read with one clock only: their
 * way is one step to that clock, and its way.
 */
static int
search_from_leaf(struct clock_graph *g, struct clock_way *w, uint32_t next)
{
	const struct clock_way *rest;

	if (g->clocks[next].went_back)
		return 0;
	if ((rest = way_of(g, next, w->to)) == NULL)
		return -1;
	if (rest->n == 0 || rest->n == CLOCK_GRAPH_MAX_STEPS)
		return 0;
	w->clocks[0] = w->from;
	memcpy(w->clocks + 1, rest->clocks,
	    (rest->n + 1) * sizeof(*rest->clocks));
	w->n = rest->n + 1;
	return 0;
}

/* -1: no memory. */
static int
search(struct clock_graph *g, struct clock_way *w)
{
	uint32_t next;

	w->n = 0;
	if (clock_graph_joined(g, w->from) != clock_graph_joined(g, w->to))
		return 0;
	if (is_next(g, w->from, w->to)) {
		w->n = 1;
		w->clocks[0] = w->from;
		w->clocks[1] = w->to;
		return 0;
	}
	/* Two clocks that were read only with each other lead nowhere else. */
	next = only_neighbour(g, w->from);
	if (next != CLOCK_NONE && only_neighbour(g, next) == CLOCK_NONE)
		return search_from_leaf(g, w, next);
	return search_far(g, w);
}

/* A step: where it starts and leads to, and the values that start there. */
struct step {
	bool found;
	bool at_or_before; /* the reading is not after the timestamp */
	int64_t from, to;
	int64_t next; /* the first value of `from` that is another reading */
	bool has_next;
};

static void
take_next(struct step *t, int64_t value)
{
	if (!t->has_next || value < t->next)
		t->next = value;
	t->has_next = true;
}

/* Looks at one set of readings; of several, the latest reading counts. */
static void
look(const struct clock_series *s, uint32_t from, uint32_t to, int64_t ns,
    struct step *t)
{
	size_t row = clock_series_row(s, from, ns);
	const int64_t *v = s->values + row * s->n;
	bool before = v[from] <= ns;

	if (before && row + 1 < s->rows)
		take_next(t, v[s->n + from]);
	if (!before)
		take_next(t, v[from]);
	if (t->found && (before != t->at_or_before ? !before :
	    before ? v[from] <= t->from : v[from] >= t->from))
		return;
	t->found = true;
	t->at_or_before = before;
	t->from = v[from];
	t->to = v[to];
}

static struct step
one_step(const struct clock_graph *g, uint32_t from, uint32_t to, int64_t ns)
{
	const struct clock_node *node = &g->nodes[from];
	struct step t = { .found = false };
	const struct clock_series *s;
	uint32_t i, a, b, ways = 0;

	if (g->nodes[to].n < node->n)
		node = &g->nodes[to];
	for (i = 0; i < node->n && ways < CLOCK_GRAPH_MAX_WAYS; i++) {
		s = &g->series[node->series[i]];
		a = clock_series_column(s, from);
		b = clock_series_column(s, to);
		if (a == CLOCK_NONE || b == CLOCK_NONE || s->rows == 0)
			continue;
		look(s, a, b, ns, &t);
		ways++;
	}
	return t;
}

static int64_t
clamp(__int128 v)
{
	return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX :
	    (int64_t)v;
}

/* The shift of ns along the way, and between which values it is the same. */
static void
go(const struct clock_graph *g, struct clock_way *w, int64_t ns)
{
	uint64_t shift = 0;
	int64_t at = ns, lo;
	struct step t;
	uint32_t i;

	w->lo = INT64_MIN;
	w->hi = INT64_MAX;
	for (i = 0; i < w->n; i++) {
		t = one_step(g, w->clocks[i], w->clocks[i + 1], at);
		if (t.at_or_before) {
			lo = clamp((__int128)t.from - at + ns);
			if (lo > w->lo)
				w->lo = lo;
		}
		if (t.has_next) {
			lo = clamp((__int128)t.next - at + ns - 1);
			if (lo < w->hi)
				w->hi = lo;
		}
		shift += (uint64_t)clock_minus(t.to, t.from);
		at = (int64_t)((uint64_t)ns + shift);
	}
	w->shift = shift;
	w->readings = g->readings;
}

/*
 * Whether nothing that came since can have made a better way.  One step is the
 * shortest there is; for another second step one of its ends must have been
 * read with a clock that it was not read with before.
 */
static bool
still_holds(const struct clock_graph *g, const struct clock_way *w)
{
	if (w->topology == 0 || w->backs != g->backs)
		return false;
	return w->topology == g->topology || w->n == 1 || (w->n == 2 &&
	    g->nodes[w->from].changed <= w->topology &&
	    g->nodes[w->to].changed <= w->topology);
}

/* NULL: no memory. */
static struct clock_way *
way_of(struct clock_graph *g, uint32_t from, uint32_t to)
{
	struct clock_node *node = &g->nodes[from];
	struct clock_way *w = node->way;

	if (w == NULL && (w = node->way = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	if (w->to == to && still_holds(g, w))
		return w;
	w->from = from;
	w->to = to;
	w->readings = 0;
	w->topology = 0;
	if (search(g, w) != 0)
		return NULL;
	w->topology = g->topology;
	w->backs = g->backs;
	return w;
}

/* The way between two that differ; NULL with what is wrong in *why. */
static struct clock_way *
find_way(struct clock_graph *g, const struct clock_key *from,
    const struct clock_key *to, enum clock_result *why)
{
	uint32_t a = clock_graph_find(g, from);
	uint32_t b = clock_graph_find(g, to);
	struct clock_way *w;

	if (a == CLOCK_NONE) {
		*why = CLOCK_UNKNOWN;
		return NULL;
	}
	if (g->clocks[a].went_back) {
		*why = CLOCK_WENT_BACK;
		return NULL;
	}
	*why = CLOCK_NO_WAY;
	if (b == CLOCK_NONE)
		return NULL;
	if ((w = way_of(g, a, b)) == NULL || w->n == 0)
		return NULL;
	*why = CLOCK_OK;
	return w;
}

enum clock_result
clock_graph_convert(struct clock_graph *g, const struct clock_at *from,
    const struct clock_key *to, uint64_t *ns)
{
	int64_t at = (int64_t)from->ns;
	struct clock_way *w;
	enum clock_result why;

	if (clock_key_compare(&from->clock, to) == 0) {
		*ns = from->ns;
		return CLOCK_OK;
	}
	if ((w = find_way(g, &from->clock, to, &why)) == NULL)
		return why;
	if (w->readings != g->readings || at < w->lo || at > w->hi)
		go(g, w, at);
	*ns = from->ns + w->shift;
	return CLOCK_OK;
}

size_t
clock_graph_way(struct clock_graph *g, const struct clock_key *from,
    const struct clock_key *to, struct clock_key *out)
{
	struct clock_way *w;
	enum clock_result why;
	uint32_t i;

	if (clock_key_compare(from, to) == 0) {
		out[0] = *from;
		return 1;
	}
	if ((w = find_way(g, from, to, &why)) == NULL)
		return 0;
	for (i = 0; i <= w->n; i++)
		out[i] = g->clocks[w->clocks[i]].key;
	return i;
}
