#include <stdio.h>

#include "transport/rpc/rpc_conn_internal.h"

void
rpc_conns_add(struct rpc_conn *c)
{
	c->next = c->stats->conns;
	if (c->next != NULL)
		c->next->prev = c;
	c->stats->conns = c;
	c->stats->n_conns++;
}

void
rpc_conns_remove(struct rpc_conn *c)
{
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		c->stats->conns = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	c->stats->n_conns--;
}

void
rpc_conns_close_all(struct rpc_stats *stats)
{
	while (stats->conns != NULL)
		rpc_conn_close(stats->conns, NULL);
}

static bool
is_late(uint64_t ms, uint64_t limit_ms)
{
	return limit_ms != 0 && ms >= limit_ms;
}

/* Tells the peer and the log why, and closes the connection. */
static void
give_up(struct rpc_conn *c, uint64_t *counter, const char *what,
    uint64_t limit_ms)
{
	char why[RPC_WHY_MAX];

	(*counter)++;
	snprintf(why, sizeof(why), "%s for %llu ms", what,
	    (unsigned long long)limit_ms);
	if (!stream_is_opening(c->stream))
		rpc_conn_tell(c, 0, why);
	rpc_conn_close(c, why);
}

static void
sweep_one(struct rpc_conn *c, const struct rpc_timeouts *t, uint64_t now_ms)
{
	const struct stream *s = c->stream;
	uint64_t age = now_ms > c->since_ms ? now_ms - c->since_ms : 0;

	if (stream_is_opening(s)) {
		if (is_late(age, t->handshake_ms))
			give_up(c, &c->stats->closed_handshake,
			    "its TLS handshake was not done", t->handshake_ms);
		return;
	}
	if (is_late(stream_stalled_ms(s, now_ms), t->stalled_ms))
		give_up(c, &c->stats->closed_stalled,
		    "it took none of the data that waits for "
		    "it", t->stalled_ms);
	else if (c->service == NULL && is_late(age, t->bind_ms))
		give_up(c, &c->stats->closed_unbound,
		    "it bound no service", t->bind_ms);
	/* A paused connection is not idle: its peer may have sent more. */
	else if (!c->paused &&
	    is_late(stream_idle_ms(s, now_ms), t->idle_ms))
		give_up(c, &c->stats->closed_idle, "it was quiet",
		    t->idle_ms);
}

void
rpc_conns_sweep(struct rpc_stats *stats, const struct rpc_timeouts *t,
    uint64_t now_ms)
{
	struct rpc_conn *c, *next;

	for (c = stats->conns; c != NULL; c = next) {
		next = c->next;
		sweep_one(c, t, now_ms);
	}
}

void
rpc_conns_close_those(struct rpc_stats *stats,
    bool (*fn)(struct rpc_conn *c, void *arg), void *arg, const char *reason)
{
	struct rpc_conn *c, *next;

	for (c = stats->conns; c != NULL; c = next) {
		next = c->next;
		if (fn(c, arg))
			rpc_conn_close(c, reason);
	}
}
