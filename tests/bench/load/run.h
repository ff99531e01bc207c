/* run: one run of the load generator, from its options to its report. */
#ifndef TESTS_BENCH_LOAD_RUN_H
#define TESTS_BENCH_LOAD_RUN_H

#include "transport/base/compiler.h"

struct load_options;

/* The exit status: 0 where there is a report.  o is completed. */
int run(struct load_options *o) MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_RUN_H */
