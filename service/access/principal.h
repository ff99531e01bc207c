/*
 * principal: whose a session is.
 *
 * Two connections are the same principal's when the kernel says the same uid,
 * or certificates say the same name.  Those whom nobody vouches for are one
 * principal together, as they are on today's service.  (reference behaviour.md,
 * "Consumer port": attach and clone want the same uid, or uid 0.)
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
	bool admin;     /* may do with everybody's sessions what owners may */
	char name[128]; /* PEER_CERT: the certificate's; else "" */
};

/* admin: what trust says of the peer. */
void principal_of_peer(struct principal *out, const struct peer *p, bool admin);
/* Whether both are one owner; being admin makes no difference. */
bool principal_equal(const struct principal *a, const struct principal *b);
/* Whether who may see, clone and attach what belongs to owner. */
bool principal_may(const struct principal *who, const struct principal *owner);
/* A number that stands for it in counts (per_peer_count.h). */
uint64_t principal_key(const struct principal *p);
/* "uid 1000", "the certificate \"ann\"", "an unknown peer"; returns out. */
const char *principal_text(const struct principal *p, char *out,
    size_t out_size);

#endif /* SERVICE_ACCESS_PRINCIPAL_H */
