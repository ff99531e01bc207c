/*
 * control_port: the TributaryControl service: what our own commands ask a
 * collector beyond Perfetto's ports (protos/control.proto).  It stands wherever
 * ConsumerPort does, and wants the same role: a consumer sees all machines'
 * data anyway.  Sessions it shows and commands where they are the peer's own,
 * to admins everybody's.
 */
#ifndef SERVICE_PORT_CONTROL_PORT_H
#define SERVICE_PORT_CONTROL_PORT_H

struct rpc_service;
struct service;

/* Fills out; both must outlive every connection. */
void control_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_CONTROL_PORT_H */
