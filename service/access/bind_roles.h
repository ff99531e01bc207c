/*
 * bind_roles: whether a peer may bind a service, by the role that it takes.
 */
#ifndef SERVICE_ACCESS_BIND_ROLES_H
#define SERVICE_ACCESS_BIND_ROLES_H

#include <stdbool.h>
#include <stddef.h>

struct peer;
struct rpc_service;
struct trust;

/*
 * For rpc_guard's may_bind.  plain_consumer: the door's allow_plain_consumer.
 * False: a sentence is in why (RPC_WHY_MAX bytes), for the peer and the log.
 */
bool bind_roles_permit(const struct trust *t, const struct rpc_service *s,
    const struct peer *p, bool plain_consumer, char *why);

#endif /* SERVICE_ACCESS_BIND_ROLES_H */
