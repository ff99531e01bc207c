/*
 * process_sample: what a process has used and holds, from /proc.
 */
#ifndef TESTS_BENCH_LOAD_PROCESS_SAMPLE_H
#define TESTS_BENCH_LOAD_PROCESS_SAMPLE_H

#include <stdint.h>
#include <sys/types.h>

#include "transport/base/compiler.h"

struct process_sample {
	double user, system; /* seconds of processor time, in ticks */
	double cpu; /* both, to the nanosecond; of threads that ended, too */
	uint64_t rss_kb, peak_kb;
	uint64_t threads;
	uint64_t descriptors;
};

/* -1: there is no such process, or it is not ours to look at. */
int process_sample_take(struct process_sample *s, pid_t pid) MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_PROCESS_SAMPLE_H */
