/*
 * machine_clock: what is known of a machine's clocks: the exchange that goes
 * into traces (machine.clock_sync) and the estimate that people see
 * (machine.clock).
 */
#ifndef SERVICE_SESSION_MACHINE_CLOCK_H
#define SERVICE_SESSION_MACHINE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "transport/clock_snapshot.h"
#include "transport/compiler.h"

struct link_clock;
struct machine;

/*
 * A RESULT of the machine's relay; now: our clocks at its receipt.  Refused,
 * with a sentence in *why (static), when it cannot be true: host readings that
 * lie in the future or are older than a minute.  -1 also for lack of memory.
 */
int machine_clock_take(struct machine *m, const struct link_clock *c,
    const struct clock_snapshot *now, const char **why) MUST_CHECK;

#endif /* SERVICE_SESSION_MACHINE_CLOCK_H */
