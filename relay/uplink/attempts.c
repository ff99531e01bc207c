/*
 * Attempts to connect: which collector they go to (choice.h), when they are
 * made, and what the network's changes are to them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "relay/producers/producers.h"
#include "relay/settings/settings.h"
#include "relay/uplink/last_collector.h"
#include "relay/uplink/network.h"
#include "relay/uplink/uplink_internal.h"
#include "transport/base/human_numbers.h"

/* Time between two attempts, however often the network changes. */
#define CHANGES_GAP_MS 1000u
/*
 * A connection that was begun before the network changed may wait for answers
 * that never come; it is begun anew when it had this long, and not often.
 */
#define CHANGES_HURRY_MS     3000u
#define CHANGES_HURRY_GAP_MS 30000u

static uint32_t
chance(void)
{
	uint32_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != sizeof(v))
		v = (uint32_t)loop_now_ms() * 2654435761u;
	return v;
}

/* ---- which ---- */

int
uplink_choice_start(struct uplink *u, char *err, size_t err_size)
{
	const struct relay_settings *s = u->setup.settings;
	const struct choice_times times = {
		.move_after_ms = s->move_after_ms,
		.min_retry_ms = s->min_retry_ms,
		.max_retry_ms = s->max_retry_ms,
	};
	const char *names[PLACEMENT_MAX];
	size_t i;

	for (i = 0; i < u->setup.n_to && i < PLACEMENT_MAX; i++)
		names[i] = u->setup.to[i].text;
	return choice_init(&u->choice, s->machine_name, names, u->setup.n_to,
	    &times, err, err_size);
}

void
uplink_choice_recall(struct uplink *u)
{
	char last[LAST_COLLECTOR_MAX];
	size_t i;

	if (u->setup.n_to < 2 || u->setup.state_dirfd < 0 ||
	    !last_collector_read(u->setup.state_dirfd, last))
		return;
	for (i = 0; i < u->setup.n_to; i++)
		if (strcmp(u->setup.to[i].text, last) == 0)
			choice_begin_at(&u->choice, i, loop_now_ms(),
			    chance());
}

const struct addr *
uplink_to(const struct uplink *u)
{
	return &u->setup.to[choice_place(&u->choice)];
}

const char *
uplink_peer_text(const struct uplink *u)
{
	return u->setup.to != NULL ? uplink_to(u)->text :
	    "the collector that called";
}

void
uplink_reached(struct uplink *u)
{
	loop_timer_clear(u->retry);
	u->last_error[0] = '\0';
	if (u->setup.to == NULL)
		return;
	choice_linked(&u->choice, loop_now_ms());
	if (u->setup.n_to == 1 || u->placed_at == u->choice.at + 1)
		return;
	u->placed_at = u->choice.at + 1;
	if (u->setup.state_dirfd >= 0)
		last_collector_write(u->setup.state_dirfd, uplink_to(u)->text);
	log_info("%s is choice %zu of %zu of this machine%s%s", uplink_to(u)->text,
	    u->choice.at + 1, u->choice.n, u->choice.why == CHOICE_HOME ? "" :
	    ": ", choice_why_text(u->choice.why));
}

/* ---- when ---- */

static void
wait_for(struct uplink *u, uint64_t ms)
{
	u->next_try_ms = loop_now_ms() + ms;
	loop_timer_set(u->retry, ms, 0);
}

/*
 * Logs a failure for operators once, and again when it is another; of several
 * collectors, each has its own.
 */
static void
log_failure(struct uplink *u, const char *text)
{
	bool said = strcmp(text, u->last_error) == 0 ||
	    (u->setup.n_to > 1 && u->choice.rounds > 0);

	if (said)
		log_debug("%s", text);
	else
		log_limited(&u->log_limit, loop_now_ms(), LOG_LEVEL_WARN, "%s",
		    text);
	snprintf(u->last_error, sizeof(u->last_error), "%s", text);
}

/* Logs that the collector is given up for another. */
static void
log_move(struct uplink *u, const char *from)
{
	char gone[HUMAN_TEXT_MAX];

	if (u->choice.own == CHOICE_NONE || u->choice.leaving)
		return;
	if (u->choice.at == u->choice.own) {
		log_info("no other answers: back to %s", uplink_to(u)->text);
		return;
	}
	human_ms(gone, loop_now_ms() - u->choice.cut_ms);
	log_limited(&u->log_limit, loop_now_ms(), LOG_LEVEL_INFO, "%s does not "
	    "answer; without a collector for %s, the relay tries %s", from, gone,
	    uplink_to(u)->text);
}

void
uplink_failed(struct uplink *u, const char *text, bool good)
{
	const char *from;
	uint64_t pause;

	log_failure(u, text);
	uplink_set_state(u, UPLINK_WAITING);
	if (u->setup.to == NULL)
		return;
	from = uplink_to(u)->text;
	pause = choice_ended(&u->choice, good, loop_now_ms(), chance());
	if (uplink_to(u)->text != from && u->choice.rounds == 0)
		log_move(u, from);
	wait_for(u, pause);
}

void
uplink_lose_patience(struct uplink *u)
{
	uint64_t ms = u->setup.to != NULL ? choice_patience_ms(&u->choice) :
	    CHOICE_PATIENCE_MS;

	/* Otherwise the connection's own time-outs are enough. */
	if (ms < CHOICE_PATIENCE_MS)
		loop_timer_set(u->retry, ms, 0);
	else
		loop_timer_clear(u->retry);
}

void
uplink_retry_cb(void *arg)
{
	struct uplink *u = arg;
	char text[64];

	snprintf(text, sizeof(text), "no link within %u seconds",
	    (unsigned)(choice_patience_ms(&u->choice) / 1000));
	switch (u->state) {
	case UPLINK_WAITING:
		uplink_attempt(u);
		return;
	case UPLINK_CONNECTING:
		uplink_conn_end(u->conn, text);
		return;
	case UPLINK_CLASSIC:
		uplink_classic_down(u, text);
		return;
	case UPLINK_LINKED:
	case UPLINK_STOPPED:
		return; /* not armed */
	}
}

/* ---- going to another ---- */

void
uplink_move_on(struct uplink *u, enum choice_why why)
{
	const struct relay_settings *s = u->setup.settings;
	uint64_t pause = 0;

	if (u->stopping || u->setup.to == NULL)
		return;
	if (!choice_leave(&u->choice, why)) {
		uplink_leave_end(u);
		/* HAProxy may lead the same address elsewhere now. */
		if (why != CHOICE_ASKED)
			return;
		pause = s->min_retry_ms;
	}
	log_info("leaving for %s", uplink_to(u)->text);
	uplink_disconnect(u);
	uplink_set_state(u, UPLINK_WAITING);
	wait_for(u, pause);
}

static void
go_home_cb(void *arg)
{
	struct uplink *u = arg;

	if (!choice_wants_home(&u->choice))
		return;
	if (u->way == WAY_LINK)
		uplink_leave_begin(u, CHOICE_HOMEWARD);
	else if (producers_count(u->producers) == 0)
		uplink_move_on(u, CHOICE_HOMEWARD); /* loses nothing either */
}

void
uplink_look_homeward(struct uplink *u)
{
	if (u->setup.to != NULL && choice_wants_home(&u->choice))
		loop_defer(u->setup.loop, &u->home_call, go_home_cb, u);
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
	uplink_attempt(u);
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

void
uplink_watch_network(struct uplink *u)
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
