/*
 * pacer: a running session's producers, in a process of their own, that write
 * numbered packets at an even pace and measure how long each commit takes to
 * be answered.
 */
#ifndef TESTS_BENCH_TLS_PACER_H
#define TESTS_BENCH_TLS_PACER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PACER_PRODUCERS 16u
#define PACER_SOURCE    "pacer"

struct pacer {
	pid_t pid;
	int orders; /* write end: each byte is one */
	int result; /* read end */
};

struct pacer_result {
	uint64_t packets; /* of each producer, numbered from 0 */
	double p50_ms;    /* from sending a chunk until the answer to it */
	double p99_ms;
	double max_ms;
};

/*
 * Connects the producers, with what load_tls_use() said if address asks for
 * it, on the given processor, and returns when they are registered.
 */
void pacer_start(struct pacer *p, const char *address, int cpu);
/* A session was started: returns when all of them write. */
void pacer_go(struct pacer *p);
/* Returns when all that was written was answered. */
void pacer_stop(struct pacer *p, struct pacer_result *out);
/* The session was asked to end: returns when they have left. */
void pacer_end(struct pacer *p);

/*
 * How many of the numbered packets that p wrote are not in the trace file, in
 * order and once.
 */
uint64_t pacer_missing(int file, const struct pacer_result *r);

#endif /* TESTS_BENCH_TLS_PACER_H */
