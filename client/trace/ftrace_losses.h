/*
 * ftrace_losses: what the packets of the kernel's ftrace say that it lost.
 *
 * Its data source writes the counts of each CPU when it begins and when it
 * ends, and marks the bundles of events before which some are missing.
 * Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_FTRACE_LOSSES_H
#define CLIENT_TRACE_FTRACE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet_facts;
struct trace_loss;

/* One count of the kernel's, all CPUs together. */
struct ftrace_count {
	uint64_t last; /* as told last */
	uint64_t lost; /* what came to it up to the end of a session */
};

/* Losses of one sequence; zero-initialised is ready to use. */
struct ftrace_losses {
	struct ftrace_count overrun; /* events overwritten before they were read */
	struct ftrace_count dropped; /* events that found a buffer full */
	uint64_t marked_bundles;
	bool told_begin; /* else the counts may be of longer than the session */
};

/* A packet of any kind. */
void ftrace_losses_take(struct ftrace_losses *l, const struct packet_facts *f);

/* Causes that ftrace_losses_list() tells apart. */
#define FTRACE_LOSSES_MAX 5u
/*
 * Adds what one sequence lost to out, which holds FTRACE_LOSSES_MAX and begins
 * zeroed; each cause keeps its place, and a count of 0 where there was none.
 */
void ftrace_losses_add(struct trace_loss *out,
    const struct ftrace_losses *l);

#endif /* CLIENT_TRACE_FTRACE_LOSSES_H */
