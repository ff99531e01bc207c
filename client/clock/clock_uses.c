#include "client/clock/clock_uses.h"

#include <stdlib.h>
#include <string.h>

#include "client/clock/trace_clocks.h"

void
clock_uses_done(struct clock_uses *u)
{
	free(u->slots);
	memset(u, 0, sizeof(*u));
}

static uint32_t
mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	return x;
}

/* Finds or makes it; at most three quarters of the slots are taken. */
static struct clock_use *
use_of(struct clock_uses *u, const struct clock_key *key)
{
	uint32_t i = mix(key->machine ^ mix(key->sequence ^ mix(key->id)));
	struct clock_use *s;

	if (u->slots == NULL && (u->slots = calloc(CLOCK_USES_MAX,
	    sizeof(*u->slots))) == NULL)
		return &u->others;
	for (;; i++) {
		s = &u->slots[i & (CLOCK_USES_MAX - 1)];
		if (s->packets == 0)
			break;
		if (s->key.id == key->id && s->key.machine == key->machine &&
		    s->key.sequence == key->sequence)
			return s;
	}
	if (u->n == CLOCK_USES_MAX / 4 * 3)
		return &u->others;
	u->n++;
	s->key = *key;
	return s;
}

void
clock_uses_take(struct clock_uses *u, const struct trace_moment *m)
{
	struct clock_use *s;

	if (m->result == TRACE_TIME_NONE)
		return;
	u->timed++;
	s = use_of(u, &m->at.clock);
	s->packets++;
	switch (m->result) {
	case TRACE_TIME_NONE:
		break;
	case TRACE_TIME_OK:
		if (u->resolved++ == 0)
			u->first_ns = u->last_ns = m->ns;
		if ((int64_t)m->ns < (int64_t)u->first_ns)
			u->first_ns = m->ns;
		if ((int64_t)m->ns > (int64_t)u->last_ns)
			u->last_ns = m->ns;
		break;
	case TRACE_TIME_UNKNOWN:
		s->unknown++;
		break;
	case TRACE_TIME_NO_WAY:
		s->no_way++;
		break;
	case TRACE_TIME_WENT_BACK:
		s->went_back++;
		break;
	case TRACE_TIME_LOST:
		s->lost++;
		break;
	}
}

const struct clock_use *
clock_uses_next(const struct clock_uses *u, size_t *at)
{
	while (u->slots != NULL && *at < CLOCK_USES_MAX) {
		const struct clock_use *s = &u->slots[(*at)++];

		if (s->packets != 0)
			return s;
	}
	return NULL;
}
