/*
 * The way to another collector while this one lives: producers flush, what they
 * wrote until then arrives here, what they write from then on waits for the
 * other.  So no packet is in two parts, and none is in both.
 */
#include <string.h>

#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/uplink_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Time that producers get for their flush. */
#define LEAVE_FLUSH_MS 5000u
/*
 * Collectors that are left, each within move_after_ms of the one before: where
 * all drain, a relay does not go round among them.
 */
#define LEAVE_TIMES_MAX 4u

static void
asked(void *arg, uint32_t channel)
{
	struct uplink *u = arg;

	u->leave.awaited++;
	outbox_let_go(u->setup.outbox, channel);
}

static void
settled(void *arg, uint32_t channel)
{
	struct uplink *u = arg;

	if (u->leave.awaited > 0)
		u->leave.awaited--;
	outbox_hold(u->setup.outbox, channel);
	uplink_leave_look(u);
}

static void
patience_cb(void *arg)
{
	struct uplink *u = arg;

	if (u->leave.state != LEAVE_FLUSHES)
		return;
	log_info("%zu producers have not flushed in time: packets that they "
	    "are writing may be lost", u->leave.awaited);
	producers_settle_end(u->producers);
	u->leave.awaited = 0;
	outbox_hold_all(u->setup.outbox);
	uplink_leave_look(u);
}

/* Producers with their flush before them are let go again by asked(). */
void
uplink_leave_begin(struct uplink *u, enum choice_why why)
{
	const struct relay_settings *s = u->setup.settings;
	const struct producers_settle settle = { asked, settled, u };
	struct outbox_state st;

	if (u->leave.state != LEAVE_NOT || u->state != UPLINK_LINKED ||
	    u->way != WAY_LINK || u->recovery != RECOVERY_NONE ||
	    u->setup.to == NULL || u->stopping)
		return;
	/* No other answered, and it is the same again: it lives, after all. */
	outbox_state(u->setup.outbox, &st);
	if (loop_now_ms() - u->leave.left_ms >= s->move_after_ms)
		u->leave.times = 0;
	else if (u->leave.times >= LEAVE_TIMES_MAX || memcmp(st.collector_id,
	    u->leave.left_id, LINK_ID_BYTES) == 0)
		return;
	u->leave.state = LEAVE_FLUSHES;
	u->leave.why = why;
	u->leave.awaited = 0;
	outbox_hold_all(u->setup.outbox);
	producers_settle(u->producers, &settle);
	loop_timer_set(u->leave.patience, LEAVE_FLUSH_MS, 0);
	uplink_leave_look(u);
}

static void
go_cb(void *arg)
{
	struct uplink *u = arg;
	struct outbox_state st;

	/* The connection may have ended meanwhile. */
	if (u->leave.state != LEAVE_GOES || u->state != UPLINK_LINKED)
		return;
	outbox_state(u->setup.outbox, &st);
	u->leave.left_ms = loop_now_ms();
	u->leave.times++;
	memcpy(u->leave.left_id, st.collector_id, LINK_ID_BYTES);
	uplink_move_on(u, u->leave.why);
}

void
uplink_leave_look(struct uplink *u)
{
	struct outbox *o = u->setup.outbox;

	if (u->leave.state == LEAVE_NOT || u->leave.awaited > 0 ||
	    !outbox_is_settled(o))
		return;
	switch (u->leave.state) {
	case LEAVE_FLUSHES:
		u->leave.state = LEAVE_SAYS_SO;
		outbox_put(o, 0, LINK_UP_LEAVE, NULL, 0, 0);
		break;
	case LEAVE_SAYS_SO:
		/* On a later turn, as this may be a call of the connection. */
		u->leave.state = LEAVE_GOES;
		loop_defer(u->setup.loop, &u->leave.call, go_cb, u);
		break;
	case LEAVE_NOT:
	case LEAVE_GOES:
		break;
	}
}

void
uplink_leave_end(struct uplink *u)
{
	if (u->leave.state == LEAVE_NOT)
		return;
	u->leave.state = LEAVE_NOT;
	producers_settle_end(u->producers);
	loop_timer_clear(u->leave.patience);
	outbox_release(u->setup.outbox);
}

int
uplink_leave_start(struct uplink *u)
{
	u->leave.patience = loop_timer_new(u->setup.loop, patience_cb, u);
	return u->leave.patience != NULL ? 0 : -1;
}
