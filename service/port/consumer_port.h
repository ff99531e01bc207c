/*
 * consumer_port: the ConsumerPort service (reference wire-format.md,
 * behaviour.md "Consumer port"): from RPC calls to calls on a session.
 */
#ifndef SERVICE_PORT_CONSUMER_PORT_H
#define SERVICE_PORT_CONSUMER_PORT_H

struct rpc_service;
struct service;

/* Fills out; both must outlive every connection. */
void consumer_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_CONSUMER_PORT_H */
