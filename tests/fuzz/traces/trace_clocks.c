/*
 * trace_clocks and clock_graph: whatever snapshots say, each conversion goes
 * the way that the graph names, step by step, and what was remembered of one
 * changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/clock/trace_clocks.h"
#include "client/trace/packet_facts.h"
#include "client/trace/packet_splitter.h"
#include "tests/fuzz/traces/traces.h"

#define SOME 8u

struct state {
	struct trace_clocks *clocks;
	struct packet_types types;
	unsigned packets;
};

static void
go_step_by_step(struct clock_graph *g, const struct clock_at *from,
    const struct clock_key *to, uint64_t want)
{
	struct clock_key way[CLOCK_GRAPH_MAX_STEPS + 1];
	size_t i, n = clock_graph_way(g, &from->clock, to, way);
	struct clock_at at = *from;

	if (n == 0)
		abort();
	for (i = 1; i < n; i++) {
		if (clock_graph_convert(g, &at, &way[i], &at.ns) != CLOCK_OK)
			abort();
		at.clock = way[i];
	}
	if (at.ns != want)
		abort();
}

static void
convert(struct clock_graph *g, const struct clock_graph_clock *from,
    const struct clock_graph_clock *to)
{
	struct clock_key way[CLOCK_GRAPH_MAX_STEPS + 1];
	struct clock_at at = { from->key, from->first_ns +
	    (from->last_ns - from->first_ns) / 2 };
	uint64_t ns, again;

	switch (clock_graph_convert(g, &at, &to->key, &ns)) {
	case CLOCK_OK:
		break;
	case CLOCK_UNKNOWN:
		abort(); /* it is in the list */
	case CLOCK_WENT_BACK:
		if (!from->went_back)
			abort();
		return;
	case CLOCK_NO_WAY:
		if (clock_graph_way(g, &at.clock, &to->key, way) != 0)
			abort();
		return;
	}
	if (clock_graph_convert(g, &at, &to->key, &again) != CLOCK_OK ||
	    again != ns)
		abort();
	go_step_by_step(g, &at, &to->key, ns);
}

static void
convert_some(struct trace_clocks *c)
{
	struct clock_graph *g = trace_clocks_graph(c);
	const struct clock_graph_clock *clocks;
	size_t a, b, n = clock_graph_clocks(g, &clocks);

	for (a = 0; a < n && a < SOME; a++)
		for (b = 0; b < n && b < SOME; b++)
			convert(g, &clocks[a], &clocks[b]);
}

static void
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct state *s = arg;
	struct packet_facts f;
	struct trace_moment m;

	if (!packet_facts_read(&f, &s->types, data, len))
		return;
	if (trace_clocks_take(s->clocks, &f, &m) != 0)
		abort();
	if ((m.result == TRACE_TIME_OK) != (*trace_time_text(m.result) == 0))
		abort();
	if (++s->packets % 16 == 0)
		convert_some(s->clocks);
}

static void
report(struct trace_clocks *c)
{
	const struct clock_graph_edge *e;
	size_t i, n = clock_graph_edges(trace_clocks_graph(c), &e);

	for (i = 0; i < n; i++)
		if (e[i].readings == 0 || e[i].min > e[i].max)
			abort();
}

void
fuzz_trace_clocks(const uint8_t *data, size_t size)
{
	struct state s = { .clocks = trace_clocks_new() };
	struct packet_splitter cutter = { 0 };

	if (s.clocks == NULL)
		abort();
	packet_types_init(&s.types);
	(void)!packet_splitter_feed(&cutter, data, size, packet_cb, &s);
	convert_some(s.clocks);
	report(s.clocks);
	packet_splitter_done(&cutter);
	trace_clocks_free(s.clocks);
}
