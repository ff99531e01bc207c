/*
 * shared: one producer that commits 4 KiB chunks through shared memory.
 */
#ifndef TESTS_BENCH_INGEST_SHARED_H
#define TESTS_BENCH_INGEST_SHARED_H

#include <stdint.h>

struct process_daemon;

struct shared_result {
	double mb_per_s;        /* of chunks */
	double memcpy_mb_per_s; /* the same bytes, from and to as much memory */
	double cpu_per_gb;      /* of the daemon */
	uint64_t lost;          /* chunks */
};

/* bytes: how much to commit; buffer_kb: the ring it goes into. */
void shared_run(const struct process_daemon *d, uint64_t bytes,
    uint32_t buffer_kb, struct shared_result *out);

#endif /* TESTS_BENCH_INGEST_SHARED_H */
