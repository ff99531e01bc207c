/*
 * idle: what many producers cost that are connected and do nothing.
 */
#ifndef TESTS_BENCH_INGEST_IDLE_H
#define TESTS_BENCH_INGEST_IDLE_H

#include <stddef.h>

struct process_daemon;

struct idle_result {
	double bytes_each;    /* resident in the daemon */
	double early_us;      /* median connect of the 50 around the 100th */
	double late_us;       /* median connect of the last 50 */
	double total_seconds; /* for all of them */
	double cpu_seconds;   /* of the daemon, for all of them */
};

/*
 * Connects n producers over TCP, one after the other, each with
 * InitializeConnection, GetAsyncCommand and one RegisterDataSource, and closes
 * them again.
 */
void idle_run(const struct process_daemon *d, size_t n,
    struct idle_result *out);

#endif /* TESTS_BENCH_INGEST_IDLE_H */
