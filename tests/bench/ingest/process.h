/*
 * process: the daemon under measurement, and a bare sink to compare it with.
 */
#ifndef TESTS_BENCH_INGEST_PROCESS_H
#define TESTS_BENCH_INGEST_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_ADDRESS_MAX 128

struct process_daemon {
	pid_t pid;
	char folder[64];   /* removed by process_daemon_stop() */
	char producers_tcp[PROCESS_ADDRESS_MAX];
	char producers_tls[PROCESS_ADDRESS_MAX]; /* "": none */
	char producers_unix[PROCESS_ADDRESS_MAX];
	char consumers[PROCESS_ADDRESS_MAX];
};

/*
 * Starts `binary` on private sockets and waits until it is ready.  tls_dir not
 * NULL: it listens for producers over TLS, too.
 */
void process_daemon_start(struct process_daemon *d, const char *binary,
    const char *tls_dir);
/* config: a settings file, or NULL. */
void process_daemon_start_with(struct process_daemon *d, const char *binary,
    const char *tls_dir, const char *config);
void process_daemon_stop(struct process_daemon *d);

/* Seconds of processor time of a process so far. */
double process_cpu(pid_t pid);
/*
 * Runs this process, or another, on one processor only: benchmarks that name
 * one for each side do not measure where the scheduler put them.  Does nothing
 * where there are fewer.
 */
void process_pin(pid_t pid, int cpu);
/* Kilobytes: VmRSS now, VmHWM since process_reset_peak(). */
uint64_t process_rss(pid_t pid);
uint64_t process_peak(pid_t pid);
void process_reset_peak(pid_t pid);

/* A process that accepts n connections, reads all of them and ends. */
struct process_sink {
	pid_t pid;
	int port;
	int result; /* read end of a pipe */
};
struct process_sink_result {
	uint64_t bytes;
	double cpu;         /* seconds */
	uint64_t ended_ns;  /* CLOCK_MONOTONIC of the last byte */
};
void process_sink_start(struct process_sink *s, size_t n);
void process_sink_wait(struct process_sink *s,
    struct process_sink_result *out);

#endif /* TESTS_BENCH_INGEST_PROCESS_H */
