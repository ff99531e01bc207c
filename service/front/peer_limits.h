/*
 * peer_limits: counts and bounds the connections, TLS handshakes, memory and
 * bytes per second of each peer, and of all peers together.
 *
 * A peer is a principal where it is authenticated (UNIX uid, certificate name),
 * and an address without its port (an IPv6 network of 64 bits) before the
 * handshake and where it is not.  A peer's entry lives as long as a connection
 * counts in it.
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
 * limits is borrowed as long as the table lives.  crowded_out: ends the
 * connection of this owner, as its handshake made room for another's; called
 * from within peer_limits_enter(), with a sentence (borrowed) that names the
 * limit.  NULL: no memory.
 */
struct peer_limits *peer_limits_new(const struct limits *limits,
    void (*crowded_out)(void *owner, const char *why)) MUST_CHECK;
void peer_limits_free(struct peer_limits *t);

/*
 * Counts a connection that was accepted from p.  handshake: a TLS handshake
 * comes first.  The share is the caller's, until peer_limits_leave().  NULL
 * with a sentence in why: a limit, which it names, or no memory.
 *
 * With max_handshakes in progress, the oldest handshake of the address that has
 * most of them is crowded out: so an address with many unfinished handshakes
 * makes the room.
 */
struct peer_share *peer_limits_enter(struct peer_limits *t,
    const struct peer *p, bool handshake, char *why, size_t why_size)
    MUST_CHECK;
/* Sets crowded_out()'s owner; to be called right after peer_limits_enter(). */
void peer_limits_set_owner(struct peer_share *s, void *owner);
/*
 * Ends the handshake: the connection counts for the peer that p names now, no
 * longer for its address.  -1 with a sentence in why: a limit of that peer, or
 * no memory; the caller still calls peer_limits_leave().
 */
int peer_limits_opened(struct peer_share *s, const struct peer *p, char *why,
    size_t why_size) MUST_CHECK;
/* The connection ended: frees its share.  NULL is fine. */
void peer_limits_leave(struct peer_share *s);

/*
 * Budgets for stream_set_budgets(); borrowed.  peer_limits_opened() changes the
 * peer's, and the old one may be freed.
 */
struct budget *peer_limits_budget_of(struct peer_share *s);
struct budget *peer_limits_budget_of_all(struct peer_limits *t);

/* The first three are 0 when the last connection has ended. */
struct peer_limits_counts {
	size_t peers, connections, handshakes;
	uint64_t crowded_out; /* handshakes that were, since the start */
};
void peer_limits_counts(const struct peer_limits *t,
    struct peer_limits_counts *out);

#endif /* SERVICE_FRONT_PEER_LIMITS_H */
