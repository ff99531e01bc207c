#include <string.h>

#include "relay/producers/producers.h"
#include "relay/uplink/open_call.h"
#include "relay/uplink/uplink_internal.h"
#include "transport/base/log.h"

#define BEGIN_LOSSES 64

void
uplink_leave(struct uplink *u, uint32_t cause)
{
	u->recovery = RECOVERY_NONE;
	/*
	 * First, so that chunks in producers' memory are counted with all
	 * others.
	 */
	if (u->way == WAY_LINK)
		producers_lost(u->producers, 0, cause);
	u->way = WAY_NONE;
}

void
uplink_forget(struct uplink *u, uint32_t cause)
{
	uplink_leave(u, cause);
	outbox_reset(u->setup.outbox, cause);
}

void
uplink_tell_old_losses(struct uplink *u)
{
	struct link_loss losses[BEGIN_LOSSES];
	uint8_t out[LINK_LOSS_MAX];
	struct outbox *o = u->setup.outbox;
	size_t i, n;

	if (u->way != WAY_LINK)
		return;
	while ((n = outbox_take_old_losses(o, losses, BEGIN_LOSSES)) > 0) {
		for (i = 0; i < n; i++)
			outbox_put(o, 0, LINK_UP_LOSS, out,
			    link_put_loss(out, &losses[i]), 0);
	}
}

static const char *
set_credit(struct uplink *u, const Tributary__LinkOpened *m)
{
	struct outbox *o = u->setup.outbox;
	size_t i;

	outbox_set_window(o, m->window);
	for (i = 0; i < m->n_consumed; i++) {
		if (outbox_consumed(o, m->consumed[i]->channel,
			m->consumed[i]->bytes) != 0)
			return "consumed more than was sent";
	}
	if (m->has_consumed_in_all &&
	    outbox_consumed_in_all(o, m->consumed_in_all) != 0)
		return "consumed more than was sent";
	return NULL;
}

/*
 * Takes blocks from the old link's losses that its collector had taken, though
 * no acknowledgement arrived.
 */
static void
settle_old(struct uplink *u, const struct outbox_state *st,
    const Tributary__LinkOpened *m)
{
	if (m->taken_before > st->last_acked &&
	    m->taken_before <= st->last_sent &&
	    outbox_acked(u->setup.outbox, m->taken_before) != 0)
		log_debug("the collector took more than was sent");
}

const char *
uplink_begin(struct uplink *u, const struct outbox_state *st,
    const Tributary__LinkOpened *m)
{
	const char *wrong;
	bool moved = m->why == TRIBUTARY__LINK_OPENED__WHY__MOVED;
	bool anew = !moved && m->why != TRIBUTARY__LINK_OPENED__WHY__RESUMED;

	if (moved) {
		outbox_moved(u->setup.outbox, m->collector_id.data);
		if (outbox_resume(u->setup.outbox, m->received) != 0)
			return "goes on with the link where it cannot be";
	} else if (anew) {
		if (st->resumable) {
			settle_old(u, st, m);
			uplink_forget(u, uplink_opened_cause(m));
		}
		outbox_linked(u->setup.outbox, st->link_id,
		    m->collector_id.data);
	} else if (outbox_resume(u->setup.outbox, m->received) != 0) {
		return "resumes the link where it cannot be";
	} else if (st->overflowed) {
		uplink_forget(u, TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_SPOOL_FULL);
		return "has acknowledged what it took; the rest is lost, and "
		    "the link begins anew";
	}
	if ((wrong = set_credit(u, m)) != NULL)
		return wrong;
	u->way = WAY_LINK;
	producers_set_buffer_tag(u->producers, m->buffer_tag);
	/* Announces producers that came while a resumed link was cut. */
	producers_announce(u->producers, 0);
	if (anew)
		uplink_tell_old_losses(u);
	return NULL;
}

/* ---- what a killed relay left ---- */

/*
 * Channels are not ordered among each other: a message of channel 0 may close
 * the old ones only when all their blocks have arrived.
 */
void
uplink_recover_look(struct uplink *u)
{
	struct outbox *o = u->setup.outbox;

	if (u->recovery != RECOVERY_DRAINING)
		return;
	while (u->old_at < u->old_end && outbox_channel_is_empty(o, u->old_at))
		u->old_at++;
	if (u->old_at < u->old_end)
		return;
	u->recovery = RECOVERY_NONE;
	outbox_put(o, 0, LINK_UP_CLOSE_BELOW, NULL, 0, u->old_end);
}

static void
scraped_cb(void *arg)
{
	struct uplink *u = arg;

	if (u->recovery != RECOVERY_SCRAPING)
		return; /* it was for a link that is no more */
	u->recovery = RECOVERY_DRAINING;
	uplink_recover_look(u);
}

void
uplink_recover_start(struct uplink *u, const struct outbox_state *st)
{
	bool keep = u->way == WAY_LINK;

	if (keep && st->last_channel > 0) {
		u->recovery = RECOVERY_SCRAPING;
		u->old_at = 1;
		u->old_end = st->last_channel + 1;
	}
	/* If the link does not go on, what the killed relay left is removed. */
	producers_recover(u->producers, keep, scraped_cb, u);
}
