/*
 * clock_graph: turns a timestamp of any clock of a trace into one of another,
 * through the snapshots seen so far (reference clock-sync.md; RemoteClockSync
 * joins machines).
 *
 * The shortest way over clocks that were read together, found breadth first; on
 * each step the latest reading at or before the timestamp (or the first, when
 * there is none).  A clock that was seen to go back is a target and never a way
 * or a source.  Sequence clocks (64..127) belong to {machine, sequence}, all
 * others to the machine.  Pure, bounded: CLOCK_GRAPH_MAX_*; what does not fit is
 * counted, and thinned out so that what stays is spread over the whole trace.
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
	CLOCK_NO_WAY,   /* nothing leads from it to the target */
	CLOCK_WENT_BACK, /* it was seen to go back: ambiguous */
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
 * One ClockSnapshot: n clocks at one moment.  Values are nanoseconds already
 * (unit_multiplier_ns and is_incremental are the caller's to resolve).  -1: no
 * memory.
 *
 * Of clocks that were read together before, those that are now less went back;
 * but when all of them are less, this is an older reading that comes late.
 */
int clock_graph_snapshot(struct clock_graph *g, const struct clock_at *clocks,
    size_t n) MUST_CHECK;
/*
 * One RemoteClockSync: machine's clock `id` is ahead of the host's of the same
 * id by offset_ns, from the moment of host_ns on.  An estimate: a newer one
 * that contradicts older ones by up to a second replaces them.
 */
int clock_graph_remote(struct clock_graph *g, uint32_t machine, uint32_t id,
    uint64_t host_ns, int64_t offset_ns) MUST_CHECK;
/* Sets, for reports, the largest error of that clock's newest estimate. */
void clock_graph_set_error(struct clock_graph *g, uint32_t machine,
    uint32_t id, uint64_t error_ns);

/*
 * A clock converts into itself whatever is known of it.  *ns is modulo 2^64: a
 * time before the target's zero is negative as an int64_t.
 */
enum clock_result clock_graph_convert(struct clock_graph *g,
    const struct clock_at *from, const struct clock_key *to, uint64_t *ns)
    MUST_CHECK;
/*
 * The clocks that this goes over, both ends included, into out, which has room
 * for CLOCK_GRAPH_MAX_STEPS + 1; how many they are, 0: there is no way.
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
/* Lists edges in the order of their keys; valid until the next call of this. */
size_t clock_graph_edges(const struct clock_graph *g,
    const struct clock_graph_edge **out);
/* Readings that were thinned out, and what found no room at all. */
void clock_graph_left_out(const struct clock_graph *g, uint64_t *thinned,
    uint64_t *left_out);

#endif /* CLIENT_CLOCK_CLOCK_GRAPH_H */
