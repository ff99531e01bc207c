#include "transport/clock/clock_snapshot.h"

#include <string.h>
#include <time.h>

#define CLOCK_SNAPSHOT_TRIES   4
#define CLOCK_SNAPSHOT_GOOD_NS 2000u

static const struct {
	enum clock_id id;
	clockid_t clock;
} builtin_clocks[CLOCK_SNAPSHOT_N] = {
	{ CLOCK_ID_BOOTTIME, CLOCK_BOOTTIME },
	{ CLOCK_ID_REALTIME_COARSE, CLOCK_REALTIME_COARSE },
	{ CLOCK_ID_MONOTONIC_COARSE, CLOCK_MONOTONIC_COARSE },
	{ CLOCK_ID_REALTIME, CLOCK_REALTIME },
	{ CLOCK_ID_MONOTONIC, CLOCK_MONOTONIC },
	{ CLOCK_ID_MONOTONIC_RAW, CLOCK_MONOTONIC_RAW },
};

static uint64_t
read_clock(clockid_t clock)
{
	struct timespec ts = { 0, 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Perfetto's service and relay read it on x86-64 alone. */
static uint64_t
read_tsc(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* Returns how long the reading took, in ns of BOOTTIME. */
static uint64_t
snapshot_once(struct clock_snapshot *s)
{
	int i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		s->clocks[i].id = builtin_clocks[i].id;
		s->clocks[i].ns = read_clock(builtin_clocks[i].clock);
	}
	s->tsc = read_tsc();
	return read_clock(CLOCK_BOOTTIME) - s->clocks[0].ns;
}

void
clock_snapshot_take(struct clock_snapshot *s)
{
	struct clock_snapshot other;
	uint64_t best, took;
	int i;

	best = snapshot_once(s);
	for (i = 1; i < CLOCK_SNAPSHOT_TRIES && best > CLOCK_SNAPSHOT_GOOD_NS;
	     i++) {
		took = snapshot_once(&other);
		if (took < best) {
			best = took;
			*s = other;
		}
	}
}

uint64_t
clock_snapshot_ns(const struct clock_snapshot *s, enum clock_id id)
{
	int i;

	for (i = 0; i < CLOCK_SNAPSHOT_N; i++) {
		if (s->clocks[i].id == (uint32_t)id)
			return s->clocks[i].ns;
	}
	return 0;
}

size_t
clock_snapshot_list(const struct clock_snapshot *s,
    struct clock_reading out[CLOCK_READINGS_MAX])
{
	memcpy(out, s->clocks, sizeof(s->clocks));
	if (s->tsc == 0)
		return CLOCK_SNAPSHOT_N;
	out[CLOCK_SNAPSHOT_N] = (struct clock_reading){ CLOCK_ID_TSC, s->tsc };
	return CLOCK_READINGS_MAX;
}
