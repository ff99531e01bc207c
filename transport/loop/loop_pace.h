/*
 * loop_pace: how long a loop rests after a turn, so that input which comes in
 * small pieces is read together: interrupt coalescing, as network cards do it.
 *
 * A peer that sends 4 KiB at a time wakes a loop that is quick enough for each
 * piece; at some hundred megabytes a second those turns cost more than the
 * bytes.  From LOOP_PACE_RATE on, the interval between turns that bring input
 * is adapted so that the largest read of a turn stays within LOOP_PACE_READ,
 * and is LOOP_PACE_MOST_NS at most: no socket's buffer runs full meanwhile.
 * Where reads are large already the loop does not rest.
 *
 * Pure: knows neither sockets nor clocks.
 */
#ifndef TRANSPORT_LOOP_LOOP_PACE_H
#define TRANSPORT_LOOP_LOOP_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in a millisecond. */
#define LOOP_PACE_RATE (100u * 1024u)
#define LOOP_PACE_READ (96u * 1024u)
#define LOOP_PACE_LEAST_NS 125000u
#define LOOP_PACE_MOST_NS 650000u

/* All zero at first; private. */
struct loop_pace {
	uint64_t bytes; /* read in this turn by streams that are not urgent */
	size_t largest; /* the largest of those reads, in bytes */
	uint64_t interval_ns; /* between turns; 0: no rest */
	uint64_t turn_ns;     /* when the last turn with input ended */
	/* While there is no rest: the window in which input is measured. */
	uint64_t since_ns;
	uint64_t since_bytes;
	unsigned since_turns;
};

/* A read of a stream that is not urgent brought n bytes. */
static inline void
loop_pace_read(struct loop_pace *p, size_t n)
{
	p->bytes += n;
	if (n > p->largest)
		p->largest = n;
}

/* Whether loop_pace_turn() is to be called: without it there is no rest. */
static inline bool
loop_pace_is_due(const struct loop_pace *p)
{
	return p->bytes > 0 || p->interval_ns > 0;
}

/*
 * Called at the end of a turn, when the loop has nothing to do but to wait for
 * input.  Returns until when (CLOCK_MONOTONIC, in nanoseconds, as now_ns) the
 * loop should rest; 0, or a time that is past: not at all.
 */
uint64_t loop_pace_turn(struct loop_pace *p, uint64_t now_ns);

#endif /* TRANSPORT_LOOP_LOOP_PACE_H */
