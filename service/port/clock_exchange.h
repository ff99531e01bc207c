/*
 * clock_exchange: the two steps by which a relay's clocks are laid beside
 * ours (reference behaviour.md, "Multi-machine").
 *
 * A PING holds the relay's clocks when it was sent, the UPDATE after it its
 * clocks once the reply to the PING had come back.  With our clocks at the
 * receipt of each, the two bracket the distance between the machines
 * (machine_clock_take_exchange()).  Pure: bytes and our reading in, a verdict
 * out.
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
	CLOCK_EXCHANGE_TOO_LONG,/* in order, but not to be used */
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
