/*
 * clock_snapshot: the six builtin clocks of a trace, read at one moment.
 */
#ifndef TRANSPORT_CLOCK_SNAPSHOT_H
#define TRANSPORT_CLOCK_SNAPSHOT_H

#include <stdint.h>

/* Ids in a trace (reference behaviour.md). */
enum clock_id {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_REALTIME_COARSE = 2,
	CLOCK_ID_MONOTONIC = 3,
	CLOCK_ID_MONOTONIC_COARSE = 4,
	CLOCK_ID_MONOTONIC_RAW = 5,
	CLOCK_ID_BOOTTIME = 6,
};

#define CLOCK_SNAPSHOT_N 6

struct clock_reading {
	uint32_t id; /* enum clock_id */
	uint64_t ns;
};

/*
 * The clocks in the order in which they were read, BOOTTIME first: what lies
 * between the first and the last is under a microsecond unless the thread was
 * interrupted; of a few tries the shortest is kept.
 */
struct clock_snapshot {
	struct clock_reading clocks[CLOCK_SNAPSHOT_N];
};

void clock_snapshot_take(struct clock_snapshot *s);
uint64_t clock_snapshot_ns(const struct clock_snapshot *s, enum clock_id id);

#endif /* TRANSPORT_CLOCK_SNAPSHOT_H */
