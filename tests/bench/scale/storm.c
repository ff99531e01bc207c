#include "tests/bench/scale/storm.h"

#include "transport/base/backoff.h"

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

uint64_t
storm_arrival_ms(const struct storm_rules *r, uint64_t *random)
{
	uint64_t at = 0, wait = r->wait_ms;
	unsigned failures = 0;

	if (r->patience && r->jitter)
		wait += (uint64_t)((double)chance(random) / UINT32_MAX *
		    (double)r->wait_ms);
	do {
		at += backoff_ms(++failures, r->min_retry_ms, r->max_retry_ms,
		    r->jitter ? chance(random) : 0);
	} while (at < wait);
	return at;
}

void
storm_run(struct storm *s, const struct storm_rules *r, uint32_t devices)
{
	uint32_t tenths[STORM_SECONDS * 10] = { 0 }, i;
	uint64_t random = SEED, at;

	*s = (struct storm){ .devices = devices };
	for (i = 0; i < devices; i++) {
		at = storm_arrival_ms(r, &random);
		if (at >= STORM_SECONDS * 1000) {
			s->late++;
			continue;
		}
		s->in[at / 1000]++;
		if (++tenths[at / 100] > s->most_in_100_ms)
			s->most_in_100_ms = tenths[at / 100];
	}
}
