/*
 * relay_port: the RelayPort service: a relay introduces its machine
 * (InitRelay), then measures how far its clocks are from ours (SyncClock, again
 * and again).  Both are stored in the machine, for the traces of all sessions,
 * and stay when the relay is gone.
 *
 * InitRelay is taken once a connection, SyncClock in the order of
 * clock_exchange.h; a relay that is too old for InitRelay may leave it out.
 * A message out of order is rejected and logged at a limited rate; the
 * connection goes on.
 *
 * On a UNIX socket a relay's machine cannot be told from ours: its calls are
 * answered, a warning says that they have no effect.
 */
#ifndef SERVICE_PORT_RELAY_PORT_H
#define SERVICE_PORT_RELAY_PORT_H

struct rpc_service;
struct service;

/* Fills out, which lives as long as the daemon, as does s. */
void relay_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_RELAY_PORT_H */
