#include "client/inspect/report/clocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_graph.h"
#include "client/clock/clock_name.h"
#include "client/clock/clock_uses.h"
#include "client/clock/trace_clocks.h"
#include "client/inspect/report/inspection.h"
#include "client/inspect/report/session_log.h"
#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "protos/json_out.h"
#include "protos/trace_stats.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"
#include "transport/base/machine_word.h"
#include "transport/clock/clock_snapshot.h"

/* Machines, clocks and pairs that are told of; text ends in "and N more". */
#define MAX_MACHINES   1024u
#define MAX_EDGES      4096u
#define MAX_CLOCKS     4096u
#define TEXT_MACHINES  20u
#define TEXT_CLOCKS    8u
/* Shorter recordings say nothing about drift. */
#define DRIFT_MIN_NS   1000000000ull
/* Smaller differences are within the error of reading two clocks. */
#define SLEPT_MIN_NS   10000000
/* Bounds for a wall clock that NTP slews, and nothing sets. */
#define STEERED_NS     10000000
#define STEERED_PPM    600

#define INDENT TRACE_REPORT_INDENT
#define NAME_MAX_BYTES 200

/* Distance of a machine's clock ahead of the collector's. */
struct clock_distance {
	uint32_t machine;
	uint32_t clock; /* BOOTTIME, or another that both have */
	uint64_t readings;
	int64_t first, last, min, max; /* nanoseconds */
	uint64_t error; /* of the last, at most; 0: not known */
	bool has_drift;
	double drift_ppm; /* of last against first */
};

/* Modulo 2^64, as hostile traces hold any number. */
static int64_t
minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static const struct clock_graph_clock *
find_clock(const struct clock_graph *g, uint32_t machine, uint32_t id)
{
	const struct clock_graph_clock *c;
	size_t i, n = clock_graph_clocks(g, &c);

	for (i = 0; i < n; i++) {
		if (c[i].key.machine == machine && c[i].key.id == id &&
		    c[i].key.sequence == 0)
			return &c[i];
	}
	return NULL;
}

static void
add_error_and_drift(struct clock_distance *d, const struct clock_graph *g)
{
	const struct clock_graph_clock *c;

	if ((c = find_clock(g, d->machine, d->clock)) == NULL)
		return;
	d->error = c->error_ns;
	if (d->readings < 2 || c->last_ns - c->first_ns < DRIFT_MIN_NS ||
	    c->last_ns < c->first_ns)
		return;
	d->has_drift = true;
	d->drift_ppm = (double)minus(d->last, d->first) /
	    (double)(c->last_ns - c->first_ns) * 1e6;
}

static int
by_machine(const void *a, const void *b)
{
	const struct clock_distance *x = a, *y = b;

	return x->machine < y->machine ? -1 : x->machine > y->machine;
}

/* The machine of an edge from the collector's own clock; 0: another edge. */
static uint32_t
machine_of(const struct clock_graph_edge *e)
{
	if (e->a.id != e->b.id || e->a.sequence != 0 || e->b.sequence != 0 ||
	    (e->a.machine == 0) == (e->b.machine == 0))
		return 0;
	return e->a.machine + e->b.machine;
}

static struct clock_distance
distance_of(const struct clock_graph_edge *e)
{
	struct clock_graph_edge t = e->a.machine == 0 ? *e :
	    clock_graph_turn(e);

	return (struct clock_distance){ .machine = machine_of(e),
		.clock = e->a.id, .readings = e->readings, .first = t.first,
		.last = t.last, .min = t.min, .max = t.max };
}

/* Finds the distances of up to max machines, by machine; returns how many. */
static size_t
find_distances(struct clock_graph *g, struct clock_distance *out,
    size_t max)
{
	const struct clock_graph_edge *e;
	size_t i, k, m, n = clock_graph_edges(g, &e);

	for (i = m = 0; i < n; i++) {
		if (machine_of(&e[i]) == 0)
			continue;
		for (k = 0; k < m; k++) {
			if (out[k].machine == machine_of(&e[i]))
				break;
		}
		if (k == max)
			continue;
		if (k == m || e[i].a.id == CLOCK_ID_BOOTTIME)
			out[k] = distance_of(&e[i]);
		m += k == m;
	}
	qsort(out, m, sizeof(*out), by_machine);
	for (i = 0; i < m; i++)
		add_error_and_drift(&out[i], g);
	return m;
}

/* "car-7", "machine 12", "host" */
static const char *
machine_name(char *out, size_t size, const struct inspection *i, uint32_t id)
{
	const struct session_machine *m =
	    session_log_machine(inspection_log(i), id);

	if (id == 0)
		return MACHINE_WORD_HOST;
	if (m != NULL && m->name[0] != '\0')
		return log_escape(out, size, m->name, strlen(m->name));
	snprintf(out, size, "machine %" PRIu32, id);
	return out;
}

/* "1.234567 s", "12.3 ms", "850 ns"; without a sign. */
static const char *
span(char out[HUMAN_TEXT_MAX], int64_t ns)
{
	double v = ns < 0 ? -(double)ns : (double)ns;

	if (v < 1e3)
		snprintf(out, HUMAN_TEXT_MAX, "%.0f ns", v);
	else if (v < 1e6)
		snprintf(out, HUMAN_TEXT_MAX, "%.1f us", v / 1e3);
	else if (v < 1e9)
		snprintf(out, HUMAN_TEXT_MAX, "%.3f ms", v / 1e6);
	else
		snprintf(out, HUMAN_TEXT_MAX, "%.6f s", v / 1e9);
	return out;
}

static void
distances_text(FILE *out, const struct inspection *i, struct clock_graph *g)
{
	struct clock_distance *d = calloc(MAX_MACHINES, sizeof(*d));
	char name[NAME_MAX_BYTES], text[HUMAN_TEXT_MAX], more[HUMAN_TEXT_MAX];
	size_t k, n;

	if (d == NULL)
		return;
	n = find_distances(g, d, MAX_MACHINES);
	for (k = 0; k < n && k < TEXT_MACHINES; k++) {
		fprintf(out, INDENT "%s is %s %s the collector's clock",
		    machine_name(name, sizeof(name), i, d[k].machine),
		    span(text, d[k].last), d[k].last < 0 ? "behind" :
		    "ahead of");
		if (d[k].error != 0)
			fprintf(out, ", to within %s", span(more,
			    (int64_t)d[k].error));
		if (d[k].readings > 1)
			fprintf(out, ", which varied by %s over %" PRIu64
			    " readings", span(more, minus(d[k].max, d[k].min)),
			    d[k].readings);
		if (d[k].has_drift)
			fprintf(out, " (%+.1f ppm)", d[k].drift_ppm);
		fprintf(out, "\n");
	}
	if (n > TEXT_MACHINES)
		fprintf(out, INDENT "and %zu more machines\n",
		    n - TEXT_MACHINES);
	free(d);
}

/* Tells of suspends of a machine, and of a wall clock that was set. */
static void
jumps_text(FILE *out, const struct inspection *i, struct clock_graph *g)
{
	double duration = (double)inspection_duration_ns(i);
	char name[NAME_MAX_BYTES], text[HUMAN_TEXT_MAX];
	const struct clock_graph_edge *e;
	size_t k, told = 0, n = clock_graph_edges(g, &e);
	int64_t width;

	for (k = 0; k < n && told < TEXT_CLOCKS; k++) {
		if (e[k].a.machine != e[k].b.machine)
			continue;
		width = minus(e[k].max, e[k].min);
		if (e[k].a.id == CLOCK_ID_MONOTONIC &&
		    e[k].b.id == CLOCK_ID_BOOTTIME && width > SLEPT_MIN_NS)
			fprintf(out, INDENT "%s slept for %s\n",
			    machine_name(name, sizeof(name), i,
			    e[k].a.machine), span(text, width));
		else if (e[k].a.id == CLOCK_ID_REALTIME &&
		    e[k].b.id == CLOCK_ID_BOOTTIME && (double)width >
		    STEERED_NS + duration * STEERED_PPM / 1e6)
			fprintf(out, INDENT "the wall clock of %s was set, by "
			    "%s in all\n", machine_name(name, sizeof(name), i,
			    e[k].a.machine), span(text, width));
		else
			continue;
		told++;
	}
}

static void
backward_text(FILE *out, const struct inspection *i,
    const struct clock_graph_clock *c, size_t n)
{
	char name[NAME_MAX_BYTES], clock[CLOCK_NAME_MAX];
	size_t k, told = 0;

	for (k = 0; k < n; k++) {
		if (!c[k].went_back)
			continue;
		if (told++ < TEXT_CLOCKS)
			fprintf(out, INDENT "clock %s of %s went back: its times "
			    "are ambiguous\n", clock_name(clock,
			    &c[k].key), machine_name(name, sizeof(name), i,
			    c[k].key.machine));
	}
	if (told > TEXT_CLOCKS)
		fprintf(out, INDENT "and %zu more clocks\n",
		    told - TEXT_CLOCKS);
}

static uint64_t
unresolved(const struct clock_use *u)
{
	return u->unknown + u->no_way + u->went_back + u->lost;
}

static enum trace_time
main_cause(const struct clock_use *u)
{
	if (u->unknown != 0)
		return TRACE_TIME_UNKNOWN;
	if (u->no_way != 0)
		return TRACE_TIME_NO_WAY;
	return u->went_back != 0 ? TRACE_TIME_WENT_BACK : TRACE_TIME_LOST;
}

static void
unresolved_text(FILE *out, const struct inspection *i)
{
	const struct clock_uses *uses = inspection_clock_uses(i);
	char name[NAME_MAX_BYTES], clock[CLOCK_NAME_MAX], count[HUMAN_TEXT_MAX];
	const struct clock_use *u;
	size_t at = 0, told = 0;

	while ((u = clock_uses_next(uses, &at)) != NULL) {
		if (unresolved(u) == 0)
			continue;
		if (told++ < TEXT_CLOCKS)
			fprintf(out, INDENT "%s packet%s in clock %s of %s: %s\n",
			    human_count(count, unresolved(u)),
			    human_s(unresolved(u)), clock_name(clock,
			    &u->key), machine_name(name, sizeof(name), i,
			    u->key.machine),
			    trace_time_text(main_cause(u)));
	}
	if (told > TEXT_CLOCKS)
		fprintf(out, INDENT "and of %zu more clocks\n",
		    told - TEXT_CLOCKS);
}

static bool
is_measured(struct clock_graph *g, uint32_t machine)
{
	const struct clock_graph_edge *e;
	size_t k, n = clock_graph_edges(g, &e);

	for (k = 0; k < n; k++)
		if (machine_of(&e[k]) == machine)
			return true;
	return false;
}

/*
 * Names the machines whose times are not known for lack of measurements, and
 * what helps.
 */
static void
unmeasured_text(FILE *out, const struct inspection *i, struct clock_graph *g)
{
	const struct clock_uses *uses = inspection_clock_uses(i);
	uint32_t told[TEXT_MACHINES];
	char name[NAME_MAX_BYTES];
	const struct clock_use *u;
	size_t at = 0, k, n = 0;

	while (n < TEXT_MACHINES && (u = clock_uses_next(uses, &at)) != NULL) {
		for (k = 0; k < n && told[k] != u->key.machine; k++)
			;
		if (k < n || u->key.machine == 0 || unresolved(u) == 0 ||
		    is_measured(g, u->key.machine))
			continue;
		told[n++] = u->key.machine;
		fprintf(out, INDENT "the clocks of %s were not measured: give "
		    "it a relay, or Perfetto's UI leaves its events out\n",
		    machine_name(name, sizeof(name), i, u->key.machine));
	}
}

void
inspect_clocks_text(FILE *out, const struct inspection *i)
{
	struct trace_clocks *clocks = inspection_clocks(i);
	struct clock_graph *g = trace_clocks_graph(clocks);
	struct clock_key key = trace_clocks_trace_clock(clocks);
	const struct clock_uses *uses = inspection_clock_uses(i);
	const struct clock_graph_clock *c;
	char clock[CLOCK_NAME_MAX], timed[HUMAN_TEXT_MAX], found[HUMAN_TEXT_MAX];
	const Perfetto__Protos__TraceStats *st =
	    trace_summary_stats(inspection_summary(i));
	size_t n = clock_graph_clocks(g, &c);

	fprintf(out, "Clocks          %zu; the trace clock is %s; ", n,
	    clock_name(clock, &key));
	fprintf(out, "%s time%s, %s known in it%s\n", human_count(timed,
	    uses->timed), human_s(uses->timed), uses->timed == uses->resolved ?
	    "all" : human_count(found, uses->resolved),
	    st != NULL && st->n_tributary_foreign_clocks != 0 ?
	    ", but see Wrong times" : "");
	distances_text(out, i, g);
	jumps_text(out, i, g);
	backward_text(out, i, c, n);
	unresolved_text(out, i);
	unmeasured_text(out, i, g);
}

static void
key_json(struct json_out *j, const struct clock_key *k)
{
	char name[CLOCK_NAME_MAX];

	json_uint(j, "machine", k->machine);
	if (k->sequence != 0)
		json_uint(j, "sequence", k->sequence);
	json_uint(j, "clock", k->id);
	json_string(j, "name", clock_name(name, k));
}

static void
distances_json(struct json_out *j, struct clock_graph *g)
{
	struct clock_distance *d = calloc(MAX_MACHINES, sizeof(*d));
	size_t k, n = 0;

	if (d != NULL)
		n = find_distances(g, d, MAX_MACHINES);
	json_array(j, "machines");
	for (k = 0; k < n; k++) {
		json_object(j, NULL);
		json_uint(j, "machine", d[k].machine);
		json_uint(j, "clock", d[k].clock);
		json_uint(j, "readings", d[k].readings);
		json_int(j, "first_offset_ns", d[k].first);
		json_int(j, "last_offset_ns", d[k].last);
		json_int(j, "min_offset_ns", d[k].min);
		json_int(j, "max_offset_ns", d[k].max);
		if (d[k].error != 0)
			json_uint(j, "error_ns", d[k].error);
		if (d[k].has_drift)
			json_number(j, "drift_ppm", d[k].drift_ppm);
		json_object_end(j);
	}
	json_array_end(j);
	free(d);
}

static void
graph_json(struct json_out *j, struct clock_graph *g)
{
	const struct clock_graph_clock *c;
	const struct clock_graph_edge *e;
	size_t i, n = clock_graph_clocks(g, &c);

	json_uint(j, "n_clocks", n);
	json_array(j, "clocks");
	for (i = 0; i < n && i < MAX_CLOCKS; i++) {
		json_object(j, NULL);
		key_json(j, &c[i].key);
		json_uint(j, "readings", c[i].readings);
		json_uint(j, "first_ns", c[i].first_ns);
		json_uint(j, "last_ns", c[i].last_ns);
		json_bool(j, "went_back", c[i].went_back);
		json_object_end(j);
	}
	json_array_end(j);
	n = clock_graph_edges(g, &e);
	json_uint(j, "n_edges", n);
	json_array(j, "edges");
	for (i = 0; i < n && i < MAX_EDGES; i++) {
		json_object(j, NULL);
		json_object(j, "from");
		key_json(j, &e[i].a);
		json_object_end(j);
		json_object(j, "to");
		key_json(j, &e[i].b);
		json_object_end(j);
		json_uint(j, "readings", e[i].readings);
		json_int(j, "first_offset_ns", e[i].first);
		json_int(j, "last_offset_ns", e[i].last);
		json_int(j, "min_offset_ns", e[i].min);
		json_int(j, "max_offset_ns", e[i].max);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
use_json(struct json_out *j, const struct clock_use *u)
{
	json_object(j, NULL);
	key_json(j, &u->key);
	json_uint(j, "packets", u->packets);
	json_uint(j, "unresolved", unresolved(u));
	json_uint(j, "clock_not_read", u->unknown);
	json_uint(j, "no_way", u->no_way);
	json_uint(j, "went_back", u->went_back);
	json_uint(j, "after_loss", u->lost);
	json_object_end(j);
}

void
inspect_clocks_json(struct json_out *j, const struct inspection *i)
{
	struct trace_clocks *clocks = inspection_clocks(i);
	const struct clock_uses *uses = inspection_clock_uses(i);
	struct clock_key key = trace_clocks_trace_clock(clocks);
	const struct clock_use *u;
	size_t at = 0;

	json_object(j, "clocks");
	json_object(j, "trace_clock");
	key_json(j, &key);
	json_object_end(j);
	json_uint(j, "timed_packets", uses->timed);
	json_uint(j, "unresolved_packets", uses->timed - uses->resolved);
	if (uses->resolved != 0) {
		json_int(j, "first_ns", (int64_t)uses->first_ns);
		json_int(j, "last_ns", (int64_t)uses->last_ns);
	}
	json_uint(j, "bad_snapshots", trace_clocks_bad(clocks));
	json_array(j, "used");
	while ((u = clock_uses_next(uses, &at)) != NULL)
		use_json(j, u);
	if (uses->others.packets != 0)
		use_json(j, &uses->others);
	json_array_end(j);
	distances_json(j, trace_clocks_graph(clocks));
	graph_json(j, trace_clocks_graph(clocks));
	json_object_end(j);
}
