/*
 * process_stats: what the kernel says of this process: processor time, memory,
 * descriptors, threads, and its start.  Reads /proc/self; where that is not to
 * be had, what it would say is 0.
 */
#ifndef TRANSPORT_PROCESS_PROCESS_STATS_H
#define TRANSPORT_PROCESS_PROCESS_STATS_H

#include <stdint.h>

#include "transport/base/compiler.h"

struct process_stats {
	uint64_t cpu_ns; /* user and system */
	uint64_t resident_bytes;
	uint64_t virtual_bytes;
	uint64_t open_fds;
	uint64_t max_fds;
	uint64_t start_ns; /* CLOCK_REALTIME; the same in each answer */
	uint64_t threads;
};

void process_stats_read(struct process_stats *out);

/*
 * Takes the text of /proc/PID/stat.  page: bytes of one.  start_ticks: clock
 * ticks from the machine's start to the process's.  -1: no such text.  Pure.
 */
int process_stats_parse(const char *text, uint64_t page,
    struct process_stats *out, uint64_t *start_ticks) MUST_CHECK;

#endif /* TRANSPORT_PROCESS_PROCESS_STATS_H */
