/*
 * machine_clock: what is known of a machine's clocks: the exchange that goes
 * into traces (machine.clock_sync) and the estimate that people see
 * (machine.clock).
 *
 * A trace importer takes for the distance of two clocks the middle between two
 * round trips: client, host, client and host, client, host.  Of an exchange
 * only the shorter one is worth believing, and what was measured before may be
 * better than both; so readings that the formula wants and nobody took are
 * filled in such that it gives what is known to be best, for every clock.
 */
#ifndef SERVICE_MACHINE_MACHINE_CLOCK_H
#define SERVICE_MACHINE_MACHINE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/clock/clock_snapshot.h"

struct link_clock;
struct machine;

/* A slower exchange says nothing about clocks. */
#define MACHINE_CLOCK_LONGEST_NS 10000000000ull
/*
 * Age of the measurement in traces after which a worse one replaces it: a
 * little less than the period of Perfetto's relay.
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
	struct clock_snapshot host; /* when that arrived */
};

/*
 * PING and UPDATE of a RelayPort, in the order of time: client, host, client,
 * host.  Without BOOTTIME of the client it goes into traces as it is.
 */
int machine_clock_take_exchange(struct machine *m,
    const struct machine_clock_sample *ping,
    const struct machine_clock_sample *update, const char **why) MUST_CHECK;

#endif /* SERVICE_MACHINE_MACHINE_CLOCK_H */
