/*
 * clock_exchange: how a machine lets a collector measure its clocks in
 * Perfetto's way: calls of SyncClock, a PING and an UPDATE in turn, in bursts:
 * at once, every so often, and when the machine's clocks have jumped.
 *
 * Decides which call comes next, and when; its owner makes the calls and keeps
 * the timer.  Perfetto's service takes what came last, so a burst ends with
 * exchanges that are as good as the best.
 */
#ifndef TRANSPORT_CLOCK_CLOCK_EXCHANGE_H
#define TRANSPORT_CLOCK_CLOCK_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/clock/clock_burst.h"

struct pb_writer;

enum clock_exchange_phase {
	CLOCK_EXCHANGE_RESTS,
	CLOCK_EXCHANGE_PING = 1, /* the call that waits for its reply */
	CLOCK_EXCHANGE_UPDATE = 2,
};

struct clock_exchange {
	enum clock_exchange_phase phase;
	uint64_t due_ms; /* of the next burst, while it rests */
	uint64_t period_ms;
	bool again; /* the clocks jumped while a call was under way */
	struct clock_burst burst;
	uint64_t began_ms;
	unsigned near;    /* exchanges in a row, at the end of the burst */
	uint64_t sent_ns; /* BOOTTIME in the last PING */
};

/* A burst is due at now_ms; period_ms: from the end of one to the next. */
void clock_exchange_init(struct clock_exchange *x, uint64_t period_ms,
    uint64_t now_ms);
/* Begins a burst: appends the arguments of its first call to w. */
void clock_exchange_begin(struct clock_exchange *x, uint64_t now_ms,
    struct pb_writer *w);
/*
 * The reply came; to be called at once, as the time counts.  True: the
 * arguments of the next call were appended to w; false: rests until due_ms.
 */
bool clock_exchange_reply(struct clock_exchange *x, bool ok, uint64_t now_ms,
    struct pb_writer *w) MUST_CHECK;
/* The clocks have jumped: due_ms may be sooner now. */
void clock_exchange_jumped(struct clock_exchange *x, uint64_t now_ms);

#endif /* TRANSPORT_CLOCK_CLOCK_EXCHANGE_H */
