/* clock_series: the rows of clocks that were read together. */
#include <stdlib.h>
#include <string.h>

#include "client/clock/clock_graph_internal.h"

int
clock_series_init(struct clock_series *s, const uint32_t *columns, uint32_t n)
{
	*s = (struct clock_series){ .n = n, .stride = 1 };
	s->columns = malloc(n * sizeof(*columns));
	s->spans = calloc((size_t)n * (n - 1) / 2, sizeof(*s->spans));
	if (s->columns == NULL || s->spans == NULL) {
		clock_series_done(s);
		return -1;
	}
	memcpy(s->columns, columns, n * sizeof(*columns));
	return 0;
}

void
clock_series_done(struct clock_series *s)
{
	free(s->columns);
	free(s->spans);
	free(s->values);
	*s = (struct clock_series){ 0 };
}

uint32_t
clock_series_column(const struct clock_series *s, uint32_t clock)
{
	uint32_t lo = 0, hi = s->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->columns[mid] == clock)
			return mid;
		if (s->columns[mid] < clock)
			lo = mid + 1;
		else
			hi = mid;
	}
	return CLOCK_NONE;
}

static int64_t *
row_at(const struct clock_series *s, size_t row)
{
	return s->values + row * s->n;
}

size_t
clock_series_row(const struct clock_series *s, uint32_t column, int64_t ns)
{
	size_t lo = 0, hi = s->rows, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (row_at(s, mid)[column] <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo == 0 ? 0 : lo - 1;
}

static void
count_spans(struct clock_series *s, const int64_t *v)
{
	struct clock_span *p = s->spans;
	uint32_t a, b;
	int64_t d;

	for (a = 0; a < s->n; a++) {
		for (b = a + 1; b < s->n; b++, p++) {
			d = clock_minus(v[b], v[a]);
			if (s->readings == 0) {
				*p = (struct clock_span){ d, d, d, d };
				continue;
			}
			p->last = d;
			if (d < p->min)
				p->min = d;
			if (d > p->max)
				p->max = d;
		}
	}
	s->readings++;
}

static int
set_room(struct clock_graph *g, struct clock_series *s, size_t cap)
{
	int64_t *grown;

	if ((grown = realloc(s->values, cap * s->n * sizeof(*grown))) == NULL)
		return -1;
	g->n_values += cap * s->n;
	g->n_values -= s->cap * s->n;
	s->values = grown;
	s->cap = cap;
	return 0;
}

void
clock_series_thin(struct clock_graph *g, struct clock_series *s)
{
	size_t i, out = 0;

	if (s->rows < 3)
		return;
	for (i = 0; i < s->rows; i += 2)
		memmove(row_at(s, out++), row_at(s, i),
		    s->n * sizeof(*s->values));
	/* The newest row always stays, until the next row replaces it. */
	if (s->rows % 2 == 0) {
		memmove(row_at(s, out++), row_at(s, s->rows - 1),
		    s->n * sizeof(*s->values));
		s->loose = true;
	}
	g->thinned += s->rows - out;
	g->readings++;
	s->rows = out;
	s->stride *= 2;
	/* A realloc() that fails to shrink leaves the larger room. */
	(void)set_room(g, s, s->rows);
}

static int
make_room(struct clock_graph *g, struct clock_series *s)
{
	if (s->rows == CLOCK_GRAPH_MAX_READINGS)
		clock_series_thin(g, s);
	if (s->rows < s->cap)
		return 0;
	return set_room(g, s, s->cap < 2 ? s->cap + 1 : s->cap + s->cap / 2);
}

static int
append(struct clock_graph *g, struct clock_series *s, const int64_t *v)
{
	if (s->rows > 0 && memcmp(row_at(s, s->rows - 1), v,
	    s->n * sizeof(*v)) == 0)
		return 0;
	if (s->loose && s->rows > 0) {
		s->rows--;
		g->thinned++;
	} else if (make_room(g, s) != 0) {
		return -1;
	}
	memcpy(row_at(s, s->rows++), v, s->n * sizeof(*v));
	s->loose = ++s->since < s->stride;
	if (!s->loose)
		s->since = 0;
	g->readings++;
	return 0;
}

static bool
ascends(const struct clock_graph *g, const struct clock_series *s,
    uint32_t column)
{
	return !g->clocks[s->columns[column]].went_back;
}

static void
mark_back(struct clock_graph *g, const struct clock_series *s, uint32_t column)
{
	g->clocks[s->columns[column]].went_back = true;
	g->backs++;
}

/* Index of the row that v, all of whose clocks are late, goes before. */
static size_t
late_place(const struct clock_graph *g, const struct clock_series *s,
    const int64_t *v)
{
	size_t at = s->rows;
	uint32_t c = 0;

	while (c < s->n && !ascends(g, s, c))
		c++;
	while (at > 0 && s->rows - at < CLOCK_GRAPH_MAX_LATE &&
	    row_at(s, at - 1)[c] > v[c])
		at--;
	return at;
}

static int
insert_late(struct clock_graph *g, struct clock_series *s, const int64_t *v)
{
	size_t at = late_place(g, s, v);
	uint32_t c;

	if (s->stride > 1 || s->rows - at >= CLOCK_GRAPH_MAX_LATE ||
	    s->rows == CLOCK_GRAPH_MAX_READINGS) {
		g->left_out++;
		return 0;
	}
	for (c = 0; c < s->n; c++) {
		if (ascends(g, s, c) && (row_at(s, at)[c] < v[c] ||
		    (at > 0 && row_at(s, at - 1)[c] > v[c])))
			mark_back(g, s, c);
	}
	if (make_room(g, s) != 0)
		return -1;
	memmove(row_at(s, at + 1), row_at(s, at),
	    (s->rows - at) * s->n * sizeof(*v));
	memcpy(row_at(s, at), v, s->n * sizeof(*v));
	s->rows++;
	g->readings++;
	return 0;
}

/*
 * Packets of several writers are not in the order of time in a trace.  Where
 * every clock is before the last reading, the packet is late; where only some
 * clocks are, these were set back.
 */
int
clock_series_add(struct clock_graph *g, struct clock_series *s,
    const int64_t *v)
{
	const int64_t *last;
	uint32_t c, ascending = 0, lower = 0;

	count_spans(s, v);
	if (s->rows == 0)
		return append(g, s, v);
	last = row_at(s, s->rows - 1);
	for (c = 0; c < s->n; c++) {
		if (ascends(g, s, c)) {
			ascending++;
			lower += v[c] < last[c];
		}
	}
	if (lower > 0 && lower == ascending)
		return insert_late(g, s, v);
	for (c = 0; lower > 0 && c < s->n; c++) {
		if (ascends(g, s, c) && v[c] < last[c])
			mark_back(g, s, c);
	}
	return append(g, s, v);
}

/* Whether a row is later than v in some clock, by at most ESTIMATE_NS. */
static bool
contradicts(const int64_t *row, const int64_t *v, uint32_t n)
{
	bool newer = false;
	uint32_t c;

	for (c = 0; c < n; c++) {
		if (row[c] > v[c]) {
			newer = true;
			if (clock_minus(row[c], v[c]) < 0 ||
			    clock_minus(row[c], v[c]) > CLOCK_GRAPH_ESTIMATE_NS)
				return false;
		}
	}
	return newer;
}

int
clock_series_estimate(struct clock_graph *g, struct clock_series *s,
    const int64_t *v)
{
	while (s->rows > 0 && contradicts(row_at(s, s->rows - 1), v, s->n)) {
		s->rows--;
		s->loose = false;
		g->readings++;
	}
	return clock_series_add(g, s, v);
}
