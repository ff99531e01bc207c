/*
 * overload: what the collector leaves undone when more comes in than it can
 * take, and in which order.  Pure: it is told how long input waits for its turn
 * (loop_lag_ms()), and says which level that is.
 *
 *   1. who wants to come in waits: connections in front of the door, handshakes
 *   2. statistics and clock snapshots of traces are thinned
 *   3. reads get short: those who send most are held back most
 *   4. data is lost, but only where a config or setting says so: rings without a
 *      file, DISCARD, lossless: false.  That is no level: buffers do it, and
 *      count it, and producers over a socket wait before it comes to that.
 *
 * It goes up one level at a time, and down again when it has been calm for a
 * second.  Consumers are served all the time.
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

/* Each level is reached at twice the time of the one before it. */
#define OVERLOAD_CALM_MS 1000u
/* Of statistics and snapshots one of so many is left. */
#define OVERLOAD_KEEPS_ONE_OF 4u

/* All zero: none. */
struct overload {
	enum overload_level level;
	uint64_t lag_ms;        /* as noted last */
	uint64_t calm_since_ms; /* 0: it is not calm */
	uint64_t times[OVERLOAD_LEVELS]; /* each was reached, from below */
	uint64_t extras;        /* due while they are thinned */
	uint64_t left_out;      /* of them */
};

/*
 * Input waits lag_ms; from limit_ms on that is too long (0: never).  Returns
 * whether the level is another now.
 */
bool overload_note(struct overload *o, uint64_t lag_ms, uint64_t limit_ms,
    uint64_t now_ms);
/*
 * A statistic or snapshot is due, as it is every few seconds: whether to leave it
 * out; counts.  Not those that say something once: a session's first and last, a
 * trigger's, a clone's; nor what a consumer asks for or observes.
 */
bool overload_leaves_out(struct overload *o);
/* What waits or is thinned at this level, for people. */
const char *overload_text(enum overload_level level);

#endif /* SERVICE_LIMITS_OVERLOAD_H */
