/* clock_graph, held to the worked examples of the clock synchronisation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/clock/clock_graph.h"

#define REALTIME  clock_key_of(0, 0, 1)
#define MONOTONIC clock_key_of(0, 0, 3)
#define BOOTTIME  clock_key_of(0, 0, 6)
#define CUSTOM    clock_key_of(0, 0, 1234567)

static struct clock_graph *g;

static int
setup(void **state)
{
	return (g = clock_graph_new()) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	clock_graph_free(g);
	return 0;
}

static void
read_two(struct clock_key a, uint64_t a_ns, struct clock_key b, uint64_t b_ns)
{
	struct clock_at both[2] = { { a, a_ns }, { b, b_ns } };

	assert_int_equal(clock_graph_snapshot(g, both, 2), 0);
}

static void
read_three(struct clock_key a, uint64_t a_ns, struct clock_key b,
    uint64_t b_ns, struct clock_key c, uint64_t c_ns)
{
	struct clock_at all[3] = { { a, a_ns }, { b, b_ns }, { c, c_ns } };

	assert_int_equal(clock_graph_snapshot(g, all, 3), 0);
}

static uint64_t
convert(struct clock_key from, uint64_t ns, struct clock_key to)
{
	struct clock_at at = { from, ns };
	uint64_t out = 0;

	assert_int_equal(clock_graph_convert(g, &at, &to, &out), CLOCK_OK);
	return out;
}

static enum clock_result
refusal(struct clock_key from, struct clock_key to)
{
	struct clock_at at = { from, 1000 };
	uint64_t out = 77;
	enum clock_result r = clock_graph_convert(g, &at, &to, &out);

	assert_int_equal(out, 77);
	return r;
}

/* The first example: MONOTONIC and BOOTTIME part between 1900 and 2000. */
static void
two_clocks_that_were_read_together(void **state)
{
	static const uint64_t mono[] = { 1000, 1100, 1200, 1900, 2000, 2100 };
	static const uint64_t boot[] = { 2000, 2100, 2200, 2900, 3500, 3600 };
	size_t i;

	for (i = 0; i < 6; i++)
		read_two(MONOTONIC, mono[i], BOOTTIME, boot[i]);
	assert_int_equal(convert(MONOTONIC, 1104, BOOTTIME), 2104);
	for (i = 0; i < 6; i++) {
		assert_int_equal(convert(MONOTONIC, mono[i], BOOTTIME),
		    boot[i]);
		assert_int_equal(convert(BOOTTIME, boot[i], MONOTONIC),
		    mono[i]);
	}
	/* The clocks are 1000 apart up to the next reading, then 1500. */
	assert_int_equal(convert(MONOTONIC, 1999, BOOTTIME), 2999);
	assert_int_equal(convert(MONOTONIC, 2000, BOOTTIME), 3500);
	assert_int_equal(convert(MONOTONIC, 5000, BOOTTIME), 6500);
	/* Before the first there is only the first. */
	assert_int_equal(convert(MONOTONIC, 900, BOOTTIME), 1900);
}

/* The second example: no reading has both CUSTOM and BOOTTIME. */
static void
a_way_over_a_third_clock(void **state)
{
	read_two(CUSTOM, 1000, MONOTONIC, 1100);
	read_two(MONOTONIC, 1200, BOOTTIME, 5200);
	read_two(CUSTOM, 3000, MONOTONIC, 3200);
	read_two(MONOTONIC, 4000, BOOTTIME, 9000);
	assert_int_equal(convert(CUSTOM, 3503, MONOTONIC), 3703);
	assert_int_equal(convert(MONOTONIC, 3703, BOOTTIME), 7703);
	assert_int_equal(convert(CUSTOM, 3503, BOOTTIME), 7703);
}

static void
the_way_says_over_which_clocks_it_goes(void **state)
{
	struct clock_key way[CLOCK_GRAPH_MAX_STEPS + 1];
	struct clock_key from = CUSTOM, to = BOOTTIME;

	assert_int_equal(clock_graph_way(g, &from, &to, way), 0);
	read_two(CUSTOM, 1000, MONOTONIC, 1100);
	read_two(MONOTONIC, 1200, BOOTTIME, 5200);
	assert_int_equal(clock_graph_way(g, &from, &to, way), 3);
	assert_int_equal(way[0].id, 1234567);
	assert_int_equal(way[1].id, 3);
	assert_int_equal(way[2].id, 6);
	assert_int_equal(clock_graph_way(g, &from, &from, way), 1);
}

/* The caveat: daylight saving ends while both clocks are being read. */
static void
a_clock_that_went_back_is_a_target_only(void **state)
{
	read_two(BOOTTIME, 1000, REALTIME, 30000);
	read_two(BOOTTIME, 2000, REALTIME, 31000);
	assert_int_equal(convert(REALTIME, 30500, BOOTTIME), 1500);
	read_two(BOOTTIME, 3000, REALTIME, 25000);
	assert_int_equal(refusal(REALTIME, BOOTTIME), CLOCK_WENT_BACK);
	assert_int_equal(convert(BOOTTIME, 2500, REALTIME), 31500);
	assert_int_equal(convert(BOOTTIME, 3500, REALTIME), 25500);
	/* It converts into itself nevertheless. */
	assert_int_equal(convert(REALTIME, 5, REALTIME), 5);
}

static void
a_clock_that_went_back_is_no_way_either(void **state)
{
	read_two(CUSTOM, 100, REALTIME, 5000);
	read_two(REALTIME, 5000, BOOTTIME, 900);
	assert_int_equal(convert(CUSTOM, 150, BOOTTIME), 950);
	read_two(REALTIME, 4000, BOOTTIME, 1900);
	assert_int_equal(refusal(CUSTOM, BOOTTIME), CLOCK_NO_WAY);
	assert_int_equal(convert(CUSTOM, 150, REALTIME), 5050);
	/* Around it, as soon as there is another way. */
	read_two(CUSTOM, 100, MONOTONIC, 70);
	read_two(MONOTONIC, 70, BOOTTIME, 40);
	assert_int_equal(convert(CUSTOM, 150, BOOTTIME), 90);
}

static void
a_reading_that_comes_late_is_put_where_it_belongs(void **state)
{
	read_two(MONOTONIC, 100, BOOTTIME, 1000);
	read_two(MONOTONIC, 300, BOOTTIME, 3000);
	read_two(MONOTONIC, 200, BOOTTIME, 2000);
	assert_int_equal(convert(MONOTONIC, 150, BOOTTIME), 1050);
	assert_int_equal(convert(MONOTONIC, 250, BOOTTIME), 2050);
	assert_int_equal(convert(BOOTTIME, 3500, MONOTONIC), 800);
	/* And shows a clock that went back in between. */
	read_two(MONOTONIC, 250, BOOTTIME, 1500);
	assert_int_equal(refusal(BOOTTIME, MONOTONIC), CLOCK_WENT_BACK);
}

static void
what_nobody_read_is_unknown(void **state)
{
	assert_int_equal(refusal(MONOTONIC, BOOTTIME), CLOCK_UNKNOWN);
	read_two(MONOTONIC, 1, REALTIME, 2);
	assert_int_equal(refusal(MONOTONIC, BOOTTIME), CLOCK_NO_WAY);
	assert_int_equal(refusal(CUSTOM, MONOTONIC), CLOCK_UNKNOWN);
	/* A clock that was read alone is known and leads nowhere. */
	assert_int_equal(clock_graph_snapshot(g,
	    &(struct clock_at){ CUSTOM, 5 }, 1), 0);
	assert_int_equal(refusal(CUSTOM, MONOTONIC), CLOCK_NO_WAY);
	assert_int_equal(convert(BOOTTIME, 42, BOOTTIME), 42);
}

static void
clocks_of_sequences_do_not_mix(void **state)
{
	struct clock_key one = clock_key_of(0, 1, 64);
	struct clock_key two = clock_key_of(0, 2, 64);
	struct clock_key last = clock_key_of(0, 2, 127);

	read_two(one, 0, BOOTTIME, 1000);
	read_two(two, 0, BOOTTIME, 5000);
	read_two(last, 0, BOOTTIME, 7000);
	assert_int_equal(convert(one, 10, BOOTTIME), 1010);
	assert_int_equal(convert(two, 10, BOOTTIME), 5010);
	assert_int_equal(convert(last, 10, BOOTTIME), 7010);
	assert_int_equal(refusal(clock_key_of(0, 3, 64), BOOTTIME),
	    CLOCK_UNKNOWN);
	/* 63 and 128 belong to all. */
	read_two(clock_key_of(0, 1, 128), 3, BOOTTIME, 8000);
	assert_int_equal(convert(clock_key_of(0, 9, 128), 4, BOOTTIME), 8001);
	assert_int_equal(clock_key_of(0, 9, 63).sequence, 0);
}

static void
machines_are_joined_by_what_was_measured(void **state)
{
	struct clock_key there = clock_key_of(5, 0, 6);
	struct clock_key mono = clock_key_of(5, 0, 3);
	struct clock_key theirs = clock_key_of(5, 9, 64);

	read_two(MONOTONIC, 100, BOOTTIME, 1000);
	read_two(mono, 70000, there, 90000);
	read_two(theirs, 1, mono, 70000);
	assert_int_equal(refusal(there, BOOTTIME), CLOCK_NO_WAY);
	assert_int_equal(clock_graph_remote(g, 5, 6, 2000, 88000), 0);
	assert_int_equal(convert(there, 90500, BOOTTIME), 2500);
	assert_int_equal(convert(BOOTTIME, 2500, there), 90500);
	/* Its MONOTONIC 70000 is its BOOTTIME 90000, which is our 2000. */
	assert_int_equal(convert(theirs, 500, MONOTONIC), 1599);
	assert_int_equal(convert(theirs, 501, BOOTTIME), 2500);
	assert_int_equal(convert(theirs, 501, MONOTONIC), 1600);
}

static void
a_newer_distance_of_a_machine_counts_from_then_on(void **state)
{
	struct clock_key there = clock_key_of(7, 0, 6);
	const uint64_t s = 1000000000;

	assert_int_equal(clock_graph_remote(g, 7, 6, 10 * s, 100), 0);
	assert_int_equal(clock_graph_remote(g, 7, 6, 30 * s, -50), 0);
	assert_int_equal(convert(there, 10 * s + 105, BOOTTIME), 10 * s + 5);
	assert_int_equal(convert(there, 31 * s, BOOTTIME), 31 * s + 50);
	/* Measured anew at about the same time, and better: no clock ran back. */
	assert_int_equal(clock_graph_remote(g, 7, 6, 30 * s + 10, -90), 0);
	assert_int_equal(convert(there, 31 * s, BOOTTIME), 31 * s + 90);
	assert_int_equal(convert(there, 20 * s, BOOTTIME), 20 * s - 100);
	/* A day back is no estimate. */
	assert_int_equal(clock_graph_remote(g, 7, 6, 50 * s,
	    -(int64_t)(40 * s)), 0);
	assert_int_equal(refusal(there, BOOTTIME), CLOCK_WENT_BACK);
}

/* As Perfetto's importer goes: the clock with the lowest id first. */
static void
of_two_ways_of_the_same_length_the_lower_clock_wins(void **state)
{
	read_two(CUSTOM, 100, MONOTONIC, 200);
	read_two(MONOTONIC, 200, BOOTTIME, 3000);
	read_two(CUSTOM, 100, REALTIME, 500);
	read_two(REALTIME, 500, BOOTTIME, 4000);
	assert_int_equal(convert(CUSTOM, 100, BOOTTIME), 4000);
}

static void
a_shorter_way_wins_as_soon_as_it_is_there(void **state)
{
	read_two(CUSTOM, 100, MONOTONIC, 200);
	read_two(MONOTONIC, 200, BOOTTIME, 3000);
	assert_int_equal(convert(CUSTOM, 100, BOOTTIME), 3000);
	read_two(CUSTOM, 100, BOOTTIME, 7000);
	assert_int_equal(convert(CUSTOM, 100, BOOTTIME), 7000);
}

static void
the_latest_reading_counts_whatever_else_was_read_with_it(void **state)
{
	read_two(MONOTONIC, 100, BOOTTIME, 1000);
	read_three(MONOTONIC, 200, BOOTTIME, 2000, REALTIME, 9);
	assert_int_equal(convert(MONOTONIC, 150, BOOTTIME), 1050);
	assert_int_equal(convert(MONOTONIC, 201, BOOTTIME), 2001);
	assert_int_equal(convert(MONOTONIC, 50, BOOTTIME), 950);
	read_two(MONOTONIC, 300, BOOTTIME, 4000);
	assert_int_equal(convert(MONOTONIC, 299, BOOTTIME), 2099);
	assert_int_equal(convert(MONOTONIC, 301, BOOTTIME), 4001);
}

static void
a_clock_twice_in_a_reading_counts_once(void **state)
{
	read_three(MONOTONIC, 100, BOOTTIME, 1000, MONOTONIC, 50);
	assert_int_equal(convert(MONOTONIC, 110, BOOTTIME), 1010);
}

static void
a_time_before_the_zero_is_negative(void **state)
{
	read_two(MONOTONIC, 5000, BOOTTIME, 1000);
	assert_true((int64_t)convert(MONOTONIC, 3000, BOOTTIME) == -1000);
	/* And goes on from there as such. */
	read_two(BOOTTIME, 1000, CUSTOM, 90000);
	assert_int_equal(convert(MONOTONIC, 3000, CUSTOM), 88000);
}

static void
reports_name_each_clock_and_each_pair(void **state)
{
	const struct clock_graph_clock *clocks;
	const struct clock_graph_edge *edges;

	read_two(BOOTTIME, 1000, MONOTONIC, 900);
	read_two(BOOTTIME, 2000, MONOTONIC, 1800);
	read_three(BOOTTIME, 3000, MONOTONIC, 2850, REALTIME, 50000);
	assert_int_equal(clock_graph_remote(g, 4, 6, 3000, 7), 0);

	assert_int_equal(clock_graph_clocks(g, &clocks), 4);
	assert_int_equal(clocks[0].key.id, 6);
	assert_int_equal(clocks[0].readings, 4);
	assert_int_equal(clocks[0].first_ns, 1000);
	assert_int_equal(clocks[0].last_ns, 3000);
	assert_false(clocks[0].went_back);

	assert_int_equal(clock_graph_edges(g, &edges), 4);
	assert_int_equal(edges[0].a.id, 1);
	assert_int_equal(edges[0].b.id, 3);
	assert_int_equal(edges[1].a.id, 1);
	assert_int_equal(edges[1].b.id, 6);
	assert_int_equal(edges[2].a.id, 3);
	assert_int_equal(edges[2].b.id, 6);
	assert_int_equal(edges[2].readings, 3);
	assert_true(edges[2].first == 100 && edges[2].last == 150);
	assert_true(edges[2].min == 100 && edges[2].max == 200);
	assert_int_equal(edges[3].a.machine, 0);
	assert_int_equal(edges[3].b.machine, 4);
	assert_true(edges[3].first == 7);
}

static void
a_million_readings_are_thinned_over_the_whole_trace(void **state)
{
	uint64_t i, thinned, left_out, n = 1000000, got;

	/* A drift of one in ten thousand. */
	for (i = 0; i < n; i++)
		read_two(MONOTONIC, i * 10000, BOOTTIME, i * 10001);
	clock_graph_left_out(g, &thinned, &left_out);
	assert_true(thinned >= n - CLOCK_GRAPH_MAX_READINGS);
	assert_int_equal(left_out, 0);
	for (i = 0; i < n; i += 997) {
		got = convert(MONOTONIC, i * 10000, BOOTTIME);
		/* A kept reading lies at most 32 readings away. */
		assert_true(got <= i * 10001 && got + 32 >= i * 10001);
	}
	/* The newest is there, thinned or not. */
	assert_int_equal(convert(MONOTONIC, (n - 1) * 10000, BOOTTIME),
	    (n - 1) * 10001);
	assert_int_equal(convert(MONOTONIC, 0, BOOTTIME), 0);
}

static void
clocks_without_number_are_bounded(void **state)
{
	const struct clock_graph_clock *clocks;
	uint64_t thinned, left_out;
	uint32_t i;

	for (i = 0; i < CLOCK_GRAPH_MAX_CLOCKS + 1000; i++)
		read_two(clock_key_of(0, 0, 128 + i), 1000, BOOTTIME, 1000 + i);
	assert_int_equal(clock_graph_clocks(g, &clocks),
	    CLOCK_GRAPH_MAX_CLOCKS);
	clock_graph_left_out(g, &thinned, &left_out);
	assert_int_equal(left_out, 1001);
	assert_int_equal(convert(clock_key_of(0, 0, 128 + 500), 1003,
	    BOOTTIME), 1503);
	/* A way over the clock that all others were read with. */
	assert_int_equal(convert(clock_key_of(0, 0, 128 + 500), 1000,
	    clock_key_of(0, 0, 128 + 60000)), (uint64_t)1000 + 500 - 60000);
}

static void
a_snapshot_of_very_many_clocks_keeps_the_first(void **state)
{
	struct clock_at many[5000];
	uint64_t thinned, left_out;
	uint32_t i;

	for (i = 0; i < 5000; i++)
		many[i] = (struct clock_at){ clock_key_of(0, 0, 128 + i), i };
	assert_int_equal(clock_graph_snapshot(g, many, 5000), 0);
	clock_graph_left_out(g, &thinned, &left_out);
	assert_true(left_out > 4000);
	assert_int_equal(convert(many[0].clock, 0, many[9].clock), 9);
}

static void
a_chain_is_gone_to_its_longest(void **state)
{
	uint32_t i;

	for (i = 0; i < CLOCK_GRAPH_MAX_STEPS + 1; i++)
		read_two(clock_key_of(0, 0, 200 + i), 10,
		    clock_key_of(0, 0, 201 + i), 11);
	assert_int_equal(convert(clock_key_of(0, 0, 200), 10,
	    clock_key_of(0, 0, 200 + CLOCK_GRAPH_MAX_STEPS)),
	    10 + CLOCK_GRAPH_MAX_STEPS);
	assert_int_equal(refusal(clock_key_of(0, 0, 200),
	    clock_key_of(0, 0, 201 + CLOCK_GRAPH_MAX_STEPS)), CLOCK_NO_WAY);
}

/*
 * The naive model: all readings in a list, ways searched over a matrix.  Clocks
 * are 0..N-1; `way` is redone for each conversion, and nothing is kept.
 */
#define N_CLOCKS 7
#define N_ROWS   400

struct model {
	struct { bool has; int64_t ns; } rows[N_ROWS][N_CLOCKS];
	size_t n_rows;
	bool back[N_CLOCKS];
};

static struct clock_key
key_of(unsigned i)
{
	/* Ascending in the order in which ways are tried. */
	static const uint32_t ids[N_CLOCKS] = { 1, 3, 6, 64, 64, 128, 900 };

	return clock_key_of(0, i, ids[i]);
}

static bool
same_set(const struct model *m, size_t a, size_t b)
{
	unsigned c;

	for (c = 0; c < N_CLOCKS; c++)
		if (m->rows[a][c].has != m->rows[b][c].has)
			return false;
	return true;
}

/* The row of the same set that row `at` follows, by arrival. */
static void
model_mark(struct model *m, size_t at)
{
	size_t r = at;
	unsigned c;

	while (r-- > 0) {
		if (!same_set(m, r, at))
			continue;
		for (c = 0; c < N_CLOCKS; c++)
			if (m->rows[at][c].has &&
			    m->rows[at][c].ns < m->rows[r][c].ns)
				m->back[c] = true;
		return;
	}
}

static bool
joined(const struct model *m, unsigned a, unsigned b)
{
	size_t r;

	for (r = 0; r < m->n_rows; r++)
		if (m->rows[r][a].has && m->rows[r][b].has)
			return true;
	return false;
}

static int64_t
model_step(const struct model *m, unsigned a, unsigned b, int64_t ns)
{
	size_t r, best = N_ROWS, first = N_ROWS;

	for (r = 0; r < m->n_rows; r++) {
		if (!m->rows[r][a].has || !m->rows[r][b].has)
			continue;
		if (first == N_ROWS || m->rows[r][a].ns < m->rows[first][a].ns)
			first = r;
		if (m->rows[r][a].ns <= ns && (best == N_ROWS ||
		    m->rows[r][a].ns > m->rows[best][a].ns))
			best = r;
	}
	if (best == N_ROWS)
		best = first;
	return ns - m->rows[best][a].ns + m->rows[best][b].ns;
}

/* The first of the shortest ways in lexical order, by depth. */
static bool
model_way(const struct model *m, unsigned at, unsigned to, unsigned left,
    bool *seen, int64_t ns, int64_t *out)
{
	unsigned next;

	if (left == 0) {
		*out = ns;
		return at == to;
	}
	if (m->back[at])
		return false;
	seen[at] = true;
	for (next = 0; next < N_CLOCKS; next++) {
		if (!seen[next] && joined(m, at, next) && model_way(m, next,
		    to, left - 1, seen, model_step(m, at, next, ns), out)) {
			seen[at] = false;
			return true;
		}
	}
	seen[at] = false;
	return false;
}

static enum clock_result
model_convert(const struct model *m, unsigned from, unsigned to, int64_t ns,
    int64_t *out)
{
	bool seen[N_CLOCKS] = { false }, known = false;
	unsigned length;
	size_t r;

	*out = ns;
	if (from == to)
		return CLOCK_OK;
	for (r = 0; r < m->n_rows; r++)
		known |= m->rows[r][from].has;
	if (!known)
		return CLOCK_UNKNOWN;
	if (m->back[from])
		return CLOCK_WENT_BACK;
	for (length = 1; length < N_CLOCKS; length++)
		if (model_way(m, from, to, length, seen, ns, out))
			return CLOCK_OK;
	return CLOCK_NO_WAY;
}

static void
add_random_row(struct model *m, int64_t *now, unsigned seed)
{
	struct clock_at all[N_CLOCKS];
	size_t n = 0, r = m->n_rows++;
	unsigned c, skip, one = (unsigned)rand() % N_CLOCKS;

	for (c = 0; c < N_CLOCKS; c++) {
		/* Never a value twice: which of two counts would be chance. */
		now[c] += 1 + rand() % 1000;
		/*
		 * Where clocks are set back there is always one that is not:
		 * a reading in which all are would be one that comes late.
		 */
		if (rand() % 3 != 0 && !(seed % 3 == 0 && c == 2))
			continue;
		/* Some models have neighbours only, and long ways. */
		if (seed % 3 == 1 && c != one && c != one + 1)
			continue;
		if (seed % 3 == 0 && c < 2 && rand() % 40 == 0)
			now[c] -= 5000;
		m->rows[r][c].has = true;
		m->rows[r][c].ns = now[c];
	}
	skip = (unsigned)rand() % N_CLOCKS;
	for (c = 0; c < N_CLOCKS; c++) {
		unsigned i = (c + skip) % N_CLOCKS;

		if (m->rows[r][i].has)
			all[n++] = (struct clock_at){ key_of(i),
				(uint64_t)m->rows[r][i].ns };
	}
	/* A lone reading shows no order. */
	if (n >= 2)
		model_mark(m, r);
	assert_int_equal(clock_graph_snapshot(g, all, n), 0);
}

static void
compare_with_model(unsigned seed)
{
	static struct model m;
	int64_t now[N_CLOCKS] = { 0 }, want;
	enum clock_result expected;
	unsigned i, from, to;
	struct clock_at at;
	struct clock_key key;
	uint64_t got;

	memset(&m, 0, sizeof(m));
	srand(seed);
	for (i = 0; i < N_CLOCKS; i++)
		now[i] = 100000 + rand() % 100000;
	while (m.n_rows < N_ROWS) {
		add_random_row(&m, now, seed);
		for (i = 0; i < 5; i++) {
			from = (unsigned)rand() % N_CLOCKS;
			/* Mostly into one clock, as traces do. */
			to = i < 3 ? 2 : (unsigned)rand() % N_CLOCKS;
			at = (struct clock_at){ key_of(from),
				(uint64_t)(now[from] - rand() % 30000) };
			key = key_of(to);
			expected = model_convert(&m, from, to,
			    (int64_t)at.ns, &want);
			got = at.ns;
			assert_int_equal(clock_graph_convert(g, &at, &key,
			    &got), expected);
			if (expected == CLOCK_OK)
				assert_true((int64_t)got == want);
		}
	}
}

static void
random_graphs_agree_with_a_naive_model(void **state)
{
	unsigned seed;

	for (seed = 0; seed < 60; seed++) {
		compare_with_model(seed);
		clock_graph_free(g);
		g = clock_graph_new();
		assert_non_null(g);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_clocks_that_were_read_together),
		TEST(a_way_over_a_third_clock),
		TEST(the_way_says_over_which_clocks_it_goes),
		TEST(a_clock_that_went_back_is_a_target_only),
		TEST(a_clock_that_went_back_is_no_way_either),
		TEST(a_reading_that_comes_late_is_put_where_it_belongs),
		TEST(what_nobody_read_is_unknown),
		TEST(clocks_of_sequences_do_not_mix),
		TEST(machines_are_joined_by_what_was_measured),
		TEST(a_newer_distance_of_a_machine_counts_from_then_on),
		TEST(of_two_ways_of_the_same_length_the_lower_clock_wins),
		TEST(a_shorter_way_wins_as_soon_as_it_is_there),
		TEST(the_latest_reading_counts_whatever_else_was_read_with_it),
		TEST(a_clock_twice_in_a_reading_counts_once),
		TEST(a_time_before_the_zero_is_negative),
		TEST(reports_name_each_clock_and_each_pair),
		TEST(a_million_readings_are_thinned_over_the_whole_trace),
		TEST(clocks_without_number_are_bounded),
		TEST(a_snapshot_of_very_many_clocks_keeps_the_first),
		TEST(a_chain_is_gone_to_its_longest),
		TEST(random_graphs_agree_with_a_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
