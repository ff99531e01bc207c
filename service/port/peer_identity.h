/*
 * peer_identity: which machine a connection speaks for, and the uid and pid
 * that label its packets.
 *
 * UNIX: the kernel's uid and pid, and the host; a SetPeerIdentity is ignored,
 * as in Perfetto's service.  A peer that a tunnel forwards (peer.h) and that
 * names a machine gets that machine, and the claimed pid and uid.
 *
 * TCP, vsock with SetPeerIdentity: the claimed pid and uid (an unauthenticated
 * claim of uid 0 becomes PEER_UID_UNKNOWN), and the machine that the claimed
 * hint stands for.  Its id is the low half of the 64-bit FNV-1a hash of the
 * hint (without one: of the peer's address without its port), 1 in the place of
 * 0: the ids that Perfetto's service gives, so that traces of both can be
 * compared.  A hint that is this host's own boot_id makes a remote machine like
 * any other, as it does there: that is how a relay is tried out on one
 * machine.  Without SetPeerIdentity: the host, as in Perfetto's service, but
 * uid PEER_UID_UNKNOWN, not 0.  An unauthenticated producer that says that it
 * runs on the host's clocks is treated in the same way.
 *
 * A certificate names its machine, unless the rules let it name others; the id
 * is the hash of both, certificate and hint.  A device that we dialled (ssh) is
 * named by the settings.  Neither is ever taken for the host, nor for a machine
 * of the same name that another peer claims (machine.h).
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

/* Whether a connection's producer may run on other clocks than ours. */
bool producer_may_be_elsewhere(const struct service *s, struct rpc_conn *c);

/*
 * The name that a producer's connection gives its machine; lives as long as the
 * connection.  NULL: it gives none, or may not; the machine's name holds.
 */
const char *producer_machine_claim(const struct service *s,
    const struct rpc_conn *c);

/*
 * The machine of a relay's own connection: as for a producer, but a relay on
 * TCP or vsock that claims nothing is known by its address, so that its
 * SystemInfo and clocks are never taken for the host's.  On a UNIX socket: the
 * host, unless a tunnel forwards it and it names another.  To be referred to at
 * once; NULL: no memory, or too many machines.
 */
struct machine *relay_machine(struct service *s, struct rpc_conn *c) MUST_CHECK;

/*
 * The machine of a link, whose LinkOpen has the labels hint and name (copied;
 * NULL or "": not given, as for relay_machine()).  On a UNIX socket without a
 * tunnel, too, the labels make a machine of their own, which belongs to the
 * uid: that is how relays in containers connect, and how a relay is tried out
 * on one machine.  To be referred to at once.  NULL with a sentence in *why
 * (static).
 */
struct machine *link_machine_of(struct service *s, struct rpc_conn *c,
    const char *hint, const char *name, const char **why) MUST_CHECK;

/* Whether the peer may name its machine: no dial, and the rules let it. */
bool peer_names_machine(const struct trust *t, const struct peer *p);

/* A peer's key in counts: a hash of its uid, certificate's name or address. */
uint64_t peer_count_key(const struct peer *p);

/*
 * machine_presence_came(), of a peer.  software: what it says that it runs; or
 * NULL.
 */
void peer_tell_machine(const struct peer *p, struct machine *m,
    enum machine_reach reach, const char *software);

/* The pure part: the machine behind a peer. */
struct peer_machine {
	bool is_host; /* the rest means nothing then */
	uint32_t id;
	char name[MACHINE_NAME_MAX + 1];
	bool named; /* the peer gave the name, and may */
	char owner[160]; /* authenticated peer that vouches; "": none */
};
void peer_machine_of(const struct trust *t, const struct peer *p,
    const struct rpc_claimed_identity *claimed, struct peer_machine *out);
/* The pure part: the uid and pid that label the peer's packets. */
void peer_labels(const struct peer *p,
    const struct rpc_claimed_identity *claimed, int32_t *uid, int32_t *pid);

#endif /* SERVICE_PORT_PEER_IDENTITY_H */
