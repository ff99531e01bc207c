#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "protos/link.pb-c.h"
#include "relay/clocks/link_clocks.h"
#include "relay/perfetto/perfetto_relay.h"
#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/network.h"
#include "relay/uplink/open_call.h"
#include "relay/uplink/uplink_internal.h"
#include "transport/base/backoff.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* A connection that lasted so long resets the backoff. */
#define UPLINK_GOOD_MS 10000u
#define LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

void
uplink_set_state(struct uplink *u, enum uplink_state state)
{
	u->state = state;
	u->since_ms = loop_now_ms();
}

/* ---- the end ---- */

static void
stopped_cb(void *arg)
{
	struct uplink *u = arg;

	u->stopped_fn(u->stopped_arg);
}

static void
finish(struct uplink *u)
{
	if (u->state == UPLINK_STOPPED)
		return;
	loop_timer_clear(u->linger);
	uplink_conn_free(u->conn);
	u->conn = NULL;
	u->way = u->way == WAY_CLASSIC ? WAY_NONE : u->way;
	perfetto_relay_free(u->classic);
	u->classic = NULL;
	uplink_set_state(u, UPLINK_STOPPED);
	loop_defer(u->setup.loop, &u->stopped_call, stopped_cb, u);
}

bool
uplink_all_has_arrived(const struct uplink *u)
{
	struct outbox_stats stats;

	outbox_stats(u->setup.outbox, &stats);
	return stats.memory_bytes == 0 && stats.spool_bytes == 0 &&
	    stats.blocks_on_the_way == 0;
}

static void
linger_cb(void *arg)
{
	finish(arg);
}

void
uplink_stop(struct uplink *u, uint64_t linger_ms, void (*done)(void *),
    void *arg)
{
	if (u->stopping)
		return;
	u->stopped_fn = done;
	u->stopped_arg = arg;
	loop_timer_clear(u->retry);
	u->stopping = true;
	uplink_leave_end(u);
	if (u->conn == NULL || uplink_all_has_arrived(u)) {
		finish(u);
		return;
	}
	loop_timer_set(u->linger, linger_ms, 0);
}

void
uplink_disconnect(struct uplink *u)
{
	uplink_conn_free(u->conn);
	u->conn = NULL;
	uplink_leave_end(u);
	if (u->way == WAY_LINK)
		producers_away(u->producers);
	if (u->classic == NULL)
		return;
	perfetto_relay_free(u->classic);
	u->classic = NULL;
	u->way = WAY_NONE;
	/* The next collector may be another, which knows the link. */
	producers_lost(u->producers, 0, LOSS(COLLECTOR_RESTARTED));
}

/* ---- Perfetto's own way ---- */

static void
classic_up(void *arg)
{
	struct uplink *u = arg;

	uplink_reached(u);
	uplink_look_homeward(u);
}

void
uplink_classic_down(struct uplink *u, const char *why)
{
	char text[sizeof(u->last_error)];

	/* why belongs to u->classic, which is freed. */
	snprintf(text, sizeof(text), "%s", why);
	uplink_disconnect(u);
	uplink_failed(u, text, loop_now_ms() - u->since_ms >= UPLINK_GOOD_MS);
}

static void
classic_down(void *arg, const char *why)
{
	uplink_classic_down(arg, why);
}

static void
begin_classic(struct uplink *u)
{
	struct perfetto_relay_setup setup = {
		.loop = u->setup.loop,
		.settings = u->setup.settings,
		.to = uplink_to(u),
		.how = &u->how,
		.producers = u->producers,
		.totals = &u->perfetto_relay_totals,
		.up = classic_up,
		.down = classic_down,
		.arg = u,
	};
	struct outbox_state st;
	char err[512];

	/* The link before was to another collector. */
	outbox_state(u->setup.outbox, &st);
	if (st.resumable)
		uplink_forget(u, LOSS(COLLECTOR_RESTARTED));
	u->classic = perfetto_relay_new(&setup, err, sizeof(err));
	if (u->classic == NULL) {
		uplink_failed(u, err, false);
		return;
	}
	u->way = WAY_CLASSIC;
	uplink_set_state(u, UPLINK_CLASSIC);
	uplink_lose_patience(u);
}

/* ---- the link ---- */

static const char *
link_opened(void *arg, const struct outbox_state *st,
    const Tributary__LinkOpened *m)
{
	struct uplink *u = arg;
	const char *wrong;

	if ((wrong = uplink_begin(u, st, m)) != NULL)
		return wrong;
	uplink_set_state(u, UPLINK_LINKED);
	if (u->opened_before)
		u->totals.reconnects++;
	u->opened_before = true;
	uplink_reached(u);
	log_limited(&u->log_limit, loop_now_ms(), LOG_LEVEL_INFO,
	    "linked to %s: %s", uplink_peer_text(u), uplink_opened_text(m));
	uplink_look_homeward(u);
	return NULL;
}

static void
link_leave(void *arg)
{
	uplink_leave_begin(arg, CHOICE_ASKED);
}

static void
link_acked(void *arg)
{
	struct uplink *u = arg;

	uplink_recover_look(u);
	uplink_leave_look(u);
	if (u->stopping && uplink_all_has_arrived(u))
		finish(u);
}

static void
no_link(struct uplink *u)
{
	char sentence[640];

	if (u->setup.settings->protocol == RELAY_AUTO &&
	    u->setup.to != NULL) {
		log_info("%s does not know Tributary's link: it is served in "
		    "Perfetto's own way", uplink_peer_text(u));
		begin_classic(u);
		return;
	}
	snprintf(sentence, sizeof(sentence),
	    "%s does not know Tributary's link, and no other way is %s",
	    uplink_peer_text(u), u->setup.to != NULL ? "permitted (protocol)" :
	    "possible over its connection");
	uplink_failed(u, sentence, false);
}

static void
link_ended(void *arg, enum uplink_end why, bool useful, const char *text)
{
	struct uplink *u = arg;
	char sentence[sizeof(u->last_error)];
	bool good = useful || (u->state == UPLINK_LINKED &&
	    loop_now_ms() - u->since_ms >= UPLINK_GOOD_MS);

	/* text belongs to u->conn, which is freed. */
	snprintf(sentence, sizeof(sentence), "%s", text);
	uplink_disconnect(u);
	if (u->stopping) {
		finish(u);
		return;
	}
	switch (why) {
	case UPLINK_END_NO_LINK:
		no_link(u);
		return;
	case UPLINK_END_UNREACHED:
	case UPLINK_END_CUT:
		uplink_failed(u, sentence, good);
		return;
	}
}

/* fd -1: to the address. */
static void
begin_link(struct uplink *u, int fd)
{
	static const struct uplink_conn_ops ops = {
		.opened = link_opened,
		.acked = link_acked,
		.leave = link_leave,
		.ended = link_ended,
	};
	struct uplink_conn_setup setup = {
		.loop = u->setup.loop,
		.settings = u->setup.settings,
		.to = fd < 0 ? uplink_to(u) : NULL,
		.how = &u->how,
		.fd = fd,
		.can_move = u->way == WAY_LINK &&
		    u->recovery == RECOVERY_NONE,
		.outbox = u->setup.outbox,
		.producers = u->producers,
		.clocks = u->clocks,
		.totals = &u->totals,
		.ops = &ops,
		.arg = u,
	};
	char err[512];

	u->conn = uplink_conn_new(&setup, err, sizeof(err));
	if (u->conn == NULL) {
		if (fd >= 0)
			close(fd);
		uplink_failed(u, err, false);
		return;
	}
	uplink_set_state(u, UPLINK_CONNECTING);
	uplink_lose_patience(u);
}

void
uplink_attempt(struct uplink *u)
{
	u->tried_ms = loop_now_ms();
	u->next_try_ms = 0;
	if (u->setup.settings->protocol == RELAY_CLASSIC_ONLY)
		begin_classic(u);
	else
		begin_link(u, -1);
}

void
uplink_take(struct uplink *u, int fd)
{
	if (u->stopping || u->producers == NULL) {
		close(fd);
		return;
	}
	loop_timer_clear(u->retry);
	uplink_disconnect(u);
	begin_link(u, fd);
}

/* ---- what happens beside it ---- */

void
uplink_outbox_ready(struct uplink *u)
{
	if (u == NULL)
		return;
	uplink_tell_old_losses(u);
	uplink_leave_look(u);
	if (u->conn != NULL)
		uplink_conn_kick(u->conn);
	if (u->put_off) {
		u->put_off = false;
		if (u->producers != NULL)
			producers_resume(u->producers, 0);
	}
}

void
uplink_outbox_overflow(struct uplink *u)
{
	if (u == NULL || u->way != WAY_LINK)
		return;
	/*
	 * Not reset yet: resumed once more, the collector says what has
	 * arrived.
	 */
	uplink_leave(u, LOSS(SPOOL_FULL));
	if (u->conn != NULL)
		uplink_conn_end(u->conn, "memory and spool are full of "
		    "messages that must not be dropped: the link has to begin "
		    "anew");
}

static void
clock_send(void *arg, const uint8_t *clock, size_t len)
{
	struct uplink *u = arg;

	if (u->conn != NULL)
		uplink_conn_send_clock(u->conn, clock, len);
}

/* ---- its life ---- */

void
uplink_start(struct uplink *u, struct producers *ps)
{
	struct outbox_state st;

	u->producers = ps;
	outbox_state(u->setup.outbox, &st);
	if (st.resumable &&
	    u->setup.settings->protocol != RELAY_CLASSIC_ONLY)
		u->way = WAY_LINK;
	u->opened_before = u->way == WAY_LINK;
	if (u->opened_before)
		uplink_choice_recall(u);
	uplink_recover_start(u, &st);
	/*
	 * The link is the same: producers that come now are announced when it
	 * is resumed.
	 */
	if (u->way == WAY_LINK)
		producers_away(ps);
	if (u->setup.to == NULL)
		return;
	uplink_watch_network(u);
	uplink_attempt(u);
}

struct uplink *
uplink_new(const struct uplink_setup *setup, char *err, size_t err_size)
{
	static const struct link_clocks_ops clock_ops = { .send = clock_send };
	struct uplink *u;

	snprintf(err, err_size, "out of memory"); /* unless it is more */
	if ((u = calloc(1, sizeof(*u))) == NULL)
		return NULL;
	u->setup = *setup;
	if (setup->how != NULL)
		u->how = *setup->how;
	/* Local producers do not wait for a name server. */
	u->how.in_background = true;
	u->since_ms = loop_now_ms();
	u->clocks = link_clocks_new(setup->loop, setup->settings->clock_sync_ms,
	    &clock_ops, u);
	u->retry = loop_timer_new(setup->loop, uplink_retry_cb, u);
	u->linger = loop_timer_new(setup->loop, linger_cb, u);
	if (u->clocks == NULL || u->retry == NULL || u->linger == NULL || uplink_leave_start(u) != 0)
		goto fail;
	if (setup->to != NULL && uplink_choice_start(u, err, err_size) != 0)
		goto fail;
	return u;

fail:
	uplink_free(u);
	return NULL;
}

void
uplink_free(struct uplink *u)
{
	if (u == NULL)
		return;
	uplink_conn_free(u->conn);
	perfetto_relay_free(u->classic);
	link_clocks_free(u->clocks);
	uplink_network_free(u->network);
	loop_timer_free(u->retry);
	loop_timer_free(u->linger);
	loop_timer_free(u->leave.patience);
	loop_cancel(u->setup.loop, u);
	free(u);
}
