/*
 * cpu_stats: the kernel's counts of a processor's buffer, by the text of
 * tracefs' per_cpu/cpuN/stats.
 *
 * Pure.
 */
#ifndef CLIENT_FTRACE_TRACEFS_CPU_STATS_H
#define CLIENT_FTRACE_TRACEFS_CPU_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_stats {
	uint64_t entries;
	uint64_t overrun;        /* events overwritten before they were read */
	uint64_t commit_overrun; /* events lost to interrupts in a full page */
	uint64_t bytes;
	uint64_t dropped;        /* events that found the buffer full */
	uint64_t read;
	double oldest_s; /* in seconds of the trace clock */
	double now_s;
	/*
	 * now_s in nanoseconds, exactly as far as the text goes; 0: the clock
	 * counts something else.
	 */
	uint64_t now_ns;
};

/* Events that no reader gets. */
static inline uint64_t
cpu_stats_lost(const struct cpu_stats *s)
{
	return s->overrun + s->commit_overrun + s->dropped;
}

/* Lines that are missing leave their count at 0. */
void cpu_stats_parse(struct cpu_stats *s, const char *text, size_t len);

#endif /* CLIENT_FTRACE_TRACEFS_CPU_STATS_H */
