/*
 * link_port: the TributaryLink service: connections of relays that keep one for
 * all their producers (protos/link.proto, docs/link-protocol.md).
 *
 * Open finds or makes the link (service/link/link.h), which outlives the
 * connection; Up is parsed and applied in place; Down carries the link's blocks
 * and reports, at the end of each turn of the loop.  A relay that breaks the
 * protocol is told why, and loses its link.
 *
 * A relay is authenticated like every peer; its labels name the machine as in
 * peer_identity.h.  A relay on a UNIX socket without a label is refused, as
 * nothing names its machine.
 */
#ifndef SERVICE_PORT_LINK_PORT_H
#define SERVICE_PORT_LINK_PORT_H

struct rpc_service;
struct service;

/* Fills out, which lives as long as the daemon, as does s. */
void link_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_LINK_PORT_H */
