#include "service/ring_memory/ring_ahead.h"

#include <string.h>
#include <unistd.h>

/* Bytes to make ahead, at the rate since the populator was last asked. */
static uint64_t
distance(const struct ring_ahead *a, uint64_t reached, uint64_t now_ms)
{
	uint64_t ms = now_ms > a->asked_ms ? now_ms - a->asked_ms : 1;
	uint64_t bytes = (reached - a->asked) * RING_AHEAD_MS / ms;

	return bytes < RING_AHEAD_LEAST ? RING_AHEAD_LEAST :
	    bytes > RING_AHEAD_MOST ? RING_AHEAD_MOST : bytes;
}

void
ring_ahead_ask(struct ring_ahead *a, struct populator *p,
    const struct tb_memory *m, uint64_t now_ms)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t ahead = distance(a, m->reached, now_ms) / page * page;
	uint64_t begin = m->reached / page * page;

	if (m->reached == 0)
		return;
	if (m->size < RING_AHEAD_FROM) {
		a->due = UINT64_MAX;
		return;
	}
	a->asked = m->reached;
	a->asked_ms = now_ms;
	a->due = m->reached + ahead / 2;
	if (ahead > m->size - begin)
		ahead = m->size - begin;
	populator_ask(p, &a->job, m->ring + begin, m->ring + begin + ahead);
}

void
ring_ahead_stop(struct ring_ahead *a, struct populator *p)
{
	populator_drop(p, &a->job);
	memset(a, 0, sizeof(*a));
}
