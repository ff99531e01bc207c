#include "transport/clock/clock_exchange.h"

#include <stddef.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/wire/pb_writer.h"

/* Between the begins of bursts, however often clocks are set. */
#define BURST_PAUSE_MS 1000u
/* As good as the best: longer by less than a quarter, and this. */
#define NEAR_NS 50000u
/* The collector keeps five readings, so two exchanges, if they can be had. */
#define NEAR_WANTED 2u

void
clock_exchange_init(struct clock_exchange *x, uint64_t period_ms,
    uint64_t now_ms)
{
	memset(x, 0, sizeof(*x));
	x->period_ms = period_ms;
	x->due_ms = now_ms;
}

/* now: taken just before. */
static void
put_call(struct clock_exchange *x, enum clock_exchange_phase phase,
    const struct clock_snapshot *now, struct pb_writer *w)
{
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	size_t i, mark, n = clock_snapshot_list(now, clocks);

	x->phase = phase;
	pb_put_uint(w, SyncClockRequest_phase, phase);
	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(w, SyncClockRequest_clocks);
		pb_put_uint(w, SyncClockRequest_Clock_clock_id, clocks[i].id);
		pb_put_uint(w, SyncClockRequest_Clock_timestamp, clocks[i].ns);
		pb_nest_end(w, mark);
	}
}

static void
put_ping(struct clock_exchange *x, struct pb_writer *w)
{
	struct clock_snapshot now;

	clock_snapshot_take(&now);
	x->sent_ns = clock_snapshot_ns(&now, CLOCK_ID_BOOTTIME);
	put_call(x, CLOCK_EXCHANGE_PING, &now, w);
}

void
clock_exchange_begin(struct clock_exchange *x, uint64_t now_ms,
    struct pb_writer *w)
{
	memset(&x->burst, 0, sizeof(x->burst));
	x->near = 0;
	x->again = false;
	x->began_ms = now_ms;
	put_ping(x, w);
}

static bool
rest(struct clock_exchange *x, uint64_t due_ms)
{
	x->phase = CLOCK_EXCHANGE_RESTS;
	x->due_ms = due_ms;
	return false;
}

static bool
burst_is_over(const struct clock_exchange *x)
{
	unsigned wanted = x->burst.n < CLOCK_BURST_MAX ? NEAR_WANTED : 1;

	return clock_burst_is_over(&x->burst, UINT64_MAX) &&
	    (x->near >= wanted || x->burst.n >= CLOCK_BURST_AT_ALL);
}

/* The reply to a PING: its round trip is known, and the UPDATE is due. */
static void
take_round_trip(struct clock_exchange *x, const struct clock_snapshot *now)
{
	uint64_t took = clock_snapshot_ns(now, CLOCK_ID_BOOTTIME) - x->sent_ns;

	(void)clock_burst_add(&x->burst, took);
	if (took <= x->burst.best_ns + x->burst.best_ns / 4 + NEAR_NS)
		x->near++;
	else
		x->near = 0;
}

bool
clock_exchange_reply(struct clock_exchange *x, bool ok, uint64_t now_ms,
    struct pb_writer *w)
{
	struct clock_snapshot now;

	clock_snapshot_take(&now); /* first of all */
	if (x->again)
		return rest(x, now_ms + BURST_PAUSE_MS);
	if (!ok)
		return rest(x, now_ms + x->period_ms);
	if (x->phase == CLOCK_EXCHANGE_PING) {
		take_round_trip(x, &now);
		put_call(x, CLOCK_EXCHANGE_UPDATE, &now, w);
		return true;
	}
	if (burst_is_over(x))
		return rest(x, now_ms + x->period_ms);
	put_ping(x, w);
	return true;
}

void
clock_exchange_jumped(struct clock_exchange *x, uint64_t now_ms)
{
	uint64_t earliest = x->began_ms + BURST_PAUSE_MS;

	if (x->phase != CLOCK_EXCHANGE_RESTS)
		x->again = true;
	else
		x->due_ms = earliest > now_ms ? earliest : now_ms;
}
