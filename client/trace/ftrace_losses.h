/*
 * ftrace_losses: events that the kernel's ftrace lost, and events that were
 * asked for and not recorded, by the packets of the data source linux.ftrace.
 *
 * The data source writes the kernel's counts of each processor when it begins
 * and when it ends, and marks bundles of events before which events are
 * missing.  Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_FTRACE_LOSSES_H
#define CLIENT_TRACE_FTRACE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet_facts;
struct trace_loss;

/* The kernel's counts that are losses; all its others are not. */
enum ftrace_counter {
	FTRACE_OVERRUN,        /* overwritten before they were read */
	FTRACE_COMMIT_OVERRUN, /* an interrupt found its page being written */
	FTRACE_DROPPED,        /* found a buffer full that is not overwritten */
	FTRACE_COUNTERS,
};

/* More processors than Linux can have are not told apart. */
#define FTRACE_CPUS_MAX 8192u

struct ftrace_cpu {
	uint32_t cpu;
	uint64_t begin[FTRACE_COUNTERS]; /* of the last START_OF_TRACE */
	uint64_t lost[FTRACE_COUNTERS]; /* increase to the last END_OF_TRACE */
	uint64_t marked_bundles;
	uint64_t errors; /* places in its data that could not be read */
};

/* Sentences kept of one sequence. */
#define FTRACE_TROUBLES_MAX 64u

struct ftrace_trouble {
	bool not_recorded; /* an event; else something else at the set-up */
	char *text; /* "sched/nope: the kernel has no such event"; unescaped */
};

/*
 * Losses of one sequence, an instance of the data source.  Zeroed is ready
 * to use; ftrace_losses_done() frees it.
 */
struct ftrace_losses {
	struct ftrace_cpu *cpus; /* in the order of their numbers */
	size_t n_cpus;
	bool told_begin;   /* else counts may include time before the session */
	uint32_t statuses; /* 1 << FtraceParseStatus, of what could not be read */
	uint64_t bundles;
	struct ftrace_trouble *troubles; /* each once */
	size_t n_troubles;
};

/* Takes a packet of any kind; others than ftrace's are ignored. */
void ftrace_losses_take(struct ftrace_losses *l, const struct packet_facts *f);
void ftrace_losses_done(struct ftrace_losses *l);

/*
 * Joins the losses of another sequence that read the same buffers: what both
 * have counted is the same loss.  Troubles and bundles are not taken.  to begins
 * as zeroed, but told_begin.
 */
void ftrace_losses_join(struct ftrace_losses *to,
    const struct ftrace_losses *from);

/* Events that the kernel counted as lost, on all processors. */
uint64_t ftrace_losses_events(const struct ftrace_losses *l);

/*
 * Whether something that was asked for could not be recorded: an event, or all
 * of them, for a reason that is among the troubles.
 */
bool ftrace_losses_not_recorded(const struct ftrace_losses *l);

/*
 * Stores the causes with a count above 0 in out, up to max, in a fixed order.
 * Returns how many there are, which may be more than max.
 */
size_t ftrace_losses_list(const struct ftrace_losses *l, uint32_t machine,
    struct trace_loss *out, size_t max);

#endif /* CLIENT_TRACE_FTRACE_LOSSES_H */
