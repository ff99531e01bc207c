/*
 * tls_sink: the limits that the collector is held against over TLS, a process
 * that only does the library's part: accepts, shakes hands, reads and throws
 * away.
 */
#ifndef TESTS_BENCH_TLS_TLS_SINK_H
#define TESTS_BENCH_TLS_TLS_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tls_sink {
	pid_t pid;
	char address[64]; /* tls://127.0.0.1:PORT */
	int result;       /* read end of a pipe */
};

struct tls_sink_result {
	uint64_t bytes;
	double handshake_cpu; /* seconds, until the last handshake was done */
	double read_cpu;      /* seconds, from then on */
	uint64_t shaken_ns;   /* CLOCK_MONOTONIC of the last handshake */
	uint64_t ended_ns;    /* of the last byte */
};

/*
 * Serves n connections on the given processor until their peers closed them.
 * Each is greeted with one byte when its handshake is done: in TLS 1.3 a
 * client believes so before its certificate was looked at.
 */
void tls_sink_start(struct tls_sink *s, const char *tls_dir, size_t n,
    int cpu);
void tls_sink_wait(struct tls_sink *s, struct tls_sink_result *out);

#endif /* TESTS_BENCH_TLS_TLS_SINK_H */
