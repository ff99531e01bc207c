/*
 * roles: what a peer may be.  A set of roles is a bit mask.
 *
 * A certificate of our own making carries its role as a URI among its subject
 * alternative names, "urn:tributary:role:producer"; settings give roles to
 * names, users and groups (service/access/trust.h).
 */
#ifndef TRANSPORT_SOCKET_ROLES_H
#define TRANSPORT_SOCKET_ROLES_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

enum role {
	ROLE_PRODUCER = 1, /* ProducerPort */
	ROLE_RELAY = 2,    /* RelayPort, and the producers behind it */
	ROLE_CONSUMER = 4, /* ConsumerPort: one's own sessions */
	ROLE_ADMIN = 8,    /* ConsumerPort: all owners' sessions */
};
#define ROLES_ALL 15u
/*
 * Beside these, of a certificate: it names a role that we do not know.  Keeps
 * it apart from a certificate without a role, which gets a default.
 */
#define ROLE_UNKNOWN 16u

#define ROLE_URI_PREFIX "urn:tributary:role:"

/* "producer", "relay", "consumer", "admin". */
const char *role_name(enum role role);
/* The role of a name, in any case of letters; 0: it is no role's. */
uint32_t role_by_name(const char *name);
/*
 * The role that a URI of a certificate gives; ROLE_UNKNOWN for any other URI
 * below "urn:tributary:", in any case of letters; 0 for all other URIs.
 */
uint32_t role_from_uri(const char *uri, size_t len);

/* Adds implied roles: a relay is a producer, an admin a consumer. */
uint32_t roles_widen(uint32_t roles);
/* Writes "producer, relay" or "nothing" to out; returns out. */
const char *roles_text(uint32_t roles, char *out, size_t out_size);

#endif /* TRANSPORT_SOCKET_ROLES_H */
