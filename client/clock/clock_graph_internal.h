/*
 * clock_graph_internal: what clock_graph.c (clocks, sets and their rows), its
 * parts clock_series.c (the rows of one set) and clock_way.c (the search and
 * the conversion) share.
 *
 * Clocks that were read together are a set; its table (clock_series) has a
 * column for each clock and a row for each reading.  So memory grows with the
 * values read and not with the number of pairs of clocks, and the search goes
 * from clocks to sets to clocks.
 *
 * Invariants:
 *   - a series' columns are indexes of clocks, ascending, and at least two;
 *   - the values of a column whose clock never went back ascend with the rows;
 *   - values are signed here, so that times before a clock's zero sort before
 *     it.
 */
#ifndef CLIENT_CLOCK_CLOCK_GRAPH_INTERNAL_H
#define CLIENT_CLOCK_CLOCK_GRAPH_INTERNAL_H

#include "client/clock/clock_graph.h"

/* Clocks of one snapshot; Perfetto's service reads six. */
#define CLOCK_GRAPH_MAX_TOGETHER 64u
#define CLOCK_GRAPH_MAX_SETS     65536u
/* Pairs of all sets, for reports. */
#define CLOCK_GRAPH_MAX_PAIRS    262144u
/* Values of all rows of all sets: 64 MiB. */
#define CLOCK_GRAPH_MAX_VALUES   (8u << 20)
/* Most rows that a reading may come late; later ones are left out. */
#define CLOCK_GRAPH_MAX_LATE     512u
/* Sets that are looked into for one step: the first that have both clocks. */
#define CLOCK_GRAPH_MAX_WAYS     64u
/* Two estimates of one distance may differ by this much without a jump. */
#define CLOCK_GRAPH_ESTIMATE_NS  1000000000

/* Values of the second column minus the first. */
struct clock_span {
	int64_t first, last, min, max;
};

struct clock_series {
	uint32_t n;
	uint32_t *columns;        /* n; owned */
	struct clock_span *spans; /* n * (n - 1) / 2; owned */
	int64_t *values;          /* row by row; owned */
	size_t rows, cap;         /* in rows */
	uint64_t readings;        /* seen, also those not kept */
	uint64_t stride;          /* one reading in so many is kept */
	uint64_t since;           /* readings since the last that was kept */
	bool loose;               /* the next row replaces the last one */
};


/* Cached way from one clock to another, and the range of its last shift. */
struct clock_way {
	uint64_t topology; /* clock_graph.topology it is valid for; 0: none */
	uint64_t backs;    /* clock_graph.backs, likewise */
	uint64_t readings; /* clock_graph.readings, for the shift; 0: none */
	uint32_t from, to;
	uint32_t n; /* steps; 0: there is no way */
	uint32_t clocks[CLOCK_GRAPH_MAX_STEPS + 1];
	int64_t lo, hi; /* values of `from` that shift holds for, inclusive */
	uint64_t shift; /* value of `to` minus `from`, modulo 2^64 */
};

/* The series that a clock of the graph takes part in. */
struct clock_node {
	uint32_t *series;      /* owned */
	uint32_t n, cap;
	uint64_t changed;      /* the topology of its last new set */
	uint32_t joined;       /* union-find: clocks with any way between them */
	struct clock_way *way; /* owned: the last that began here, or NULL */
};

/* Memory for searches, and the edges last handed out to a report. */
struct clock_scratch {
	uint32_t round;
	uint32_t *seen;        /* a clock each: the round */
	uint32_t *parent;
	uint32_t *depth;
	uint32_t *queue;
	uint32_t *seen_series; /* a set each */
	size_t cap_clocks, cap_series;
	struct clock_graph_edge *edges;
};

struct clock_graph {
	struct clock_graph_clock *clocks;
	struct clock_node *nodes; /* one of each clock */
	uint32_t n_clocks, cap_clocks;
	uint32_t *clock_slots; /* open addressing; index + 1 */
	uint32_t cap_clock_slots;

	struct clock_series *series;
	uint32_t n_series, cap_series;
	uint32_t *series_slots;
	uint32_t cap_series_slots;

	size_t n_pairs;
	size_t n_values;   /* room of all series */
	uint64_t topology; /* counts up with each clock and each set */
	uint64_t backs;    /* counts up when a clock went back */
	uint64_t readings; /* counts up when rows come or go */
	uint64_t thinned, left_out;
	struct clock_scratch *scratch; /* owned */
};

#define CLOCK_NONE UINT32_MAX

/* The index of a clock, or CLOCK_NONE. */
uint32_t clock_graph_find(const struct clock_graph *g,
    const struct clock_key *k);
/* Returns the clock that stands for all that are joined with this one. */
uint32_t clock_graph_joined(const struct clock_graph *g, uint32_t clock);

/* b - a; what does not fit wraps. */
static inline int64_t
clock_minus(int64_t b, int64_t a)
{
	return (int64_t)((uint64_t)b - (uint64_t)a);
}

/* columns is copied.  -1: no memory. */
int clock_series_init(struct clock_series *s, const uint32_t *columns,
    uint32_t n) MUST_CHECK;
void clock_series_done(struct clock_series *s);
/* The column of a clock, or CLOCK_NONE. */
uint32_t clock_series_column(const struct clock_series *s, uint32_t clock);
/*
 * Adds one reading, a value for each column; marks clocks that went back in g.
 * -1: no memory.
 */
int clock_series_add(struct clock_graph *g, struct clock_series *s,
    const int64_t *v) MUST_CHECK;
/*
 * Adds an estimate; drops older ones that it contradicts by up to
 * CLOCK_GRAPH_ESTIMATE_NS.  -1: no memory.
 */
int clock_series_estimate(struct clock_graph *g, struct clock_series *s,
    const int64_t *v) MUST_CHECK;
/* Drops every other row but the newest, and doubles the stride. */
void clock_series_thin(struct clock_graph *g, struct clock_series *s);
/* The last row whose value is at most ns, or 0. */
size_t clock_series_row(const struct clock_series *s, uint32_t column,
    int64_t ns);

#endif /* CLIENT_CLOCK_CLOCK_GRAPH_INTERNAL_H */
