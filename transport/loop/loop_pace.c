#include "transport/loop/loop_pace.h"

#include <stdbool.h>

/* Fewer turns in a millisecond are not worth it. */
#define TURNS_LEAST 3u
#define WINDOW_NS 1000000u

static bool
is_below(uint64_t bytes, uint64_t ns, uint64_t rate)
{
	return bytes * 1000000 < rate * ns;
}

/* Turns follow at once: whether there are many, each with little. */
static void
consider(struct loop_pace *p, uint64_t now)
{
	uint64_t ns = now - p->since_ns;

	p->since_turns++;
	p->since_bytes += p->bytes;
	if (p->largest >= LOOP_PACE_READ)
		p->since_turns = 0; /* there is nothing to gain */
	if (ns < WINDOW_NS)
		return;
	if (ns < 2 * WINDOW_NS && p->since_turns >= TURNS_LEAST &&
	    !is_below(p->since_bytes, ns, LOOP_PACE_RATE))
		p->interval_ns = LOOP_PACE_LEAST_NS;
	p->since_ns = now;
	p->since_bytes = 0;
	p->since_turns = 0;
}

/* There was a rest: how it should have been. */
static void
adjust(struct loop_pace *p, uint64_t now)
{
	if (p->largest >= LOOP_PACE_READ)
		p->interval_ns /= 2;
	else if (p->largest < LOOP_PACE_READ / 2)
		p->interval_ns *= 2;
	if (p->interval_ns > LOOP_PACE_MOST_NS)
		p->interval_ns = LOOP_PACE_MOST_NS;
	if (p->interval_ns >= LOOP_PACE_LEAST_NS &&
	    !is_below(p->bytes, now - p->turn_ns, LOOP_PACE_RATE / 2))
		return;
	p->interval_ns = 0;
	p->since_ns = now;
	p->since_bytes = 0;
	p->since_turns = 0;
}

uint64_t
loop_pace_turn(struct loop_pace *p, uint64_t now_ns)
{
	if (p->bytes > 0) {
		if (p->interval_ns > 0)
			adjust(p, now_ns);
		else
			consider(p, now_ns);
		p->turn_ns = now_ns;
		p->bytes = 0;
		p->largest = 0;
	}
	return p->interval_ns > 0 ? p->turn_ns + p->interval_ns : 0;
}
