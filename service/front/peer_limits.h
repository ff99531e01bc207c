/*
 * peer_limits: what each peer takes of the daemon, and what all of them take
 * together: connections, handshakes, memory, bytes per second.
 *
 * A peer is a principal where somebody vouches for it (UNIX uid, certificate
 * name), and an address without its port (an IPv6 network of 64 bits) before the
 * handshake and where nobody does.  An entry lives as long as a connection counts in it.
 */
#ifndef SERVICE_FRONT_PEER_LIMITS_H
#define SERVICE_FRONT_PEER_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/budget.h"
#include "transport/base/compiler.h"

struct limits;
struct peer;
struct peer_limits;
struct peer_share; /* one connection's place in the counts */

/*
 * limits is borrowed for its life.  crowded_out: the connection of this owner
 * has to end, as its handshake made room for another's; called from within
 * peer_limits_enter(), with a sentence that names the limit.
 */
struct peer_limits *peer_limits_new(const struct limits *limits,
    void (*crowded_out)(void *owner, const char *why)) MUST_CHECK;
void peer_limits_free(struct peer_limits *t);

/*
 * A connection was accepted from there; handshake: it has one before it.  NULL:
 * a limit says no (sentence in why, with the limit's name), or no memory.
 *
 * With max_handshakes in progress the oldest of the peer that has most of them
 * is crowded out: who opens connections and does not go on makes room himself.
 */
struct peer_share *peer_limits_enter(struct peer_limits *t,
    const struct peer *p,
    bool handshake, char *why, size_t why_size) MUST_CHECK;
/* For crowded_out(), at once after peer_limits_enter(). */
void peer_limits_set_owner(struct peer_share *s, void *owner);
/*
 * The handshake is over: it counts for who the peer is now, no longer for the
 * address alone.  -1: that peer's limits say no; leave it then.
 */
int peer_limits_opened(struct peer_share *s, const struct peer *p, char *why,
    size_t why_size) MUST_CHECK;
/* The connection ended.  NULL is fine. */
void peer_limits_leave(struct peer_share *s);

/* For stream_set_budgets(); the peer's moves with peer_limits_opened(). */
struct budget *peer_limits_budget_of(struct peer_share *s);
struct budget *peer_limits_budget_of_all(struct peer_limits *t);

/* For the log and statistics. */
struct peer_limits_counts {
	size_t peers, connections, handshakes;
	uint64_t refused_connections, refused_handshakes, refused_of_peer;
	uint64_t crowded_out;
};
void peer_limits_counts(const struct peer_limits *t,
    struct peer_limits_counts *out);

#endif /* SERVICE_FRONT_PEER_LIMITS_H */
