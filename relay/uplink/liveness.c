#include "relay/uplink/liveness.h"

void
uplink_liveness_heard(struct uplink_liveness *w, uint64_t now_ms)
{
	w->since_ms = now_ms;
	w->probed = false;
}

static void
owes_from(struct uplink_liveness *w, uint64_t now_ms)
{
	if (!w->owes_ack && !w->owes_pong)
		uplink_liveness_heard(w, now_ms);
}

void
uplink_liveness_sent_block(struct uplink_liveness *w, uint64_t now_ms)
{
	owes_from(w, now_ms);
	w->owes_ack = true;
}

void
uplink_liveness_sent_ping(struct uplink_liveness *w, uint64_t now_ms)
{
	owes_from(w, now_ms);
	w->owes_pong = true;
}

void
uplink_liveness_all_acked(struct uplink_liveness *w)
{
	w->owes_ack = false;
}

void
uplink_liveness_ponged(struct uplink_liveness *w)
{
	w->owes_pong = false;
}

bool
uplink_liveness_hurry(struct uplink_liveness *w, uint64_t now_ms)
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

enum uplink_liveness_verdict
uplink_liveness_look(struct uplink_liveness *w, uint64_t now_ms,
    uint64_t *again_ms)
{
	uint64_t silent;

	if (!w->owes_ack && !w->owes_pong)
		return WATCH_IDLE;
	if (w->probed) {
		/*
		 * After the machine slept, too: the other end had its time to
		 * answer.
		 */
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
