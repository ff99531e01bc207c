/*
 * Draining: relays are asked to go to another collector, some at a time, so
 * that those do not meet all of them at once.
 */
#include "service/link/link_internal.h"
#include "transport/base/log.h"

#define TICK_MS 100u
#define LINKS_PER_TICK 20u
/* Time after which a relay that is still there is asked once more. */
#define ASK_AGAIN_MS 30000u

/* Whether to ask it now: not before what leads relays here knows of it. */
static bool
is_due(const struct links *t, const struct link *l, uint64_t now)
{
	if (l->ops == NULL || l->ended || now - t->drain.since_ms <
	    t->drain.after_ms || now - l->attached_ms < t->drain.after_ms)
		return false;
	return l->asked_to_leave_ms == 0 ||
	    now - l->asked_to_leave_ms >= ASK_AGAIN_MS;
}

/* Asks up to `most` of those that were asked before, or never. */
static unsigned
ask(struct links *t, bool before, unsigned most)
{
	uint64_t now = loop_now_ms();
	unsigned asked = 0;
	struct link *l;

	TAILQ_FOREACH(l, &t->all, all) {
		if (asked == most)
			break;
		if ((l->asked_to_leave_ms != 0) != before ||
		    !is_due(t, l, now))
			continue;
		l->asked_to_leave_ms = now;
		link_tell(&l->own, LINK_DOWN_DRAIN, "", 0);
		asked++;
	}
	return asked;
}

static void
tick_cb(void *arg)
{
	struct links *t = arg;

	/* First the others: those that stay must not keep them from it. */
	(void)ask(t, true, LINKS_PER_TICK - ask(t, false, LINKS_PER_TICK));
}

int
links_drain(struct links *t, bool on, uint32_t after_ms)
{
	if (t->drain.timer == NULL && (t->drain.timer = loop_timer_new(
	    t->service->loop, tick_cb, t)) == NULL)
		return -1;
	if (on != t->drain.on)
		log_info(on ? "draining: relays are asked to go to other "
		    "collectors" : "no longer draining");
	if (on && !t->drain.on)
		t->drain.since_ms = loop_now_ms();
	t->drain.on = on;
	t->drain.after_ms = after_ms;
	if (on)
		loop_timer_set(t->drain.timer, TICK_MS, TICK_MS);
	else
		loop_timer_clear(t->drain.timer);
	return 0;
}

bool
links_drains(const struct links *t)
{
	return t->drain.on;
}
