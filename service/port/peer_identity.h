/*
 * peer_identity: which machine a connection speaks for, and the uid and pid
 * that label what it writes.
 *
 * UNIX: what the kernel says, and the host.  A SetPeerIdentity is ignored, as
 * today's service does.
 *
 * TCP, vsock with SetPeerIdentity: the claimed pid and uid, and the machine
 * that the claimed hint stands for.  Its id is the low half of the 64-bit
 * FNV-1a hash of the hint (without one: of the peer's address without its
 * port), 1 in the place of 0: the ids that today's service gives, so that
 * traces of both can be laid side by side.  A hint that is this host's own
 * boot_id makes a remote machine like any other, as it does there: that is how
 * a relay is tried out on one machine.
 *
 * TCP, vsock without it: the host as today, but uid PEER_UID_UNKNOWN, not 0.
 *
 * None of this authorises anything.
 */
#ifndef SERVICE_PORT_PEER_IDENTITY_H
#define SERVICE_PORT_PEER_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

struct machine;
struct peer;
struct rpc_claimed_identity;
struct rpc_conn;
struct service;

/*
 * Of a producer's connection.  *machine is made when it is new; NULL when that
 * failed (no memory, too many machines): refuse the connection.
 */
void producer_identity(struct service *s, struct rpc_conn *c, int32_t *uid,
    int32_t *pid, struct machine **machine);

/*
 * The machine of a relay's own connection: as for a producer, but a relay on
 * TCP or vsock that claims nothing is known by its address, so that what it
 * says of its machine is never taken for the host's.  On a UNIX socket: the
 * host.
 */
struct machine *relay_machine(struct service *s, struct rpc_conn *c) MUST_CHECK;

/*
 * The pure part: id and name of the machine behind a TCP or vsock peer.
 * name is the claimed one, or the address without its port.
 */
uint32_t peer_machine_id(const struct peer *p,
    const struct rpc_claimed_identity *claimed);
void peer_machine_name(const struct peer *p,
    const struct rpc_claimed_identity *claimed, char *out, size_t out_size);

#endif /* SERVICE_PORT_PEER_IDENTITY_H */
