/*
 * clock_exchange: parses the two steps in which a relay's clocks are compared
 * with ours (reference behaviour.md, "Multi-machine").
 *
 * A PING holds the relay's clocks when it was sent, the UPDATE after it its
 * clocks once the reply to the PING had come back.  With our clocks at the
 * receipt of each, the two bracket the offset between the machines' clocks
 * (machine_clock_take_exchange()).  Pure: the clock readings are the caller's.
 */
#ifndef SERVICE_PORT_CLOCK_EXCHANGE_H
#define SERVICE_PORT_CLOCK_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/machine/machine_clock.h"
#include "transport/base/compiler.h"
#include "transport/clock/clock_snapshot.h"

/* Zero-initialised is ready to use. */
struct clock_exchange {
	bool pinged; /* an UPDATE may follow */
	struct machine_clock_sample ping;
	struct machine_clock_sample update;
};

enum clock_exchange_verdict {
	CLOCK_EXCHANGE_PINGED,
	CLOCK_EXCHANGE_DONE,    /* both samples hold */
	CLOCK_EXCHANGE_TOO_LONG,/* valid, but took too long to be of use */
	CLOCK_EXCHANGE_BAD,     /* does not parse */
	CLOCK_EXCHANGE_REFUSED, /* *why says; the exchange begins anew */
};

/*
 * One SyncClockRequest, with our clocks read on its receipt.  A PING after a
 * PING replaces it.  *why is set on CLOCK_EXCHANGE_REFUSED (a static string).
 */
enum clock_exchange_verdict clock_exchange_step(struct clock_exchange *x,
    const uint8_t *request, size_t len, const struct clock_snapshot *host,
    const char **why) MUST_CHECK;

#endif /* SERVICE_PORT_CLOCK_EXCHANGE_H */
