/*
 * bench_tracing: what an event costs the program that writes it with
 * libtributary, beside the clock's own cost and a limit: the clock, and
 * memcpy() of as many bytes as an event has.
 *
 *	TRIBUTARYD=path/to/tributaryd bench_tracing [ROUNDS]
 *
 * TRACED in the environment: the script tests/peers/fetch puts beside
 * Perfetto's programs; its traced takes the events in a second table.
 *
 * Figures are processor time of the writing thread for each event.  A round
 * measures each row and the limit in turns, 1000 events at a time; between
 * rounds all that was written reaches the service.  Ratios are medians over the
 * rounds of a row's figure divided by the limit's of the same round.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tributary/tributary.h>
#include <unistd.h>

#include "tests/bench/tracing/events.h"
#include "tests/bench/tracing/events_session.h"
#include "tests/load/load_conn.h"

#define ROUNDS 300
#define ROUNDS_MAX 10000
#define FLUSH_MS 10000
#define THREADS 8

enum row {
	CLOCK,
	CLOCK_MONO,
	LIMIT,
	BEGIN,
	END,
	BEGIN_ARGUMENT,
	THREADS_BEGIN,
	THREADS_END,
	THREADS_BEGIN_ARGUMENT,
	ROWS,
};

static const struct {
	const char *name;
	const char *aim;
} rows[ROWS] = {
	[CLOCK] = { "CLOCK_BOOTTIME alone", "" },
	[CLOCK_MONO] = { "CLOCK_MONOTONIC alone", "" },
	[LIMIT] = { "limit: the clock and 12 bytes", "" },
	[BEGIN] = { "begin of a slice", "80 ns" },
	[END] = { "its end", "" },
	[BEGIN_ARGUMENT] = { "begin with an integer argument", "110 ns" },
	[THREADS_BEGIN] = { "8 threads: begin", "1.2 of one's" },
	[THREADS_END] = { "8 threads: end", "1.2 of one's" },
	[THREADS_BEGIN_ARGUMENT] = { "8 threads: with an argument",
	    "1.2 of one's" },
};

struct samples {
	double ns[ROWS][ROUNDS_MAX];
	size_t n;
};

/* ---- One thread ---- */

static void
one_round(struct samples *s)
{
	size_t i = s->n;
	double end;

	s->ns[CLOCK][i] = events_clock(CLOCK_BOOTTIME);
	s->ns[CLOCK_MONO][i] = events_clock(CLOCK_MONOTONIC);
	s->ns[LIMIT][i] = events_limit();
	events_slices(&s->ns[BEGIN][i], &s->ns[END][i]);
	events_slices_with_argument(&s->ns[BEGIN_ARGUMENT][i], &end);
}

static void
flush(const struct events_session *session)
{
	if (!tributary_flush(FLUSH_MS))
		load_die("%s took no events", session->name);
}

/* ---- Several threads ---- */

struct crowd {
	pthread_barrier_t barrier;
	pthread_mutex_t lock;
	bool over;
	double begin, end, begin_argument; /* sums of all threads */
};

static void *
one_of_crowd(void *arg)
{
	struct crowd *c = arg;
	double begin, end, begin_argument, end2;

	for (;;) {
		pthread_barrier_wait(&c->barrier);
		if (c->over)
			return NULL;
		events_slices(&begin, &end);
		events_slices_with_argument(&begin_argument, &end2);
		pthread_mutex_lock(&c->lock);
		c->begin += begin;
		c->end += end;
		c->begin_argument += begin_argument;
		pthread_mutex_unlock(&c->lock);
		pthread_barrier_wait(&c->barrier);
	}
}

static void
crowd_start(struct crowd *c, pthread_t threads[THREADS])
{
	unsigned i;

	memset(c, 0, sizeof(*c));
	pthread_barrier_init(&c->barrier, NULL, THREADS + 1);
	pthread_mutex_init(&c->lock, NULL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, one_of_crowd, c) != 0)
			load_die("no thread");
}

static void
crowd_round(struct crowd *c, struct samples *s)
{
	c->begin = c->end = c->begin_argument = 0;
	pthread_barrier_wait(&c->barrier);
	pthread_barrier_wait(&c->barrier);
	s->ns[THREADS_BEGIN][s->n] = c->begin / THREADS;
	s->ns[THREADS_END][s->n] = c->end / THREADS;
	s->ns[THREADS_BEGIN_ARGUMENT][s->n] = c->begin_argument / THREADS;
}

static void
crowd_end(struct crowd *c, pthread_t threads[THREADS])
{
	unsigned i;

	c->over = true;
	pthread_barrier_wait(&c->barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&c->barrier);
	pthread_mutex_destroy(&c->lock);
}

/* ---- Bytes ---- */

/* Of a begin and an end in the service's buffer, on average. */
static double
bytes_of_event(struct events_session *session)
{
	double begin, end;
	uint64_t before, after;
	unsigned i, n = 100;

	flush(session);
	before = events_session_bytes(session);
	for (i = 0; i < n; i++) {
		events_slices(&begin, &end);
		flush(session);
	}
	after = events_session_bytes(session);
	return (double)(after - before) / (2.0 * n * EVENTS);
}

/* ---- Results ---- */

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(const double *v, size_t n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted[n / 2];
}

static double
median_ratio(const double *a, const double *b, size_t n)
{
	double ratios[ROUNDS_MAX];
	size_t i;

	for (i = 0; i < n; i++)
		ratios[i] = a[i] / b[i];
	return median(ratios, n);
}

static void
print_rows(const struct samples *s)
{
	unsigned row;

	for (row = 0; row < ROWS; row++)
		printf("| %s | %.1f | %.2f | %s |\n", rows[row].name,
		    median(s->ns[row], s->n),
		    median_ratio(s->ns[row], s->ns[LIMIT], s->n),
		    rows[row].aim);
	printf("| 8 threads, of one thread: begin | | %.2f | 1.2 |\n",
	    median_ratio(s->ns[THREADS_BEGIN], s->ns[BEGIN], s->n));
	printf("| 8 threads, of one thread: argument | | %.2f | 1.2 |\n",
	    median_ratio(s->ns[THREADS_BEGIN_ARGUMENT],
	    s->ns[BEGIN_ARGUMENT], s->n));
}

static void
measure_crowd(struct events_session *session, struct samples *s, size_t n)
{
	pthread_t threads[THREADS];
	struct crowd c;

	crowd_start(&c, threads);
	for (s->n = 0; s->n < n; s->n++) {
		one_round(s);
		flush(session);
		crowd_round(&c, s);
		flush(session);
	}
	crowd_end(&c, threads);
}

static void
measure(const char *program, bool is_traced, size_t n)
{
	static struct samples s;
	struct events_session session;

	events_session_open(&session, program, is_traced);
	printf("\nInto %s, %zu rounds of %u events:\n\n", session.name, n,
	    EVENTS);
	printf("| | ns | of the limit | aim |\n|---|---|---|---|\n");
	measure_crowd(&session, &s, n);
	print_rows(&s);
	printf("| disabled, with an argument | %.2f | | 1 ns |\n",
	    events_disabled());
	printf("| bytes of a begin and an end, on average | %.1f | | 12 |\n",
	    bytes_of_event(&session));
	if (events_evaluated() != 0)
		load_die("arguments of disabled events were evaluated");
	events_session_close(&session);
}

int
main(int argc, char **argv)
{
	const char *ours = getenv("TRIBUTARYD"), *traced = getenv("TRACED");
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;

	if (ours == NULL || n < 1 || n > ROUNDS_MAX)
		load_die("usage: TRIBUTARYD=path/to/tributaryd bench_tracing "
		    "[ROUNDS, up to %d]", ROUNDS_MAX);
	measure(ours, false, n);
	if (traced != NULL && access(traced, X_OK) == 0)
		measure(traced, true, n);
	return 0;
}
