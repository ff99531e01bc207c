/*
 * bench_fleet: what its parts share.
 */
#ifndef TESTS_BENCH_FLEET_BENCH_FLEET_H
#define TESTS_BENCH_FLEET_BENCH_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/ingest/process.h"

struct crowd;

/* Producers that are on their way in at a time. */
#define AT_ONCE 256u

struct bench {
	const char *binary;
	size_t n;
	double seconds;
	unsigned io_threads;
	struct process_daemon d;
	struct crowd *crowd;
};

const char *bench_verdict(bool met);
/* Seconds of the daemon's processor time. */
double bench_cpu(const struct bench *b);
/* Of its memory more than `before`. */
double bench_bytes_each(const struct bench *b, uint64_t before, size_t n);
/* The daemon and a crowd that has not connected; config, tls_dir: or NULL. */
void bench_start(struct bench *b, size_t producers, const char *config,
    const char *tls_dir);
void bench_stop(struct bench *b);

/* bench_doors.c */
void bench_tls(struct bench *b);
void bench_limit(struct bench *b);

#endif /* TESTS_BENCH_FLEET_BENCH_FLEET_H */
