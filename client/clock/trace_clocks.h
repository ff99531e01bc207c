/*
 * trace_clocks: when the packets of a trace were written, in the trace clock.
 *
 * Takes every packet of a trace in order, learns from it the clocks
 * (ClockSnapshot, RemoteClockSync), the sequences' default clocks and
 * incremental timestamps, and tells each packet's time from the packets up to
 * it.  Computes as Perfetto's importer does, so that both show the same times.
 * Pure, bounded; input is untrusted.
 */
#ifndef CLIENT_CLOCK_TRACE_CLOCKS_H
#define CLIENT_CLOCK_TRACE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/clock/clock_graph.h"
#include "transport/base/compiler.h"

struct packet_facts;
struct trace_clocks;

/* Sequences whose state is kept; further ones have no default clock. */
#define TRACE_CLOCKS_MAX_SEQUENCES (1u << 18)
/* Clocks of which unit and kind are kept; further ones are plain. */
#define TRACE_CLOCKS_MAX_CLOCKS    CLOCK_GRAPH_MAX_CLOCKS

enum trace_time {
	TRACE_TIME_OK,
	TRACE_TIME_NONE,      /* the packet says no time */
	TRACE_TIME_UNKNOWN,   /* no reading of its clock up to here */
	TRACE_TIME_NO_WAY,    /* readings, but no way to the trace clock */
	TRACE_TIME_WENT_BACK, /* its clock went back: ambiguous */
	TRACE_TIME_LOST,      /* incremental, and its base was lost */
};

struct trace_moment {
	enum trace_time result;
	struct clock_at at; /* as the packet says; unset for NONE */
	uint64_t ns;        /* in the trace clock; set for OK only */
	bool increment;     /* its timestamp counts from the packet before */
};

struct trace_clocks *trace_clocks_new(void) MUST_CHECK;
void trace_clocks_free(struct trace_clocks *c);

/* Takes the next packet; of compressed ones, the inner.  -1: no memory. */
int trace_clocks_take(struct trace_clocks *c, const struct packet_facts *f,
    struct trace_moment *out) MUST_CHECK;

/* The clock that all times are in: BOOTTIME, where the trace says no other. */
struct clock_key trace_clocks_trace_clock(const struct trace_clocks *c);
enum clock_result trace_clocks_convert(struct trace_clocks *c,
    const struct clock_at *from, uint64_t *ns) MUST_CHECK;
/* Returns the graph, for reports and other conversions; borrowed. */
struct clock_graph *trace_clocks_graph(struct trace_clocks *c);
/*
 * Counts impossible clocks in snapshots: an incremental clock that is no
 * sequence's, one whose unit changed, a trace clock that does not count
 * nanoseconds, a sequence's clock without a sequence, one machine's distance
 * from itself.
 */
uint64_t trace_clocks_bad(const struct trace_clocks *c);

/* "counts from a packet that was lost"; "" for OK. */
const char *trace_time_text(enum trace_time t);

#endif /* CLIENT_CLOCK_TRACE_CLOCKS_H */
