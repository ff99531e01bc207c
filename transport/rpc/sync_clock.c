#include "transport/rpc/sync_clock.h"

#include <stdbool.h>
#include <stdlib.h>

#include "transport/clock/clock_exchange.h"
#include "transport/clock/clock_jumps.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_writer.h"

struct sync_clock {
	struct rpc_client *client; /* borrowed */
	const char *method;        /* static */
	struct loop_timer *timer;  /* armed for a burst while exchange rests */
	struct clock_jumps *watch;
	struct clock_exchange exchange;
};

static void reply_cb(void *arg, bool ok, bool more, const uint8_t *msg,
    size_t len, int fd);

static void
call(struct sync_clock *r, const struct pb_writer *w)
{
	rpc_invoke(r->client, r->method, w->data, w->failed ? 0 : w->len,
	    reply_cb, r);
}

static void
begin_burst(struct sync_clock *r)
{
	struct pb_writer w;

	pb_writer_init(&w);
	clock_exchange_begin(&r->exchange, loop_now_ms(), &w);
	call(r, &w);
	pb_writer_done(&w);
}

static void
rest(struct sync_clock *r)
{
	uint64_t now = loop_now_ms(), due = r->exchange.due_ms;

	loop_timer_set(r->timer, due > now ? due - now : 0, 0);
}

static void
reply_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct sync_clock *r = arg;
	struct pb_writer w;

	pb_writer_init(&w);
	if (clock_exchange_reply(&r->exchange, ok, loop_now_ms(), &w))
		call(r, &w);
	else
		rest(r);
	pb_writer_done(&w);
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

	clock_exchange_jumped(&r->exchange, loop_now_ms());
	if (r->exchange.phase == CLOCK_EXCHANGE_RESTS)
		rest(r);
}

struct sync_clock *
sync_clock_new(struct loop *l, struct rpc_client *client, const char *method,
    uint64_t period_ms)
{
	struct sync_clock *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return NULL;
	r->client = client;
	r->method = method;
	clock_exchange_init(&r->exchange, period_ms, loop_now_ms());
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
