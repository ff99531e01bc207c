#include "relay/clocks/link_clocks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/clock/clock_burst.h"
#include "transport/clock/clock_fit.h"
#include "transport/clock/clock_jumps.h"
#include "transport/clock/clock_snapshot.h"
#include "transport/link/link_clock.h"
#include "transport/loop/loop.h"

/* Time to wait for a PONG, and missing ones that end a burst. */
#define PONG_WAIT_MS 5000u
#define PONGS_LOST   3u
/* Pause between the begins of bursts, however often clocks are set. */
#define BURST_PAUSE_MS 1000u

enum clocks_state {
	CLOCKS_STOPPED,
	CLOCKS_RESTING, /* the timer is armed for the next burst */
	CLOCKS_WAITING, /* for a PONG; the timer is armed for its absence */
};

struct link_clocks {
	struct loop *loop;
	struct loop_timer *timer;
	struct clock_jumps *watch;
	struct link_clocks_ops ops;
	void *arg;
	uint64_t period_ms;

	enum clocks_state state;
	struct clock_burst burst;
	uint64_t known_ns; /* what the fit was worth before: a round trip */
	/* the burst; 0: none did since link_clocks_start() */
	uint64_t began_ms;
	unsigned lost;     /* PONGs, of this burst */
	uint32_t id;       /* of the last PING, and when it was sent */
	struct clock_snapshot before;
	struct link_clock best; /* of this burst, as a RESULT */
	bool told_best;         /* it was sent */

	struct clock_fit fit;
	uint64_t round_trip_ns;
	uint64_t measured_ms;
};

static uint64_t
boottime_ns(void)
{
	struct clock_snapshot now;

	clock_snapshot_take(&now);
	return clock_snapshot_ns(&now, CLOCK_ID_BOOTTIME);
}

static void
tell_best(struct link_clocks *c)
{
	uint8_t out[LINK_CLOCK_MAX];

	c->told_best = true;
	c->ops.send(c->arg, out, link_clock_put(out, &c->best));
}

/* Calls ops.send() last, which may call link_clocks_stop(). */
static void
send_ping(struct link_clocks *c)
{
	struct link_clock ping = { .kind = LINK_CLOCK_PING };
	uint8_t out[LINK_CLOCK_MAX];
	size_t len;

	ping.id = ++c->id;
	len = link_clock_put(out, &ping);
	c->state = CLOCKS_WAITING;
	loop_timer_set(c->timer, PONG_WAIT_MS, 0);
	clock_snapshot_take(&c->before);
	c->ops.send(c->arg, out, len);
}

static void
begin_burst(struct link_clocks *c)
{
	c->known_ns = c->fit.known ? 2 * clock_fit_uncertainty_at(&c->fit,
	    boottime_ns()) : UINT64_MAX;
	memset(&c->burst, 0, sizeof(c->burst));
	c->lost = 0;
	c->began_ms = loop_now_ms();
	send_ping(c);
}

static void
end_burst(struct link_clocks *c)
{
	c->state = CLOCKS_RESTING;
	loop_timer_set(c->timer, c->period_ms, 0);
	if (c->burst.n > 0 && !c->told_best)
		tell_best(c);
}

static void
timer_cb(void *arg)
{
	struct link_clocks *c = arg;

	switch (c->state) {
	case CLOCKS_STOPPED:
		break;
	case CLOCKS_RESTING:
		begin_burst(c);
		break;
	case CLOCKS_WAITING:
		if (++c->lost < PONGS_LOST)
			send_ping(c);
		else
			end_burst(c);
		break;
	}
}

/* All that was measured before is void, and so is a PING on its way. */
static void
jumped_cb(void *arg)
{
	struct link_clocks *c = arg;
	uint64_t since;

	c->fit.known = false;
	if (c->state == CLOCKS_STOPPED)
		return;
	since = loop_now_ms() - c->began_ms;
	if (since >= BURST_PAUSE_MS) {
		begin_burst(c);
		return;
	}
	c->state = CLOCKS_RESTING;
	loop_timer_set(c->timer, BURST_PAUSE_MS - since, 0);
}

struct link_clocks *
link_clocks_new(struct loop *l, uint64_t period_ms,
    const struct link_clocks_ops *ops, void *arg)
{
	struct link_clocks *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->ops = *ops;
	c->arg = arg;
	c->period_ms = period_ms;
	if ((c->timer = loop_timer_new(l, timer_cb, c)) == NULL ||
	    (c->watch = clock_jumps_new(l, jumped_cb, c)) == NULL) {
		link_clocks_free(c);
		return NULL;
	}
	return c;
}

void
link_clocks_free(struct link_clocks *c)
{
	if (c == NULL)
		return;
	clock_jumps_free(c->watch);
	loop_timer_free(c->timer);
	free(c);
}

void
link_clocks_start(struct link_clocks *c)
{
	/* The collector may be another one than before. */
	c->fit.known = false;
	begin_burst(c);
}

void
link_clocks_stop(struct link_clocks *c)
{
	c->state = CLOCKS_STOPPED;
	loop_timer_clear(c->timer);
}

/* False: readings that cannot be. */
static bool
measure(struct link_clocks *c, const struct clock_snapshot *host,
    const struct clock_snapshot *after, uint64_t *round_trip_ns)
{
	uint64_t from = clock_snapshot_ns(&c->before, CLOCK_ID_BOOTTIME);
	uint64_t to = clock_snapshot_ns(after, CLOCK_ID_BOOTTIME);
	uint64_t there = clock_snapshot_ns(host, CLOCK_ID_BOOTTIME);

	if (there >= (uint64_t)CLOCK_FIT_MAX_NS)
		return false;
	clock_fit_take(&c->fit, (int64_t)there - (int64_t)to,
	    (int64_t)there - (int64_t)from, to);
	c->measured_ms = loop_now_ms();
	*round_trip_ns = to - from;
	return true;
}

void
link_clocks_take(struct link_clocks *c, const uint8_t *clock, size_t len)
{
	struct clock_snapshot after;
	struct link_clock pong;
	uint64_t round_trip;
	bool first;

	clock_snapshot_take(&after); /* first of all */
	if (c->state != CLOCKS_WAITING ||
	    link_clock_parse(&pong, clock, len) != 0 ||
	    pong.kind != LINK_CLOCK_PONG || pong.id != c->id)
		return;
	first = !c->fit.known;
	if (!measure(c, &pong.host, &after, &round_trip))
		return;
	if (clock_burst_add(&c->burst, round_trip)) {
		c->best = (struct link_clock){
			.kind = LINK_CLOCK_RESULT,
			.id = c->id,
			.before = c->before,
			.host = pong.host,
			.after = after,
			.round_trip_ns = round_trip,
		};
		c->told_best = false;
		c->round_trip_ns = round_trip;
	}
	/*
	 * Told at once, so that the first packets of a trace are aligned, too.
	 */
	if (first)
		tell_best(c);
	if (c->state != CLOCKS_WAITING)
		return;
	if (clock_burst_is_over(&c->burst, c->known_ns))
		end_burst(c);
	else
		send_ping(c);
}

void
link_clocks_view(const struct link_clocks *c, struct link_clocks_view *out)
{
	memset(out, 0, sizeof(*out));
	if (!(out->known = c->fit.known))
		return;
	out->offset_ns = clock_fit_offset(&c->fit);
	out->uncertainty_ns = clock_fit_uncertainty_at(&c->fit,
	    boottime_ns());
	out->round_trip_ns = c->round_trip_ns;
	out->measured_ms = c->measured_ms;
}
