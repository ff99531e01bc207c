/*
 * machine_clock: keeps a machine's clock exchange that goes into traces
 * (machine.clock_sync) and the estimated offset that people see
 * (machine.clock).
 *
 * A trace importer computes the offset of two clocks as the middle between two
 * round trips: client, host, client and host, client, host.  Of an exchange
 * only the shorter round trip is accurate, and an earlier measurement may be
 * better than both.  So readings that the formula needs and that were not taken
 * are synthesised, such that it yields the best known offset for every clock.
 *
 * An importer does not take readings that are older than the last ones.  So the
 * exchange is kept in a second form (machine.clock_repeat) for where it is
 * repeated, behind the first one or without it: both readings are the last
 * ones, and give the same offsets.
 */
#ifndef SERVICE_MACHINE_MACHINE_CLOCK_H
#define SERVICE_MACHINE_MACHINE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/clock/clock_snapshot.h"

struct link_clock;
struct machine;

/* An exchange that takes longer is not used. */
#define MACHINE_CLOCK_LONGEST_NS 10000000000ull
/*
 * Age of the measurement in traces after which a less accurate one replaces it:
 * a little less than the period of Perfetto's relay.
 */
#define MACHINE_CLOCK_RENEW_NS 20000000000ull

/*
 * A RESULT of the machine's relay; now: our clocks at its receipt.  Refused,
 * with a sentence in *why (static), when it cannot be true: host readings that
 * lie in the future or are older than a minute.  -1 also for lack of memory.
 */
int machine_clock_take(struct machine *m, const struct link_clock *c,
    const struct clock_snapshot *now, const char **why) MUST_CHECK;

/* Clocks of a machine; a relay of Perfetto's sends seven. */
#define MACHINE_CLOCKS_MAX 16u
struct machine_clock_sample {
	struct clock_reading client[MACHINE_CLOCKS_MAX];
	size_t n_client;
	struct clock_snapshot host; /* our clocks at its receipt */
};
/* The client's reading of a clock; NULL: there is none. */
const struct clock_reading *machine_clock_find(
    const struct machine_clock_sample *s, uint32_t id);

/*
 * PING and UPDATE of a RelayPort, in the order of time: client, host, client,
 * host.  Without BOOTTIME of the client it goes into traces as it is.
 */
int machine_clock_take_exchange(struct machine *m,
    const struct machine_clock_sample *ping,
    const struct machine_clock_sample *update, const char **why) MUST_CHECK;

#endif /* SERVICE_MACHINE_MACHINE_CLOCK_H */
