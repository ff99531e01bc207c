/* verify: `tributary-load verify` and `tributary-load ledger`. */
#ifndef TESTS_BENCH_LOAD_VERIFY_H
#define TESTS_BENCH_LOAD_VERIFY_H

#include "transport/base/compiler.h"

/* The exit status: 0: all is accounted for; 1: not; 2: it cannot be said. */
int verify_main(int argc, char **argv) MUST_CHECK;
/* Prints a ledger, a line of JSON for each sequence. */
int verify_ledger_main(int argc, char **argv) MUST_CHECK;

#endif /* TESTS_BENCH_LOAD_VERIFY_H */
