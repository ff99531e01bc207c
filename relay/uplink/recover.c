#include "relay/uplink/uplink_internal.h"

#include "relay/producers/producers.h"

static void
scraped_cb(void *arg)
{
	struct uplink *u = arg;

	if (u->recovery != RECOVERY_SCRAPING)
		return; /* it was for a link that is no more */
	u->recovery = RECOVERY_DRAINING;
	uplink_recover_look(u);
}

/*
 * Each channel has an order of its own: only when the old ones have arrived may
 * a word of channel 0 end them.
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

void
uplink_recover_start(struct uplink *u, const struct outbox_state *st)
{
	bool keep = u->way == WAY_LINK;

	if (keep && st->last_channel > 0) {
		u->recovery = RECOVERY_SCRAPING;
		u->old_at = 1;
		u->old_end = st->last_channel + 1;
	}
	/* Without: what it left is removed. */
	producers_recover(u->producers, keep, scraped_cb, u);
}

void
uplink_recover_forget(struct uplink *u)
{
	u->recovery = RECOVERY_NONE;
}
