#include "service/front/overload_watch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/front/listeners.h"
#include "service/limits/overload.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/process/sd_notify.h"
#include "transport/stream/io_pool.h"

/* Period of the watch under load, in which some connections are let in. */
#define TICK_MS 100u

struct overload_watch {
	struct loop *loop;
	struct io_pool *io; /* or NULL */
	struct overload *overload;
	struct listeners *doors;
	uint32_t limit_ms;
	struct loop_timer *tick;
	struct log_limit log;
};

static void
tell(struct overload_watch *w)
{
	const struct overload *o = w->overload;
	char status[256];

	if (o->level == OVERLOAD_NONE) {
		log_limited(&w->log, loop_now_ms(), LOG_LEVEL_INFO,
		    "no longer overloaded");
		(void)sd_notify_send("STATUS=");
		return;
	}
	log_limited(&w->log, loop_now_ms(), LOG_LEVEL_WARN,
	    "overloaded (input waits %llu ms for its turn): %s",
	    (unsigned long long)o->lag_ms, overload_text(o->level));
	snprintf(status, sizeof(status), "STATUS=overloaded: %s",
	    overload_text(o->level));
	(void)sd_notify_send(status);
}

static enum loop_hold
hold_at(enum overload_level level)
{
	switch (level) {
	case OVERLOAD_NONE:
		return LOOP_HOLD_NOTHING;
	case OVERLOAD_DOORS:
	case OVERLOAD_EXTRAS:
		return LOOP_HOLD_SLOW;
	case OVERLOAD_INPUT:
		return LOOP_HOLD_READS;
	}
	return LOOP_HOLD_NOTHING;
}

static void
hold_back(struct overload_watch *w, enum loop_hold hold)
{
	loop_hold_back(w->loop, hold);
	if (w->io != NULL)
		io_pool_hold_back(w->io, hold);
}

/* With I/O threads, input waits for them first, and then for the loop. */
static uint64_t
lag_ms(const struct overload_watch *w)
{
	uint64_t ms = loop_lag_ms(w->loop);

	return w->io != NULL ? ms + io_pool_lag_ms(w->io) : ms;
}

static void
look(struct overload_watch *w)
{
	const struct overload *o = w->overload;
	uint64_t lag = lag_ms(w);

	if (overload_note(w->overload, lag, w->limit_ms, loop_now_ms())) {
		tell(w);
		hold_back(w, hold_at(o->level));
		listeners_pace(w->doors, o->level >= OVERLOAD_DOORS);
	} else if (o->level >= OVERLOAD_DOORS) {
		/* So that no connection waits for ever. */
		listeners_let_some_in(w->doors);
	}
	if (o->level == OVERLOAD_NONE && lag < w->limit_ms)
		loop_timer_clear(w->tick);
}

static void
tick_cb(void *arg)
{
	look(arg);
}

/* The loop or an I/O thread took too long for a turn: starts to watch. */
static void
lag_cb(void *arg)
{
	struct overload_watch *w = arg;
	uint64_t ms;

	if (loop_timer_left(w->tick, &ms))
		return;
	loop_timer_set(w->tick, TICK_MS, 1);
	look(w);
}

static void
watch(struct overload_watch *w)
{
	/* Lags of both kinds of threads add up: each gets half of the limit. */
	uint32_t ms = w->io != NULL ? (w->limit_ms + 1) / 2 : w->limit_ms;

	if (ms == 0)
		return;
	loop_on_lag(w->loop, ms, lag_cb, w);
	if (w->io != NULL)
		io_pool_on_lag(w->io, ms, lag_cb, w);
}

struct overload_watch *
overload_watch_new(struct loop *l, struct io_pool *io, struct overload *o,
    struct listeners *doors, uint32_t limit_ms)
{
	struct overload_watch *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->loop = l;
	w->io = io;
	w->overload = o;
	w->doors = doors;
	w->limit_ms = limit_ms;
	if ((w->tick = loop_timer_new(l, tick_cb, w)) == NULL) {
		free(w);
		return NULL;
	}
	watch(w);
	return w;
}

void
overload_watch_free(struct overload_watch *w)
{
	if (w == NULL)
		return;
	loop_on_lag(w->loop, 0, NULL, NULL);
	if (w->io != NULL)
		io_pool_forget_lag(w->io);
	loop_timer_free(w->tick);
	free(w);
}
