/*
 * clock_graph: turns a timestamp of any clock of a trace into one of another,
 * through the snapshots seen so far (reference clock-sync.md; RemoteClockSync
 * joins machines).
 *
 * Takes the shortest way over clocks that were read together, found by breadth
 * first search; each step uses the latest reading at or before the timestamp
 * (the first reading, when there is none).  A clock that was seen to go back
 * can be a way's target, never its source or a step between.  Sequence clocks
 * (64..127) belong to {machine, sequence}, all others to the machine.  Pure.
 * Bounded by CLOCK_GRAPH_MAX_*: readings are thinned out evenly over the trace;
 * readings left out are counted.
 */
#ifndef CLIENT_CLOCK_CLOCK_GRAPH_H
#define CLIENT_CLOCK_CLOCK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define CLOCK_GRAPH_MAX_CLOCKS 65536u
/* Readings of one pair of clocks that are kept. */
#define CLOCK_GRAPH_MAX_READINGS 65536u
/* Most steps from clock to clock; Perfetto's importer goes 4. */
#define CLOCK_GRAPH_MAX_STEPS 16u

struct clock_graph;

struct clock_key {
	uint32_t machine;  /* 0: the service's own */
	uint32_t sequence; /* of clocks 64..127; 0 for all others */
	uint32_t id;
};

struct clock_at {
	struct clock_key clock;
	uint64_t ns;
};

enum clock_result {
	CLOCK_OK,
	CLOCK_UNKNOWN,  /* the source was never read */
	CLOCK_NO_WAY,   /* no way leads from the source to the target */
	CLOCK_WENT_BACK, /* the source was seen to go back: ambiguous */
};

struct clock_graph *clock_graph_new(void) MUST_CHECK;
void clock_graph_free(struct clock_graph *g);

/* The key of a packet's clock id: fills sequence in where it counts. */
struct clock_key clock_key_of(uint32_t machine, uint32_t sequence, uint32_t id);
/* The order in which equal ways are tried: that of Perfetto's importer. */
int clock_key_compare(const struct clock_key *a, const struct clock_key *b);
/* Hash for tables in memory: differs from process to process (hash_map.h). */
uint64_t clock_key_hash(const struct clock_key *k);

/*
 * Adds one ClockSnapshot: n clocks at one moment.  Values are nanoseconds; the
 * caller resolves unit_multiplier_ns and is_incremental.  -1: no memory.
 *
 * When the same clocks were read together before, clocks with a smaller value
 * now went back; but when all values are smaller, the snapshot is an older one
 * that comes late.
 */
int clock_graph_snapshot(struct clock_graph *g, const struct clock_at *clocks,
    size_t n) MUST_CHECK;
/*
 * Adds one RemoteClockSync: from host_ns on, clock `id` of the machine is ahead
 * of the host's clock `id` by offset_ns.  An estimate: it replaces older
 * estimates that it contradicts by up to a second.  -1: no memory.
 */
int clock_graph_remote(struct clock_graph *g, uint32_t machine, uint32_t id,
    uint64_t host_ns, int64_t offset_ns) MUST_CHECK;
/* Sets, for reports, the largest error of that clock's newest estimate. */
void clock_graph_set_error(struct clock_graph *g, uint32_t machine,
    uint32_t id, uint64_t error_ns);

/*
 * Converts a time; a clock always converts into itself.  *ns is modulo 2^64: a
 * time before the target's zero is negative as an int64_t.
 */
enum clock_result clock_graph_convert(struct clock_graph *g,
    const struct clock_at *from, const struct clock_key *to, uint64_t *ns)
    MUST_CHECK;
/*
 * Stores the clocks of the way that a conversion takes, both ends included, in
 * out, which has room for CLOCK_GRAPH_MAX_STEPS + 1.  Returns their number; 0:
 * there is no way.
 */
size_t clock_graph_way(struct clock_graph *g, const struct clock_key *from,
    const struct clock_key *to, struct clock_key *out);

/* A clock, and an edge, for reports. */
struct clock_graph_clock {
	struct clock_key key;
	uint64_t readings;
	uint64_t first_ns, last_ns;
	uint64_t error_ns; /* of clock_graph_set_error(); 0: not known */
	bool went_back;
};
size_t clock_graph_clocks(const struct clock_graph *g,
    const struct clock_graph_clock **out);
struct clock_graph_edge {
	struct clock_key a, b;
	uint64_t readings;
	/*
	 * Values of b minus a: the first and last seen, the least and the most.
	 */
	int64_t first, last, min, max;
};
/* Turns an edge around: from b to a. */
struct clock_graph_edge clock_graph_turn(const struct clock_graph_edge *e);
/* Lists edges in the order of their keys; valid until the next such call. */
size_t clock_graph_edges(const struct clock_graph *g,
    const struct clock_graph_edge **out);
/* Readings that were thinned out; clocks and readings that found no room. */
void clock_graph_left_out(const struct clock_graph *g, uint64_t *thinned,
    uint64_t *left_out);

#endif /* CLIENT_CLOCK_CLOCK_GRAPH_H */
