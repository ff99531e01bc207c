/*
 * control_port: the TributaryControl service: requests of our own commands to a
 * collector beyond Perfetto's ports (protos/control.proto).  It is offered
 * wherever ConsumerPort is, and wants the same role: a consumer sees all
 * machines' data anyway.  A peer sees and commands its own sessions, an admin
 * all.
 */
#ifndef SERVICE_PORT_CONTROL_PORT_H
#define SERVICE_PORT_CONTROL_PORT_H

struct rpc_service;
struct service;

/* Fills out; both must outlive every connection. */
void control_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_CONTROL_PORT_H */
