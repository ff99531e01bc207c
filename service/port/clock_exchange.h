/*
 * clock_exchange: the two steps by which a relay's clocks are laid beside
 * ours (reference behaviour.md, "Multi-machine").
 *
 * A PING holds the relay's clocks when it was sent, the UPDATE after it its
 * clocks once the reply to the PING had come back.  With our clocks at the
 * receipt of each, the two bracket the distance between the machines.  Pure:
 * bytes and our reading in, a verdict out.
 */
#ifndef SERVICE_PORT_CLOCK_EXCHANGE_H
#define SERVICE_PORT_CLOCK_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/clock_snapshot.h"
#include "transport/compiler.h"

struct pb_writer;

/* Clocks of one message; a relay sends seven. */
#define CLOCK_EXCHANGE_CLOCKS_MAX 16u

/* An exchange that took longer says nothing about the clocks. */
#define CLOCK_EXCHANGE_LONGEST_NS 10000000000ull

struct clock_sample {
	struct clock_reading client[CLOCK_EXCHANGE_CLOCKS_MAX];
	size_t n_client;
	struct clock_snapshot host;
};

/* Zero-initialised is ready to use. */
struct clock_exchange {
	bool pinged; /* an UPDATE may follow */
	struct clock_sample ping;
	struct clock_sample update;
};

enum clock_exchange_verdict {
	CLOCK_EXCHANGE_PINGED,
	CLOCK_EXCHANGE_DONE,    /* both samples hold; encode them */
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

/* After CLOCK_EXCHANGE_DONE: the packet for traces, a whole TracePacket. */
void clock_exchange_encode(const struct clock_exchange *x, struct pb_writer *w,
    int32_t uid, uint32_t machine);

#endif /* SERVICE_PORT_CLOCK_EXCHANGE_H */
