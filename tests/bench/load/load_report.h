/* load_report: the line of JSON that a run prints. */
#ifndef TESTS_BENCH_LOAD_LOAD_REPORT_H
#define TESTS_BENCH_LOAD_LOAD_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/bench/load/fleet.h"
#include "tests/bench/load/load_totals.h"
#include "tests/bench/load/process_sample.h"

struct hostile;
struct recording_result;

/* A process at the turning points of a run. */
struct load_watch {
	bool known;
	struct process_sample begin, connected, idle, load, end;
	uint64_t peak_threads, peak_descriptors;
};

struct load_report {
	const struct fleet *fleet;
	const struct load_totals *totals;
	const struct hostile *hostile;
	const struct recording_result *recording; /* NULL: none */
	const char *ledger; /* NULL: none */
	uint64_t sequences;
	struct fleet_state at_peak;
	double connect_s, load_s, total_s;
	struct load_watch self, collector;
};

void load_report_print(const struct load_report *r, FILE *out);

#endif /* TESTS_BENCH_LOAD_LOAD_REPORT_H */
