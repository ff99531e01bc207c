/*
 * overload: load shedding: which work the collector leaves undone, and in which
 * order, when more comes in than it can take.  Pure: the level follows from how
 * long input waits for its turn (loop_lag_ms()).
 *
 *   1. newcomers wait: connections that are not accepted yet, handshakes
 *   2. statistics and clock snapshots of traces are thinned
 *   3. reads get short: peers that send most are held back most
 *   4. data is lost, but only where a config or setting says so: rings without
 *      a file, DISCARD, lossless: false.  That is no level: buffers lose and
 *      count the data, and before that producers over a socket wait.
 *
 * The level goes up by one at a time, and down again after a calm second.
 * Consumers are served all the time.
 */
#ifndef SERVICE_LIMITS_OVERLOAD_H
#define SERVICE_LIMITS_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum overload_level {
	OVERLOAD_NONE,
	OVERLOAD_DOORS,
	OVERLOAD_EXTRAS,
	OVERLOAD_INPUT,
};
#define OVERLOAD_LEVELS (OVERLOAD_INPUT + 1)

/*
 * The level goes down when the lag was below half of the level's threshold for
 * so long.
 */
#define OVERLOAD_CALM_MS 1000u
/* Statistics and snapshots are thinned to one in this many. */
#define OVERLOAD_KEEPS_ONE_OF 4u

/* All zero: no overload. */
struct overload {
	enum overload_level level;
	uint64_t lag_ms;        /* as noted last */
	uint64_t calm_since_ms; /* 0: it is not calm */
	uint64_t times[OVERLOAD_LEVELS]; /* a level was reached from below */
	uint64_t extras;        /* statistics and snapshots due while thinned */
	uint64_t left_out;      /* of those, not written */
};

/*
 * Notes that input waits lag_ms.  Each level is reached at twice the lag of
 * the one before it, the first at limit_ms (0: never).  now_ms: any monotonic
 * clock.  True: the level changed.
 */
bool overload_note(struct overload *o, uint64_t lag_ms, uint64_t limit_ms,
    uint64_t now_ms);
/*
 * Counts a periodic statistic or snapshot that is due.  True: it is to be left
 * out.  Callers do not ask for packets that are written once (a session's first
 * and last, a trigger's, a clone's), nor for answers to consumers.
 */
bool overload_skip_extra(struct overload *o);
/* The consequence of this level, for people; a static string. */
const char *overload_text(enum overload_level level);

#endif /* SERVICE_LIMITS_OVERLOAD_H */
