/*
 * load_totals: what all devices of a run did and saw, together.
 */
#ifndef TESTS_BENCH_LOAD_LOAD_TOTALS_H
#define TESTS_BENCH_LOAD_LOAD_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load/histogram.h"

/* Kinds of errors that are kept apart; the last one takes all others. */
#define LOAD_ERRORS_MAX 24u

struct load_error {
	char kind[24];
	char text[160]; /* the first one's sentence */
	uint64_t count;
};

struct load_totals {
	uint64_t connections; /* that came about */
	uint64_t packets;
	uint64_t bytes;   /* of packets */
	uint64_t chunks;
	uint64_t commits;
	uint64_t replies;
	uint64_t flushes; /* that were asked for */
	uint64_t starts, stops;
	uint64_t stalls;  /* times that shared memory was full */
	uint64_t held_back; /* times that the socket was */
	uint64_t ended_clean, ended_cut; /* by churn */
	struct histogram round_trip_us;
	struct load_error errors[LOAD_ERRORS_MAX];
	size_t n_errors;
};

void load_totals_error(struct load_totals *t, const char *kind,
    const char *text);

#endif /* TESTS_BENCH_LOAD_LOAD_TOTALS_H */
