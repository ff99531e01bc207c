/*
 * Rate limit on control messages: all that goes upward but chunks.  None of
 * them can be dropped, so that a producer without a limit could fill the outbox
 * and end the link for all.  Two token buckets, kept as a debt that shrinks:
 * one for each producer, and one for all producers of a user, as a new
 * connection would have a full bucket again.
 */
#include <stdlib.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/loop/loop.h"
#include "transport/socket/peer.h"

struct talk_limit {
	int64_t burst;
	int64_t rate; /* a second */
};

/*
 * While the collector is there, or not yet known to be away: it takes twelve
 * seconds to notice that nothing goes up (liveness.h), and an outbox has
 * 8 MiB.
 */
static const struct talk_limit limit_of_one = { 3 << 20, 256 << 10 };
static const struct talk_limit limit_of_user = { 3 << 20, 256 << 10 };
/* While nothing goes up: control messages stay in the memory of the outbox. */
static const struct talk_limit limit_of_one_away = { 64 << 10, 4 << 10 };
static const struct talk_limit limit_of_user_away = { 1 << 20, 16 << 10 };

/* The producers of one user. */
struct talker {
	TAILQ_ENTRY(talker) link;
	uint32_t uid; /* PEER_UID_UNKNOWN: all peers not on UNIX sockets */
	size_t producers;
	struct talk talk;
};
/* Bytes charged for each message besides its own: heads, and blocks' share. */
#define TALK_HEAD 16

static void
talk_said(struct talk *t, size_t len)
{
	t->bytes += (int64_t)len + TALK_HEAD;
}

/* Bytes of debt above the limit by now; below 0: it may send. */
static int64_t
talk_over(struct talk *t, const struct talk_limit *limit)
{
	uint64_t now = loop_now_ms();
	int64_t forgiven = (int64_t)(now - t->since_ms) * limit->rate / 1000;

	t->bytes = t->bytes > forgiven ? t->bytes - forgiven : 0;
	t->since_ms = now;
	return t->bytes - limit->burst;
}

static const struct talk_limit *
user_limit(const struct producers *ps)
{
	return ps->away ? &limit_of_user_away : &limit_of_user;
}

/*
 * Finds or makes the talker of a uid; frees talkers without producers and debt
 * on the way.  NULL: no memory.
 */
static struct talker *
find_talker(struct producers *ps, uint32_t uid)
{
	struct talker *t, *next, *found = NULL;

	TAILQ_FOREACH_SAFE(t, &ps->talkers, link, next) {
		if (t->uid == uid) {
			found = t;
			continue;
		}
		if (t->producers > 0)
			continue;
		(void)talk_over(&t->talk, user_limit(ps));
		if (t->talk.bytes > 0)
			continue;
		TAILQ_REMOVE(&ps->talkers, t, link);
		free(t);
	}
	if (found != NULL || (found = calloc(1, sizeof(*found))) == NULL)
		return found;
	found->uid = uid;
	found->talk.since_ms = loop_now_ms();
	TAILQ_INSERT_TAIL(&ps->talkers, found, link);
	return found;
}

static uint32_t
talker_uid(const struct peer *p)
{
	return p->auth == PEER_UNIX ? p->uid : PEER_UID_UNKNOWN;
}

int
local_join_talker(struct local *l)
{
	l->talker = find_talker(l->owner,
	    talker_uid(rpc_conn_peer(l->server.conn)));
	if (l->talker == NULL)
		return -1;
	l->talker->producers++;
	return 0;
}

void
local_leave_talker(struct local *l)
{
	/* The LINK_UP_CLOSE, which was put before this. */
	talk_said(&l->talker->talk, 0);
	l->talker->producers--;
	l->talker = NULL;
}

void
talkers_forgive(struct producers *ps)
{
	struct talker *t;

	TAILQ_FOREACH(t, &ps->talkers, link)
		t->talk.bytes = 0;
}

void
talkers_free(struct producers *ps)
{
	struct talker *t;

	while ((t = TAILQ_FIRST(&ps->talkers)) != NULL) {
		TAILQ_REMOVE(&ps->talkers, t, link);
		free(t);
	}
}

static void
said(struct local *l, size_t len)
{
	talk_said(&l->talk, len);
	talk_said(&l->talker->talk, len);
}

void
local_put(struct local *l, enum link_up kind, const void *data, size_t len)
{
	const struct upstream *up = &l->owner->up;

	if (!local_is_known(l))
		return;
	said(l, len);
	up->ops->put(up->arg, l->channel, kind, data, len, 0);
}

void
local_put_value(struct local *l, enum link_up kind, uint64_t value)
{
	const struct upstream *up = &l->owner->up;

	if (!local_is_known(l))
		return;
	said(l, 0);
	up->ops->put(up->arg, l->channel, kind, NULL, 0, value);
}

static void
talk_cb(void *arg)
{
	struct local *l = arg;

	rpc_conn_resume(l->server.conn);
}

/* Resumes the connection when the producer may say a good deal again. */
static void
wake_later(struct local *l, int64_t over, const struct talk_limit *limit)
{
	if (l->talk_timer == NULL && (l->talk_timer = loop_timer_new(
	    l->owner->loop, talk_cb, l)) == NULL) {
		rpc_conn_close(l->server.conn, "out of memory");
		return;
	}
	loop_timer_set(l->talk_timer, (uint64_t)over * 1000 /
	    (uint64_t)limit->rate + 100, 0);
}

enum rpc_verdict
local_rate_limit(void *owner)
{
	struct local *l = owner;
	const struct talk_limit *one = l->owner->away ? &limit_of_one_away :
	    &limit_of_one;
	const struct talk_limit *user = user_limit(l->owner);
	int64_t over;

	if ((over = talk_over(&l->talk, one)) >= 0) {
		local_log(l, "more to say", "it has to wait");
		wake_later(l, over, one);
		return RPC_AGAIN;
	}
	if ((over = talk_over(&l->talker->talk, user)) >= 0) {
		local_log(l, "more to say", "its user's producers have said "
		    "too much, it has to wait");
		wake_later(l, over, user);
		return RPC_AGAIN;
	}
	return RPC_OK;
}

bool
local_may_begin(struct local *l)
{
	struct producers *ps = l->owner;
	const struct talk_limit *user = user_limit(ps);
	struct talker *t = find_talker(ps,
	    talker_uid(rpc_conn_peer(l->server.conn)));
	int64_t over;

	/* Away, it is not announced, and so says nothing. */
	if (t == NULL || ps->away || (over = talk_over(&t->talk, user)) < 0)
		return true;
	local_log(l, "a new producer", "its user's producers have said too "
	    "much, it has to wait");
	wake_later(l, over, user);
	return false;
}

void
local_may_talk_again(struct local *l)
{
	if (l->talk_timer != NULL && l->state != LOCAL_ENDED)
		loop_timer_set(l->talk_timer, 0, 0);
}
