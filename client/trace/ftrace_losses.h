/*
 * ftrace_losses: events that the kernel's ftrace lost, by the packets of the
 * data source linux.ftrace.
 *
 * The data source writes the kernel's counts of each CPU when it begins and
 * when it ends, and marks bundles of events before which events are missing.
 * Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_FTRACE_LOSSES_H
#define CLIENT_TRACE_FTRACE_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

struct packet_facts;
struct trace_loss;

/* One count of the kernel's, all CPUs together. */
struct ftrace_count {
	uint64_t last; /* as told last */
	uint64_t lost; /* increase up to each END_OF_TRACE */
};

/* Losses of one sequence; zero-initialised is ready to use. */
struct ftrace_losses {
	struct ftrace_count overrun; /* events overwritten before they were read */
	struct ftrace_count dropped; /* events that found a buffer full */
	uint64_t marked_bundles;
	bool told_begin; /* else counts may include time before the session */
};

/* Takes a packet of any kind; others than ftrace's are ignored. */
void ftrace_losses_take(struct ftrace_losses *l, const struct packet_facts *f);

/* Causes that ftrace_losses_list() tells apart. */
#define FTRACE_LOSSES_MAX 5u
/*
 * Adds the losses of one sequence to out, FTRACE_LOSSES_MAX entries that the
 * caller has zeroed before the first call; each cause has a fixed index, and a
 * count of 0 where there was none.
 */
void ftrace_losses_add(struct trace_loss *out,
    const struct ftrace_losses *l);

#endif /* CLIENT_TRACE_FTRACE_LOSSES_H */
