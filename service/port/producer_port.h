/*
 * producer_port: the ProducerPort service (reference wire-format.md,
 * behaviour.md "Producer port"): from RPC calls to calls on a producer.
 */
#ifndef SERVICE_PORT_PRODUCER_PORT_H
#define SERVICE_PORT_PRODUCER_PORT_H

struct rpc_service;
struct service;

/* Fills out; both must outlive every connection. */
void producer_port_init(struct rpc_service *out, struct service *s);

#endif /* SERVICE_PORT_PRODUCER_PORT_H */
