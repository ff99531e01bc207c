#include "service/output/readback.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "service/session/session.h"
#include "service/session/session_internal.h"

#define SNAPSHOT_INTERVAL_DEFAULT_MS 10000u
#define SNAPSHOT_INTERVAL_MIN_MS 100u

static void
duration_cb(void *arg)
{
	session_disable(arg, NULL);
}

static void
flush_cb(void *arg)
{
	struct session *s = arg;

	flush_start(s, config_flush_timeout_ms(s->config), FLUSH_PERIODIC,
	    NULL, NULL);
}

static void
snapshot_cb(void *arg)
{
	struct session *s = arg;

	if (overload_skip_extra(&s->service->overload))
		return;
	event_log_snapshot(s->events);
	readback_want_marker(s->readback);
	readback_want_stats(s->readback);
}

static void
clear_cb(void *arg)
{
	struct session *s = arg;
	struct producer *p;

	TAILQ_FOREACH(p, &s->service->producers, link)
		(void)instance_clear_state(s, p);
}

struct loop_timer *
session_timer_new(struct session *s, bool counts_sleep, void (*fn)(void *))
{
	return counts_sleep ? loop_timer_new_boottime(s->service->loop, fn,
	    s) : loop_timer_new(s->service->loop, fn, s);
}

int
session_timers_make(struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	struct loop *l = s->service->loop;

	s->duration_timer = session_timer_new(s,
	    pb->prefer_suspend_clock_for_duration, duration_cb);
	s->flush_timer = loop_timer_new(l, flush_cb, s);
	s->snapshot_timer = session_timer_new(s,
	    pb->builtin_data_sources != NULL &&
	    pb->builtin_data_sources->prefer_suspend_clock_for_snapshot,
	    snapshot_cb);
	s->clear_timer = loop_timer_new(l, clear_cb, s);
	return s->duration_timer == NULL || s->flush_timer == NULL ||
	    s->snapshot_timer == NULL || s->clear_timer == NULL ? -1 : 0;
}

void
session_timers_arm(struct session *s)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	uint32_t interval = SNAPSHOT_INTERVAL_DEFAULT_MS;

	if (pb->duration_ms != 0)
		loop_timer_set(s->duration_timer, pb->duration_ms, 0);
	if (pb->flush_period_ms != 0)
		loop_timer_set(s->flush_timer, pb->flush_period_ms, 1);
	if (pb->builtin_data_sources != NULL &&
	    pb->builtin_data_sources->snapshot_interval_ms != 0)
		interval = pb->builtin_data_sources->snapshot_interval_ms;
	if (interval < SNAPSHOT_INTERVAL_MIN_MS)
		interval = SNAPSHOT_INTERVAL_MIN_MS;
	loop_timer_set(s->snapshot_timer, interval, 1);
	if (pb->incremental_state_config != NULL &&
	    pb->incremental_state_config->clear_period_ms != 0)
		loop_timer_set(s->clear_timer,
		    pb->incremental_state_config->clear_period_ms, 1);
}

bool
session_remaining_ms(const struct session *s, uint64_t *ms)
{
	const struct loop_timer *timers[] = { s->duration_timer,
		s->trigger_timer, s->trigger_stop_timer };
	bool any = false;
	uint64_t left;
	size_t i;

	for (i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
		if (!loop_timer_left(timers[i], &left))
			continue;
		if (!any || left < *ms)
			*ms = left;
		any = true;
	}
	return any;
}

void
session_timers_clear(struct session *s)
{
	loop_timer_clear(s->duration_timer);
	loop_timer_clear(s->flush_timer);
	loop_timer_clear(s->snapshot_timer);
	loop_timer_clear(s->clear_timer);
}
