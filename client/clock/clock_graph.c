/* clock_graph: the clocks of a trace and the sets that were read together. */
#include "client/clock/clock_graph.h"

#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_graph_internal.h"
#include "transport/base/hash_map.h"

#define FIRST_SEQUENCE_CLOCK 64u
#define FIRST_GLOBAL_CLOCK   128u
/* Sets with fewer rows keep what they have when room is short. */
#define FEW_ROWS 64u

struct clock_graph *
clock_graph_new(void)
{
	struct clock_graph *g;

	if ((g = calloc(1, sizeof(*g))) == NULL)
		return NULL;
	if ((g->scratch = calloc(1, sizeof(*g->scratch))) == NULL) {
		free(g);
		return NULL;
	}
	/* 0 means "none" to what is kept of searches. */
	g->topology = 1;
	g->readings = 1;
	return g;
}

void
clock_graph_free(struct clock_graph *g)
{
	uint32_t i;

	if (g == NULL)
		return;
	for (i = 0; i < g->n_clocks; i++) {
		free(g->nodes[i].series);
		free(g->nodes[i].way);
	}
	for (i = 0; i < g->n_series; i++)
		clock_series_done(&g->series[i]);
	free(g->scratch->seen);
	free(g->scratch->parent);
	free(g->scratch->depth);
	free(g->scratch->queue);
	free(g->scratch->seen_series);
	free(g->scratch->edges);
	free(g->scratch);
	free(g->clocks);
	free(g->nodes);
	free(g->clock_slots);
	free(g->series);
	free(g->series_slots);
	free(g);
}

struct clock_key
clock_key_of(uint32_t machine, uint32_t sequence, uint32_t id)
{
	bool scoped = id >= FIRST_SEQUENCE_CLOCK && id < FIRST_GLOBAL_CLOCK;

	return (struct clock_key){ .machine = machine,
		.sequence = scoped ? sequence : 0, .id = id };
}

int
clock_key_compare(const struct clock_key *a, const struct clock_key *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	if (a->machine != b->machine)
		return a->machine < b->machine ? -1 : 1;
	return 0;
}

uint64_t
clock_key_hash(const struct clock_key *k)
{
	return hash_numbers((uint64_t)k->machine << 32 | k->sequence, k->id);
}

static uint32_t
clock_slot(const struct clock_graph *g, const struct clock_key *k)
{
	uint32_t i = clock_key_hash(k) & (g->cap_clock_slots - 1);

	while (g->clock_slots[i] != 0 && clock_key_compare(
	    &g->clocks[g->clock_slots[i] - 1].key, k) != 0)
		i = (i + 1) & (g->cap_clock_slots - 1);
	return i;
}

uint32_t
clock_graph_find(const struct clock_graph *g, const struct clock_key *k)
{
	uint32_t held;

	if (g->cap_clock_slots == 0)
		return CLOCK_NONE;
	held = g->clock_slots[clock_slot(g, k)];
	return held == 0 ? CLOCK_NONE : held - 1;
}

uint32_t
clock_graph_joined(const struct clock_graph *g, uint32_t clock)
{
	struct clock_node *nodes = g->nodes;

	while (nodes[clock].joined != clock) {
		nodes[clock].joined = nodes[nodes[clock].joined].joined;
		clock = nodes[clock].joined;
	}
	return clock;
}

static bool
same_columns(const struct clock_series *s, const uint32_t *columns, uint32_t n)
{
	return s->n == n &&
	    memcmp(s->columns, columns, n * sizeof(*columns)) == 0;
}

static uint32_t
series_slot(const struct clock_graph *g, const uint32_t *columns, uint32_t n)
{
	uint32_t i = hash_bytes(columns, n * sizeof(*columns)) &
	    (g->cap_series_slots - 1);

	while (g->series_slots[i] != 0 && !same_columns(
	    &g->series[g->series_slots[i] - 1], columns, n))
		i = (i + 1) & (g->cap_series_slots - 1);
	return i;
}

/* Twice the slots, empty, when half of them are taken.  -1: no memory. */
static int
grow_slots(uint32_t **slots, uint32_t *cap, uint32_t taken, bool *grown)
{
	uint32_t *larger, n = *cap == 0 ? 64 : *cap * 2;

	*grown = false;
	if (*cap != 0 && taken < *cap / 2)
		return 0;
	if ((larger = calloc(n, sizeof(*larger))) == NULL)
		return -1;
	free(*slots);
	*slots = larger;
	*cap = n;
	*grown = true;
	return 0;
}

static int
clock_room(struct clock_graph *g)
{
	uint32_t i, cap = g->cap_clocks == 0 ? 16 : g->cap_clocks * 2;
	struct clock_graph_clock *clocks;
	struct clock_node *nodes;
	bool grown;

	if (grow_slots(&g->clock_slots, &g->cap_clock_slots, g->n_clocks,
	    &grown) != 0)
		return -1;
	for (i = 0; grown && i < g->n_clocks; i++)
		g->clock_slots[clock_slot(g, &g->clocks[i].key)] = i + 1;
	if (g->n_clocks < g->cap_clocks)
		return 0;
	if ((clocks = realloc(g->clocks, cap * sizeof(*clocks))) == NULL)
		return -1;
	g->clocks = clocks;
	if ((nodes = realloc(g->nodes, cap * sizeof(*nodes))) == NULL)
		return -1;
	g->nodes = nodes;
	g->cap_clocks = cap;
	return 0;
}

/* Finds or makes it; CLOCK_NONE in *index: too many.  -1: no memory. */
static int
take_clock(struct clock_graph *g, const struct clock_at *at, uint32_t *index)
{
	struct clock_graph_clock *c;
	uint32_t i = clock_graph_find(g, &at->clock);

	*index = CLOCK_NONE;
	if (i == CLOCK_NONE) {
		if (g->n_clocks == CLOCK_GRAPH_MAX_CLOCKS) {
			g->left_out++;
			return 0;
		}
		if (clock_room(g) != 0)
			return -1;
		i = g->n_clocks++;
		g->clocks[i] = (struct clock_graph_clock){ .key = at->clock,
			.first_ns = at->ns };
		g->nodes[i] = (struct clock_node){ .joined = i };
		g->clock_slots[clock_slot(g, &at->clock)] = i + 1;
		g->topology++;
	}
	c = &g->clocks[i];
	c->readings++;
	c->last_ns = at->ns;
	*index = i;
	return 0;
}

static int
series_room(struct clock_graph *g)
{
	uint32_t i, cap = g->cap_series == 0 ? 16 : g->cap_series * 2;
	struct clock_series *series, *s;
	bool grown;

	if (grow_slots(&g->series_slots, &g->cap_series_slots, g->n_series,
	    &grown) != 0)
		return -1;
	for (i = 0; grown && i < g->n_series; i++) {
		s = &g->series[i];
		g->series_slots[series_slot(g, s->columns, s->n)] = i + 1;
	}
	if (g->n_series < g->cap_series)
		return 0;
	if ((series = realloc(g->series, cap * sizeof(*series))) == NULL)
		return -1;
	g->series = series;
	g->cap_series = cap;
	return 0;
}

static int
node_room(struct clock_node *node)
{
	uint32_t *grown, cap = node->cap == 0 ? 4 : node->cap * 2;

	if (node->n < node->cap)
		return 0;
	if ((grown = realloc(node->series, cap * sizeof(*grown))) == NULL)
		return -1;
	node->series = grown;
	node->cap = cap;
	return 0;
}

static int
make_series(struct clock_graph *g, const uint32_t *columns, uint32_t n)
{
	struct clock_node *node;
	uint32_t i;

	if (series_room(g) != 0)
		return -1;
	for (i = 0; i < n; i++) {
		if (node_room(&g->nodes[columns[i]]) != 0)
			return -1;
	}
	if (clock_series_init(&g->series[g->n_series], columns, n) != 0)
		return -1;
	g->topology++;
	for (i = 0; i < n; i++) {
		node = &g->nodes[columns[i]];
		node->series[node->n++] = g->n_series;
		node->changed = g->topology;
		g->nodes[clock_graph_joined(g, columns[i])].joined =
		    clock_graph_joined(g, columns[0]);
	}
	g->series_slots[series_slot(g, columns, n)] = ++g->n_series;
	g->n_pairs += (size_t)n * (n - 1) / 2;
	return 0;
}

/* Finds or makes it; NULL in *out: too many.  -1: no memory. */
static int
take_series(struct clock_graph *g, const uint32_t *columns, uint32_t n,
    struct clock_series **out)
{
	uint32_t held = 0;

	*out = NULL;
	if (g->cap_series_slots != 0)
		held = g->series_slots[series_slot(g, columns, n)];
	if (held == 0) {
		if (g->n_series == CLOCK_GRAPH_MAX_SETS || g->n_pairs +
		    (size_t)n * (n - 1) / 2 > CLOCK_GRAPH_MAX_PAIRS) {
			g->left_out++;
			return 0;
		}
		if (make_series(g, columns, n) != 0)
			return -1;
		held = g->n_series;
	}
	*out = &g->series[held - 1];
	return 0;
}

/* Once all sets together are full: half of each that has more than `few`. */
static void
thin_all(struct clock_graph *g)
{
	size_t few;
	uint32_t i;

	for (few = FEW_ROWS; g->n_values >= CLOCK_GRAPH_MAX_VALUES && few >= 2;
	    few /= 2) {
		for (i = 0; i < g->n_series; i++) {
			if (g->series[i].rows > few)
				clock_series_thin(g, &g->series[i]);
		}
	}
}

/* Sorted by clock, each once: its first value counts. */
static uint32_t
sort_in(uint32_t *columns, int64_t *values, uint32_t n, uint32_t clock,
    int64_t value)
{
	uint32_t at = n;

	while (at > 0 && columns[at - 1] > clock)
		at--;
	if (at > 0 && columns[at - 1] == clock)
		return n;
	memmove(columns + at + 1, columns + at, (n - at) * sizeof(*columns));
	memmove(values + at + 1, values + at, (n - at) * sizeof(*values));
	columns[at] = clock;
	values[at] = value;
	return n + 1;
}

static int
add(struct clock_graph *g, const struct clock_at *clocks, size_t n,
    int (*into)(struct clock_graph *g, struct clock_series *s,
    const int64_t *v))
{
	uint32_t columns[CLOCK_GRAPH_MAX_TOGETHER], clock, together = 0;
	int64_t values[CLOCK_GRAPH_MAX_TOGETHER];
	struct clock_series *s;
	size_t i;

	for (i = 0; i < n; i++) {
		if (together == CLOCK_GRAPH_MAX_TOGETHER) {
			g->left_out += n - i;
			break;
		}
		if (take_clock(g, &clocks[i], &clock) != 0)
			return -1;
		if (clock != CLOCK_NONE)
			together = sort_in(columns, values, together, clock,
			    (int64_t)clocks[i].ns);
	}
	if (together < 2)
		return 0;
	if (take_series(g, columns, together, &s) != 0)
		return -1;
	if (s == NULL)
		return 0;
	if (g->n_values >= CLOCK_GRAPH_MAX_VALUES)
		thin_all(g);
	return into(g, s, values);
}

int
clock_graph_snapshot(struct clock_graph *g, const struct clock_at *clocks,
    size_t n)
{
	return add(g, clocks, n, clock_series_add);
}

int
clock_graph_remote(struct clock_graph *g, uint32_t machine, uint32_t id,
    uint64_t host_ns, int64_t offset_ns)
{
	struct clock_at both[2] = {
		{ clock_key_of(0, 0, id), host_ns },
		{ clock_key_of(machine, 0, id), host_ns + (uint64_t)offset_ns },
	};

	return add(g, both, 2, clock_series_estimate);
}

void
clock_graph_set_error(struct clock_graph *g, uint32_t machine, uint32_t id,
    uint64_t error_ns)
{
	struct clock_key key = clock_key_of(machine, 0, id);
	uint32_t i = clock_graph_find(g, &key);

	if (i != CLOCK_NONE)
		g->clocks[i].error_ns = error_ns;
}

size_t
clock_graph_clocks(const struct clock_graph *g,
    const struct clock_graph_clock **out)
{
	*out = g->clocks;
	return g->n_clocks;
}

void
clock_graph_left_out(const struct clock_graph *g, uint64_t *thinned,
    uint64_t *left_out)
{
	*thinned = g->thinned;
	*left_out = g->left_out;
}

struct clock_graph_edge
clock_graph_turn(const struct clock_graph_edge *e)
{
	return (struct clock_graph_edge){
		.a = e->b,
		.b = e->a,
		.readings = e->readings,
		.first = clock_minus(0, e->first),
		.last = clock_minus(0, e->last),
		.min = clock_minus(0, e->max),
		.max = clock_minus(0, e->min),
	};
}

/* Makes the edge of two clocks, in the order of their keys. */
static struct clock_graph_edge
edge_of(const struct clock_graph *g, const struct clock_series *s, uint32_t a,
    uint32_t b, const struct clock_span *span)
{
	struct clock_graph_edge e = {
		.a = g->clocks[s->columns[a]].key,
		.b = g->clocks[s->columns[b]].key,
		.readings = s->readings,
		.first = span->first, .last = span->last,
		.min = span->min, .max = span->max,
	};

	return clock_key_compare(&e.a, &e.b) < 0 ? e : clock_graph_turn(&e);
}

static int
by_keys(const void *x, const void *y)
{
	const struct clock_graph_edge *a = x, *b = y;
	int r = clock_key_compare(&a->a, &b->a);

	return r != 0 ? r : clock_key_compare(&a->b, &b->b);
}

/* Makes one of neighbours that join the same two; returns how many are left. */
static size_t
merge_edges(struct clock_graph_edge *e, size_t n)
{
	size_t i, out = 0;

	for (i = 1; i < n; i++) {
		if (by_keys(&e[out], &e[i]) != 0) {
			e[++out] = e[i];
			continue;
		}
		e[out].readings += e[i].readings;
		e[out].last = e[i].last;
		if (e[i].min < e[out].min)
			e[out].min = e[i].min;
		if (e[i].max > e[out].max)
			e[out].max = e[i].max;
	}
	return n == 0 ? 0 : out + 1;
}

size_t
clock_graph_edges(const struct clock_graph *g,
    const struct clock_graph_edge **out)
{
	const struct clock_series *s;
	const struct clock_span *span;
	struct clock_graph_edge *e;
	uint32_t i, a, b;
	size_t n = 0;

	free(g->scratch->edges);
	g->scratch->edges = e = malloc((g->n_pairs + 1) * sizeof(*e));
	*out = e;
	if (e == NULL)
		return 0;
	for (i = 0; i < g->n_series; i++) {
		s = &g->series[i];
		span = s->spans;
		for (a = 0; a < s->n; a++)
			for (b = a + 1; b < s->n; b++)
				e[n++] = edge_of(g, s, a, b, span++);
	}
	qsort(e, n, sizeof(*e), by_keys);
	return merge_edges(e, n);
}
