/*
 * probe: a process that asks the daemon something small again and again, and
 * says how long it waited for its answers: what an operator feels.
 */
#ifndef TESTS_BENCH_FLEET_PROBE_H
#define TESTS_BENCH_FLEET_PROBE_H

#include <stddef.h>
#include <sys/types.h>

struct probe {
	pid_t pid;
	int result; /* read end of a pipe */
	int stop;   /* write end of another */
};

struct probe_result {
	size_t asked;
	double p50_ms, p99_ms, max_ms;
};

/*
 * On the consumer's port: the list of sessions (QueryServiceState without
 * producers), capabilities and statistics in turns, every `every_ms`.
 */
void probe_start(struct probe *p, const char *consumers, unsigned every_ms);
void probe_stop(struct probe *p, struct probe_result *out);

#endif /* TESTS_BENCH_FLEET_PROBE_H */
