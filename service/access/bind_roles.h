/*
 * bind_roles: whether a peer may bind a service, by the role that it takes.
 */
#ifndef SERVICE_ACCESS_BIND_ROLES_H
#define SERVICE_ACCESS_BIND_ROLES_H

#include <stdbool.h>
#include <stddef.h>

struct peer;
struct trust;

/*
 * Whether p may bind the service of this name.  t NULL: no rules.
 * plain_consumer: the listener's allow_plain_consumer.  False: a sentence is in
 * why, for the peer and the log.
 */
bool bind_roles_permit(const struct trust *t, const char *service,
    const struct peer *p, bool plain_consumer, char *why, size_t why_size);

#endif /* SERVICE_ACCESS_BIND_ROLES_H */
