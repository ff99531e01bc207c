/*
 * clock_snapshot: the builtin clocks of a trace, read at one moment: six of
 * the system's, and on x86 the processor's time stamp counter.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_SNAPSHOT_H
#define TRANSPORT_CLOCK_CLOCK_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

/* Ids in a trace (reference behaviour.md). */
enum clock_id {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_REALTIME_COARSE = 2,
	CLOCK_ID_MONOTONIC = 3,
	CLOCK_ID_MONOTONIC_COARSE = 4,
	CLOCK_ID_MONOTONIC_RAW = 5,
	CLOCK_ID_BOOTTIME = 6,
	CLOCK_ID_TSC = 9, /* in ticks */
};

#define CLOCK_SNAPSHOT_N 6
/* With the time stamp counter. */
#define CLOCK_READINGS_MAX (CLOCK_SNAPSHOT_N + 1)

struct clock_reading {
	uint32_t id; /* enum clock_id */
	uint64_t ns; /* of CLOCK_ID_TSC: ticks */
};

/*
 * The clocks in the order in which they were read, BOOTTIME first.  From the
 * first to the last reading it takes under a microsecond, unless the thread was
 * interrupted; of a few tries the shortest is kept.
 */
struct clock_snapshot {
	struct clock_reading clocks[CLOCK_SNAPSHOT_N];
	/*
	 * Apart from the others: its ticks are no nanoseconds, and those of two
	 * machines are of different length.  0: this processor has none.
	 */
	uint64_t tsc;
};

void clock_snapshot_take(struct clock_snapshot *s);
/* The reading of a clock, in ns; 0: not in s, as the time stamp counter. */
uint64_t clock_snapshot_ns(const struct clock_snapshot *s, enum clock_id id);
/* Writes the reading of every clock that a trace has.  Returns how many. */
size_t clock_snapshot_list(const struct clock_snapshot *s,
    struct clock_reading out[CLOCK_READINGS_MAX]);

#endif /* TRANSPORT_CLOCK_CLOCK_SNAPSHOT_H */
