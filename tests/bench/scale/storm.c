#include "tests/bench/scale/storm.h"

#include <stdlib.h>

#define SEED 20u

/* splitmix64 */
static uint32_t
chance(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

static uint32_t
draw(const struct storm_rules *r, uint64_t *state)
{
	return r->jitter ? chance(state) : 0;
}

uint64_t
storm_arrival_ms(const struct storm_rules *r, uint64_t *state)
{
	static const char *const collectors[] = { "its own", "another" };
	struct choice c;
	uint64_t now = 0;
	size_t own;
	char err[256];

	if (choice_init(&c, "device", collectors, r->back_ms > 0 ? 1 : 2,
		&r->times, err, sizeof(err)) != 0)
		abort();
	own = choice_place(&c);
	choice_linked(&c, 0);
	do
		now += choice_ended(&c, true, now, draw(r, state));
	while (choice_place(&c) == own &&
	    (r->back_ms == 0 || now < r->back_ms));
	return now;
}

void
storm_run(struct storm *s, const struct storm_rules *r, uint32_t devices)
{
	uint32_t tenths[STORM_SECONDS * 10] = { 0 }, i;
	uint64_t state = SEED, at;

	*s = (struct storm){ .devices = devices };
	for (i = 0; i < devices; i++) {
		at = storm_arrival_ms(r, &state);
		if (at >= STORM_SECONDS * 1000) {
			s->late++;
			continue;
		}
		s->in[at / 1000]++;
		if (++tenths[at / 100] > s->most_in_100_ms)
			s->most_in_100_ms = tenths[at / 100];
	}
}
