#include "client/clock/clock_uses.h"

#include <stdlib.h>
#include <string.h>

#include "client/clock/trace_clocks.h"

void
clock_uses_done(struct clock_uses *u)
{
	hash_map_done(&u->by_key);
	free(u->all);
	memset(u, 0, sizeof(*u));
}

/* Finds or makes the clock's; `others` when there is no room for it. */
static struct clock_use *
use_of(struct clock_uses *u, const struct clock_key *key)
{
	uint64_t hash = clock_key_hash(key);
	struct clock_use *s;

	HASH_MAP_FOREACH_OF(s, &u->by_key, hash, link)
		if (clock_key_compare(&s->key, key) == 0)
			return s;
	if (u->all == NULL &&
	    (u->all = calloc(CLOCK_USES_MAX, sizeof(*u->all))) == NULL)
		return &u->others;
	if (u->by_key.n == CLOCK_USES_MAX)
		return &u->others;
	s = &u->all[u->by_key.n];
	s->key = *key;
	hash_map_put(&u->by_key, &s->link, hash);
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
	return *at < u->by_key.n ? &u->all[(*at)++] : NULL;
}
