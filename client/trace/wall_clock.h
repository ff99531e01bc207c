/*
 * wall_clock: boot clock and wall clock of a machine at one moment, out of a
 * ClockSnapshot.  Untrusted input.  Pure.
 */
#ifndef CLIENT_TRACE_WALL_CLOCK_H
#define CLIENT_TRACE_WALL_CLOCK_H

#include <stdint.h>

struct pb_field;

struct wall_clock {
	uint64_t boottime_ns;
	uint64_t realtime_ns; /* 0: not known */
};

/* Leaves out as it is where the snapshot has not both. */
void wall_clock_read(struct wall_clock *out, const struct pb_field *snapshot);

#endif /* CLIENT_TRACE_WALL_CLOCK_H */
