#include "transport/rpc/sync_clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/clock/clock_burst.h"
#include "transport/clock/clock_jumps.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_writer.h"

/* Between the begins of bursts, however often clocks are set. */
#define BURST_PAUSE_MS 1000u
/* As good as the best: longer by less than a quarter, and this. */
#define NEAR_NS 50000u
/* The collector keeps five readings, so two exchanges, if they can be had. */
#define NEAR_WANTED 2u

enum phase {
	PHASE_NONE,
	PHASE_PING = 1,
	PHASE_UPDATE = 2,
};

struct sync_clock {
	struct loop *loop;
	struct rpc_client *client; /* borrowed */
	const char *method;        /* static */
	struct loop_timer *timer;  /* armed for a burst while phase is NONE */
	struct clock_jumps *watch;
	uint64_t period_ms;

	enum phase phase; /* of the call that waits for its reply */
	bool again;       /* the clocks jumped meanwhile */
	struct clock_burst burst;
	uint64_t began_ms;
	unsigned near;    /* exchanges in a row, at the end of the burst */
	uint64_t sent_ns; /* BOOTTIME in the last PING */
};

static void reply_cb(void *arg, bool ok, bool more, const uint8_t *msg,
    size_t len, int fd);

/* now: taken just before. */
static void
call(struct sync_clock *r, enum phase phase,
    const struct clock_snapshot *now)
{
	struct clock_reading clocks[CLOCK_READINGS_MAX];
	size_t i, mark, n = clock_snapshot_list(now, clocks);
	struct pb_writer w;

	r->phase = phase;
	pb_writer_init(&w);
	pb_put_uint(&w, SyncClockRequest_phase, phase);
	for (i = 0; i < n; i++) {
		mark = pb_nest_begin(&w, SyncClockRequest_clocks);
		pb_put_uint(&w, SyncClockRequest_Clock_clock_id, clocks[i].id);
		pb_put_uint(&w, SyncClockRequest_Clock_timestamp, clocks[i].ns);
		pb_nest_end(&w, mark);
	}
	rpc_invoke(r->client, r->method, w.data, w.failed ? 0 : w.len, reply_cb,
	    r);
	pb_writer_done(&w);
}

static void
send_ping(struct sync_clock *r)
{
	struct clock_snapshot now;

	clock_snapshot_take(&now);
	r->sent_ns = clock_snapshot_ns(&now, CLOCK_ID_BOOTTIME);
	call(r, PHASE_PING, &now);
}

static void
begin_burst(struct sync_clock *r)
{
	memset(&r->burst, 0, sizeof(r->burst));
	r->near = 0;
	r->again = false;
	r->began_ms = loop_now_ms();
	send_ping(r);
}

static void
rest(struct sync_clock *r, uint64_t ms)
{
	r->phase = PHASE_NONE;
	loop_timer_set(r->timer, ms, 0);
}

static bool
burst_is_over(const struct sync_clock *r)
{
	unsigned wanted = r->burst.n < CLOCK_BURST_MAX ? NEAR_WANTED : 1;

	return clock_burst_is_over(&r->burst, UINT64_MAX) &&
	    (r->near >= wanted || r->burst.n >= CLOCK_BURST_AT_ALL);
}

/* The reply to a PING: its round trip is known, and the UPDATE is due. */
static void
ponged(struct sync_clock *r, const struct clock_snapshot *now)
{
	uint64_t took = clock_snapshot_ns(now, CLOCK_ID_BOOTTIME) - r->sent_ns;

	(void)clock_burst_add(&r->burst, took);
	if (took <= r->burst.best_ns + r->burst.best_ns / 4 + NEAR_NS)
		r->near++;
	else
		r->near = 0;
	call(r, PHASE_UPDATE, now);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct sync_clock *r = arg;
	struct clock_snapshot now;

	clock_snapshot_take(&now); /* first of all */
	if (r->again)
		rest(r, BURST_PAUSE_MS);
	else if (!ok)
		rest(r, r->period_ms);
	else if (r->phase == PHASE_PING)
		ponged(r, &now);
	else if (burst_is_over(r))
		rest(r, r->period_ms);
	else
		send_ping(r);
}

static void
timer_cb(void *arg)
{
	begin_burst(arg);
}

static void
jumped_cb(void *arg)
{
	struct sync_clock *r = arg;
	uint64_t since = loop_now_ms() - r->began_ms;

	if (r->phase != PHASE_NONE)
		r->again = true;
	else
		rest(r, since < BURST_PAUSE_MS ? BURST_PAUSE_MS - since : 0);
}

struct sync_clock *
sync_clock_new(struct loop *l, struct rpc_client *client, const char *method,
    uint64_t period_ms)
{
	struct sync_clock *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	r->loop = l;
	r->client = client;
	r->method = method;
	r->period_ms = period_ms;
	if ((r->timer = loop_timer_new(l, timer_cb, r)) == NULL ||
	    (r->watch = clock_jumps_new(l, jumped_cb, r)) == NULL) {
		sync_clock_free(r);
		return NULL;
	}
	begin_burst(r);
	return r;
}

void
sync_clock_free(struct sync_clock *r)
{
	if (r == NULL)
		return;
	clock_jumps_free(r->watch);
	loop_timer_free(r->timer);
	free(r);
}
