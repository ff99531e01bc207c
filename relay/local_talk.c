/*
 * What is said upward of a producer, chunks aside.  None of it can be dropped:
 * a producer that says too much would fill the outbox and end the link for all.
 * So it may say TALK_BURST bytes at once and TALK_RATE a second, then it waits.
 */
#include "transport/loop.h"
#include "relay/local.h"
#include "relay/producers_internal.h"

#define TALK_BURST (4 * 1024 * 1024)
#define TALK_RATE  (256 * 1024)
/* While nothing goes up: what is said stays in the memory of all. */
#define AWAY_BURST (64 * 1024)
#define AWAY_RATE  (4 * 1024)
/* Who comes then and has a trigger: so many, with so little else to say. */
#define HASTY_MAX       64u
#define HASTY_BYTES_MAX 4096u
/* A message's share of what stands around it. */
#define TALK_HEAD 16

void
local_put(struct local *l, enum link_up kind, const void *data, size_t len)
{
	const struct upward *up = &l->owner->up;

	if (l->state != LOCAL_ANNOUNCED)
		return;
	l->talked += (int64_t)len + TALK_HEAD;
	up->ops->put(up->arg, l->channel, kind, data, len, 0);
}

void
local_put_value(struct local *l, enum link_up kind, uint64_t value)
{
	const struct upward *up = &l->owner->up;

	if (l->state != LOCAL_ANNOUNCED)
		return;
	l->talked += TALK_HEAD;
	up->ops->put(up->arg, l->channel, kind, NULL, 0, value);
}

static void
talk_cb(void *arg)
{
	struct local *l = arg;

	if (l->conn != NULL)
		rpc_conn_resume(l->conn);
}

bool
local_may_talk(struct local *l)
{
	uint64_t now = loop_now_ms();
	bool away = l->owner->away;
	int64_t burst = away ? AWAY_BURST : TALK_BURST;
	int64_t rate = away ? AWAY_RATE : TALK_RATE;
	int64_t forgiven = (int64_t)(now - l->talked_ms) * rate / 1000;

	l->talked = l->talked > forgiven ? l->talked - forgiven : 0;
	l->talked_ms = now;
	if (l->talked < burst)
		return true;
	if (l->talk_timer == NULL && (l->talk_timer = loop_timer_new(
	    l->owner->loop, talk_cb, l)) == NULL) {
		rpc_conn_close(l->conn, "out of memory");
		return false;
	}
	local_log(l, "more to say", "it has to wait");
	/* Until it may say a good deal again. */
	loop_timer_set(l->talk_timer, (uint64_t)(l->talked - burst) * 1000 /
	    (uint64_t)rate + 100, 0);
	return false;
}

void
local_may_talk_again(struct local *l)
{
	if (l->talk_timer != NULL)
		loop_timer_set(l->talk_timer, 0, 0);
}

void
local_announce_for_trigger(struct local *l)
{
	struct producers *ps = l->owner;

	if (l->state != LOCAL_UNKNOWN || !ps->away)
		return;
	if (ps->hasty >= HASTY_MAX || l->descriptor_bytes > HASTY_BYTES_MAX) {
		local_log(l, "a trigger", "the collector is not there, and "
		    "too many wait for it");
		return;
	}
	ps->hasty++;
	local_announce(l);
}
