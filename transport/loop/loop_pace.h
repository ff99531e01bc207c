/*
 * loop_pace: how long a loop rests after a turn, so that input which comes in
 * small pieces is taken together, as network cards hold back their interrupts.
 *
 * A peer that sends 4 KiB at a time wakes a loop that is quick enough for each;
 * at some hundred megabytes a second those turns cost more than the bytes.  From
 * LOOP_PACE_RATE on, turns that bring input are so far apart that the largest
 * read of one stays within LOOP_PACE_READ, LOOP_PACE_MOST_NS at most: no socket's
 * buffer runs full meanwhile.  Where reads are large already the loop does not rest.
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
	/* Bytes of this turn's input, but for the urgent. */
	uint64_t bytes;
	size_t largest; /* read */
	uint64_t interval_ns; /* between turns; 0: they follow at once */
	uint64_t turn_ns;     /* when the last one ended */
	/* While they follow at once: what came since when. */
	uint64_t since_ns;
	uint64_t since_bytes;
	unsigned since_turns;
};

/* A read that is not urgent brought n bytes. */
static inline void
loop_pace_read(struct loop_pace *p, size_t n)
{
	p->bytes += n;
	if (n > p->largest)
		p->largest = n;
}

/* Whether loop_pace_turn() has something to say. */
static inline bool
loop_pace_is_due(const struct loop_pace *p)
{
	return p->bytes > 0 || p->interval_ns > 0;
}

/*
 * The loop has nothing to do but to wait for input.  Returns until when it should
 * not be woken by what is not urgent; 0: it may be at once.
 */
uint64_t loop_pace_turn(struct loop_pace *p, uint64_t now_ns);

#endif /* TRANSPORT_LOOP_LOOP_PACE_H */
