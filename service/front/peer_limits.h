/*
 * peer_limits: what each peer takes of the daemon, and what all of them take
 * together: connections, handshakes, memory, bytes per second.
 *
 * A peer is a principal where it is authenticated (UNIX uid, certificate name),
 * and an address without its port (an IPv6 network of 64 bits) before the
 * handshake and where it is not.  An entry lives as long as a connection counts
 * in it.
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
 * Counts a connection that was accepted from p.  handshake: a TLS handshake
 * comes first.  The share is the caller's, until peer_limits_leave().  NULL with
 * a sentence in why: a limit, which it names, or no memory.
 *
 * With max_handshakes in progress the oldest handshake of the peer that has most
 * of them is crowded out: a peer that opens connections and does not go on makes
 * room itself.
 */
struct peer_share *peer_limits_enter(struct peer_limits *t,
    const struct peer *p, bool handshake, char *why, size_t why_size)
    MUST_CHECK;
/* For crowded_out(), at once after peer_limits_enter(). */
void peer_limits_set_owner(struct peer_share *s, void *owner);
/*
 * Ends the handshake: the connection counts for the peer that p names now, no
 * longer for its address.  -1 with a sentence in why: a limit of that peer, or no
 * memory; the share still has to leave.
 */
int peer_limits_opened(struct peer_share *s, const struct peer *p, char *why,
    size_t why_size) MUST_CHECK;
/* The connection ended.  NULL is fine. */
void peer_limits_leave(struct peer_share *s);

/* For stream_set_budgets(); the peer's moves with peer_limits_opened(). */
struct budget *peer_limits_budget_of(struct peer_share *s);
struct budget *peer_limits_budget_of_all(struct peer_limits *t);

/* Current counts, for tests: nothing may be left when all have gone. */
struct peer_limits_counts {
	size_t peers, connections, handshakes;
};
void peer_limits_counts(const struct peer_limits *t,
    struct peer_limits_counts *out);

#endif /* SERVICE_FRONT_PEER_LIMITS_H */
