/*
 * peer_identity: which machine a connection speaks for, and the uid and pid
 * that label what it writes.
 *
 * UNIX: what the kernel says, and the host; a SetPeerIdentity is ignored, as
 * today's service does.  Where a tunnel forwards it (peer.h) and it names a
 * machine, that machine, and the claimed pid and uid.
 *
 * TCP, vsock with SetPeerIdentity: the claimed pid and uid (0, which nobody
 * vouches for, becomes PEER_UID_UNKNOWN), and the machine that the claimed hint
 * stands for.  Its id is the low half of the 64-bit FNV-1a hash of the hint
 * (without one: of the peer's address without its port), 1 in the place of 0:
 * the ids that today's service gives, so that traces of both can be laid side
 * by side.  A hint that is this host's own boot_id makes a remote machine like
 * any other, as it does there: that is how a relay is tried out on one machine.
 * Without it: the host as today, but uid PEER_UID_UNKNOWN, not 0.  So is a
 * producer that says that it runs on the host's clocks: its timestamps are.
 *
 * A certificate names its machine, unless the rules let it name others; the id
 * is the hash of both, certificate and hint.  A device that we dialled (ssh) is
 * named by the settings.  Neither is ever taken for the host, nor for a machine
 * that somebody else names alike (machine.h).
 *
 * None of this authorises anything.
 */
#ifndef SERVICE_PORT_PEER_IDENTITY_H
#define SERVICE_PORT_PEER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/machine/machine.h"
#include "transport/base/compiler.h"

struct peer;
struct rpc_claimed_identity;
struct rpc_conn;
struct service;
struct trust;

/*
 * For a producer's connection.  *machine is made when it is new, to be referred
 * to at once; NULL when that failed (no memory, too many machines): refuse the
 * connection.
 */
void producer_identity(struct service *s, struct rpc_conn *c, int32_t *uid,
    int32_t *pid, struct machine **machine);

/* Whether it may run on other clocks than ours. */
bool producer_may_be_elsewhere(const struct service *s, struct rpc_conn *c);

/*
 * The name that a producer's connection gives its machine; lives as long as the
 * connection.  NULL: it gives none, or may not, and is called as the machine.
 */
const char *producer_machine_claim(const struct service *s,
    const struct rpc_conn *c);

/*
 * The machine of a relay's own connection: as for a producer, but a relay on
 * TCP or vsock that claims nothing is known by its address, so that what it
 * says of its machine is never taken for the host's.  On a UNIX socket: the
 * host, unless a tunnel forwards it and it names another.
 */
struct machine *relay_machine(struct service *s, struct rpc_conn *c) MUST_CHECK;

/*
 * The machine of a link, which says the labels itself (copied); what it leaves
 * out is as for relay_machine().  On a UNIX socket that is no tunnel's the
 * labels make a machine of their own, too, which the uid vouches for: that is
 * how containers come, and how a relay is tried out on one machine.  NULL with a
 * sentence in *why (static).
 */
struct machine *link_machine_of(struct service *s, struct rpc_conn *c,
    const char *hint, const char *name, const char **why) MUST_CHECK;

/* Whether the machine has the name that the peer gives it. */
bool peer_names_machine(const struct trust *t, const struct peer *p);

/* The number that a peer has in counts: user, certificate's name or address. */
uint64_t peer_count_key(const struct peer *p);

/* How it is known: "certificate door", "uid 1000", "nobody vouches"; out. */
const char *peer_authenticated_text(const struct peer *p, char *out,
    size_t out_size);

/* The pure part: the machine behind a peer. */
struct peer_machine {
	bool is_host; /* the rest means nothing then */
	uint32_t id;
	char name[MACHINE_NAME_MAX + 1];
	bool named; /* so claimed, and it may claim it */
	char owner[160]; /* "": nobody vouches */
};
void peer_machine_of(const struct trust *t, const struct peer *p,
    const struct rpc_claimed_identity *claimed, struct peer_machine *out);
/* And the labels. */
void peer_labels(const struct peer *p,
    const struct rpc_claimed_identity *claimed, int32_t *uid, int32_t *pid);

#endif /* SERVICE_PORT_PEER_IDENTITY_H */
