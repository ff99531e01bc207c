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
/* Time between two attempts, however often the network changes. */
#define CHANGES_GAP_MS 1000u
/*
 * A connection that was begun before the network changed may wait for answers
 * that never come; it is begun anew when it had this long, and not often.
 */
#define CHANGES_HURRY_MS     3000u
#define CHANGES_HURRY_GAP_MS 30000u

#define LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

static void
set_state(struct uplink *u, enum uplink_state state)
{
	u->state = state;
	u->since_ms = loop_now_ms();
}

/* ---- waiting ---- */

static uint32_t
chance(void)
{
	uint32_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != sizeof(v))
		v = (uint32_t)loop_now_ms() * 2654435761u;
	return v;
}

static void
wait_for(struct uplink *u, uint64_t ms)
{
	u->next_try_ms = loop_now_ms() + ms;
	loop_timer_set(u->retry, ms, 0);
}

/* Logs a failure for operators once, and again when it is another. */
static void
log_failure(struct uplink *u, const char *text)
{
	if (strcmp(text, u->last_error) == 0)
		log_debug("%s", text);
	else
		log_limited(&u->log_limit, loop_now_ms(), LOG_LEVEL_WARN, "%s",
		    text);
	snprintf(u->last_error, sizeof(u->last_error), "%s", text);
}

/* An attempt, or a connection, has ended. */
static void
failed(struct uplink *u, const char *text)
{
	const struct relay_settings *s = u->setup.settings;

	log_failure(u, text);
	set_state(u, UPLINK_WAITING);
	u->failures++;
	if (u->setup.to != NULL)
		wait_for(u, backoff_ms(u->failures, s->min_retry_ms,
		    s->max_retry_ms, chance()));
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
	set_state(u, UPLINK_STOPPED);
	loop_defer(u->setup.loop, &u->stopped_call, stopped_cb, u);
}

static bool
all_has_arrived(const struct uplink *u)
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
	if (u->conn == NULL || all_has_arrived(u)) {
		finish(u);
		return;
	}
	loop_timer_set(u->linger, linger_ms, 0);
}

/* ---- Perfetto's own way ---- */

static void
classic_up(void *arg)
{
	struct uplink *u = arg;

	u->last_error[0] = '\0';
}

static void
classic_down(void *arg, const char *why)
{
	struct uplink *u = arg;
	char text[sizeof(u->last_error)];

	/* why belongs to u->classic, which is freed. */
	snprintf(text, sizeof(text), "%s", why);
	perfetto_relay_free(u->classic);
	u->classic = NULL;
	u->way = WAY_NONE;
	if (loop_now_ms() - u->since_ms >= UPLINK_GOOD_MS)
		u->failures = 0;
	/* The next collector may be another, which knows the link. */
	producers_lost(u->producers, 0, LOSS(COLLECTOR_RESTARTED));
	failed(u, text);
}

static void
begin_classic(struct uplink *u)
{
	struct perfetto_relay_setup setup = {
		.loop = u->setup.loop,
		.settings = u->setup.settings,
		.to = &u->to,
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
		failed(u, err);
		return;
	}
	u->way = WAY_CLASSIC;
	set_state(u, UPLINK_CLASSIC);
}

/* ---- the link ---- */

const char *
uplink_peer_text(const struct uplink *u)
{
	return u->setup.to != NULL ? u->to.text : "the collector that called";
}

static const char *
link_opened(void *arg, const struct outbox_state *st,
    const Tributary__LinkOpened *m)
{
	struct uplink *u = arg;
	const char *wrong;

	if ((wrong = uplink_begin(u, st, m)) != NULL)
		return wrong;
	set_state(u, UPLINK_LINKED);
	if (u->opened_before)
		u->totals.reconnects++;
	u->opened_before = true;
	u->last_error[0] = '\0';
	log_limited(&u->log_limit, loop_now_ms(), LOG_LEVEL_INFO,
	    "linked to %s: %s", uplink_peer_text(u), uplink_opened_text(m));
	return NULL;
}

static void
link_acked(void *arg)
{
	struct uplink *u = arg;

	uplink_recover_look(u);
	if (u->stopping && all_has_arrived(u))
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
	failed(u, sentence);
}

static void
link_ended(void *arg, enum uplink_end why, bool useful, const char *text)
{
	struct uplink *u = arg;
	char sentence[sizeof(u->last_error)];

	/* text belongs to u->conn, which is freed. */
	snprintf(sentence, sizeof(sentence), "%s", text);
	uplink_conn_free(u->conn);
	u->conn = NULL;
	if (u->way == WAY_LINK)
		producers_away(u->producers);
	if (useful || (u->state == UPLINK_LINKED &&
	    loop_now_ms() - u->since_ms >= UPLINK_GOOD_MS))
		u->failures = 0;
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
		failed(u, sentence);
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
		.ended = link_ended,
	};
	struct uplink_conn_setup setup = {
		.loop = u->setup.loop,
		.settings = u->setup.settings,
		.to = fd < 0 ? &u->to : NULL,
		.how = &u->how,
		.fd = fd,
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
		failed(u, err);
		return;
	}
	set_state(u, UPLINK_CONNECTING);
}

static void
attempt(struct uplink *u)
{
	u->tried_ms = loop_now_ms();
	u->next_try_ms = 0;
	if (u->setup.settings->protocol == RELAY_CLASSIC_ONLY)
		begin_classic(u);
	else
		begin_link(u, -1);
}

static void
retry_cb(void *arg)
{
	attempt(arg);
}

void
uplink_take(struct uplink *u, int fd)
{
	if (u->stopping || u->producers == NULL) {
		close(fd);
		return;
	}
	loop_timer_clear(u->retry);
	uplink_conn_free(u->conn);
	u->conn = NULL;
	if (u->way == WAY_LINK)
		producers_away(u->producers);
	begin_link(u, fd);
}

/* ---- what happens beside it ---- */

void
uplink_outbox_ready(struct uplink *u)
{
	if (u == NULL)
		return;
	uplink_tell_old_losses(u);
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

/* ---- the network has changed ---- */

void
uplink_try_now(struct uplink *u)
{
	uint64_t now = loop_now_ms(), soonest = u->tried_ms + CHANGES_GAP_MS;

	if (u->state != UPLINK_WAITING || u->producers == NULL ||
	    u->setup.to == NULL || u->stopping)
		return;
	if (u->next_try_ms > soonest)
		wait_for(u, now < soonest ? soonest - now : 0);
}

static void
network_came(void *arg)
{
	struct uplink *u = arg;
	uint64_t now = loop_now_ms();

	uplink_try_now(u);
	if (u->state == UPLINK_LINKED && u->conn != NULL)
		uplink_conn_hurry(u->conn);
	if (u->state != UPLINK_CONNECTING || u->setup.to == NULL ||
	    u->stopping || now - u->since_ms < CHANGES_HURRY_MS ||
	    (u->hurried_ms != 0 && now - u->hurried_ms < CHANGES_HURRY_GAP_MS))
		return;
	u->hurried_ms = now;
	uplink_conn_free(u->conn);
	u->conn = NULL;
	attempt(u);
}

static void
network_address_gone(void *arg, const struct sockaddr_storage *gone)
{
	struct uplink *u = arg;
	struct sockaddr_storage ours;

	if (u->conn != NULL && uplink_conn_address(u->conn, &ours) == 0 &&
	    uplink_network_is_same(&ours, gone))
		uplink_conn_end(u->conn, "our address is gone: the network "
		    "has changed");
}

static void
watch_network(struct uplink *u)
{
	static const struct uplink_network_ops ops = {
		.came = network_came,
		.address_gone = network_address_gone,
	};

	u->network = uplink_network_new(u->setup.loop, &ops, u);
	if (u->network == NULL)
		log_debug("the kernel does not tell of changes of the "
		    "network: every attempt waits for its time");
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
	uplink_recover_start(u, &st);
	/*
	 * The link is the same: producers that come now are announced when it
	 * is resumed.
	 */
	if (u->way == WAY_LINK)
		producers_away(ps);
	if (u->setup.to == NULL)
		return;
	watch_network(u);
	attempt(u);
}

struct uplink *
uplink_new(const struct uplink_setup *setup, char *err, size_t err_size)
{
	static const struct link_clocks_ops clock_ops = { .send = clock_send };
	struct uplink *u;

	if ((u = calloc(1, sizeof(*u))) == NULL)
		goto fail;
	u->setup = *setup;
	if (setup->to != NULL)
		u->to = *setup->to;
	if (setup->how != NULL)
		u->how = *setup->how;
	/* Local producers do not wait for a name server. */
	u->how.in_background = true;
	u->since_ms = loop_now_ms();
	u->clocks = link_clocks_new(setup->loop, setup->settings->clock_sync_ms,
	    &clock_ops, u);
	u->retry = loop_timer_new(setup->loop, retry_cb, u);
	u->linger = loop_timer_new(setup->loop, linger_cb, u);
	if (u->clocks == NULL || u->retry == NULL || u->linger == NULL)
		goto fail;
	return u;

fail:
	snprintf(err, err_size, "out of memory");
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
	loop_cancel(u->setup.loop, u);
	free(u);
}
