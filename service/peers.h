/*
 * peers: what each peer takes of the daemon, and what all of them take
 * together: connections, handshakes, memory, bytes per second.
 *
 * A peer is a principal where somebody vouches for it (UNIX uid, certificate
 * name), and an address without its port (an IPv6 network of 64 bits) before the
 * handshake and where nobody does.  An entry lives as long as a connection counts in it.
 */
#ifndef SERVICE_PEERS_H
#define SERVICE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/budget.h"
#include "transport/compiler.h"

struct limits;
struct peer;
struct peers;
struct peer_share; /* one connection's place in the counts */

/*
 * limits is borrowed for its life.  crowded_out: the connection of this owner
 * has to end, as its handshake made room for another's; called from within
 * peers_enter(), with a sentence that names the limit.
 */
struct peers *peers_new(const struct limits *limits,
    void (*crowded_out)(void *owner, const char *why)) MUST_CHECK;
void peers_free(struct peers *t);

/*
 * A connection was accepted from there; handshake: it has one before it.  NULL:
 * a limit says no (sentence in why, with the limit's name), or no memory.
 *
 * With max_handshakes in progress the oldest of the peer that has most of them
 * is crowded out: who opens connections and does not go on makes room himself.
 */
struct peer_share *peers_enter(struct peers *t, const struct peer *p,
    bool handshake, char *why, size_t why_size) MUST_CHECK;
/* For crowded_out(), at once after peers_enter(). */
void peers_set_owner(struct peer_share *s, void *owner);
/*
 * The handshake is over: it counts for who the peer is now, no longer for the
 * address alone.  -1: that peer's limits say no; leave it then.
 */
int peers_opened(struct peer_share *s, const struct peer *p, char *why,
    size_t why_size) MUST_CHECK;
/* The connection ended.  NULL is fine. */
void peers_leave(struct peer_share *s);

/* For stream_set_budgets(); the peer's moves with peers_opened(). */
struct budget *peers_budget_of(struct peer_share *s);
struct budget *peers_budget_of_all(struct peers *t);

/* For the log and statistics. */
struct peers_counts {
	size_t peers, connections, handshakes;
	uint64_t refused_connections, refused_handshakes, refused_of_peer;
	uint64_t crowded_out;
};
void peers_counts(const struct peers *t, struct peers_counts *out);

#endif /* SERVICE_PEERS_H */
