#include "relay/uplink_watch.h"

void
uplink_watch_heard(struct uplink_watch *w, uint64_t now_ms)
{
	w->since_ms = now_ms;
	w->probed = false;
}

static void
owes_from(struct uplink_watch *w, uint64_t now_ms)
{
	if (!w->owes_ack && !w->owes_pong)
		uplink_watch_heard(w, now_ms);
}

void
uplink_watch_sent_block(struct uplink_watch *w, uint64_t now_ms)
{
	owes_from(w, now_ms);
	w->owes_ack = true;
}

void
uplink_watch_sent_ping(struct uplink_watch *w, uint64_t now_ms)
{
	owes_from(w, now_ms);
	w->owes_pong = true;
}

void
uplink_watch_all_acked(struct uplink_watch *w)
{
	w->owes_ack = false;
}

void
uplink_watch_ponged(struct uplink_watch *w)
{
	w->owes_pong = false;
}

bool
uplink_watch_hurry(struct uplink_watch *w, uint64_t now_ms)
{
	if ((!w->owes_ack && !w->owes_pong) ||
	    now_ms - w->since_ms < WATCH_HURRY_PROBE_MS ||
	    (w->probed && w->patience_ms == WATCH_HURRY_DEAD_MS))
		return false;
	w->probed = true;
	w->probed_ms = now_ms;
	w->patience_ms = WATCH_HURRY_DEAD_MS;
	return true;
}

enum uplink_watch_verdict
uplink_watch_look(struct uplink_watch *w, uint64_t now_ms, uint64_t *again_ms)
{
	uint64_t silent;

	if (!w->owes_ack && !w->owes_pong)
		return WATCH_IDLE;
	if (w->probed) {
		/* Also when we slept: it had its time to answer. */
		silent = now_ms - w->probed_ms;
		if (silent >= w->patience_ms)
			return WATCH_DEAD;
		*again_ms = w->patience_ms - silent;
		return WATCH_WAIT;
	}
	silent = now_ms - w->since_ms;
	if (silent < WATCH_PROBE_MS) {
		*again_ms = WATCH_PROBE_MS - silent;
		return WATCH_WAIT;
	}
	w->probed = true;
	w->probed_ms = now_ms;
	w->patience_ms = WATCH_DEAD_MS;
	*again_ms = WATCH_DEAD_MS;
	return WATCH_PROBE;
}
