/*
 * principal: the owner of a session.
 *
 * Two connections belong to the same principal when the kernel reports the same
 * uid, or their certificates have the same name.  All unauthenticated peers are
 * one principal, as in Perfetto's service.  (reference behaviour.md, "Consumer
 * port": attach and clone want the same uid, or uid 0.)
 */
#ifndef SERVICE_ACCESS_PRINCIPAL_H
#define SERVICE_ACCESS_PRINCIPAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/socket/peer.h"

struct principal {
	enum peer_auth auth;
	uint32_t uid;   /* PEER_UID_UNKNOWN unless PEER_UNIX */
	bool admin;     /* has the rights of every session's owner */
	char name[128]; /* PEER_CERT: the certificate's; else "" */
};

/* admin: whether trust_roles() has ROLE_ADMIN for the peer. */
void principal_of_peer(struct principal *out, const struct peer *p, bool admin);
/* Whether both are one owner; being admin makes no difference. */
bool principal_equal(const struct principal *a, const struct principal *b);
/* Whether who may see, clone, attach and command sessions of owner. */
bool principal_may(const struct principal *who, const struct principal *owner);
/* The principal's key in counts (per_peer_count.h): a hash. */
uint64_t principal_key(const struct principal *p);
/* "uid 1000", "the certificate \"ann\"", "an unknown peer"; returns out. */
const char *principal_text(const struct principal *p, char *out,
    size_t out_size);

#endif /* SERVICE_ACCESS_PRINCIPAL_H */
