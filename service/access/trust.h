/*
 * trust: which roles a peer has (transport/socket/roles.h).
 *
 * Rules are read in their order; the first that matches the peer decides, also
 * where it gives no role.  Where none matches:
 *   - a UNIX peer may have each role but admin, as file permissions decide
 *     which socket it can open; root and the daemon's own user (the one that it
 *     becomes) are admins.  Behind a tunnel the peer is the user that the
 *     tunnel runs as, whom sshd has verified;
 *   - a certificate gives the role that it carries, an unknown role none; one
 *     without a role, and each where `ignore_certificate_roles` is set, gives
 *     the settings' roles (`certificate_default`: producer and relay);
 *   - an unauthenticated peer (plain TCP, vsock) may be producer and relay, and
 *     a consumer only on a socket that was opened for that
 *     (`allow_plain_consumer`).
 * A user is in a group when it is the peer's group, or when the group's list
 * names the user; both are looked up once, when the rules are made.  Names are
 * compared byte by byte, "*" and "?" standing for any bytes and any one.  Pure
 * but for those look-ups.
 */
#ifndef SERVICE_ACCESS_TRUST_H
#define SERVICE_ACCESS_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/socket/peer.h"
#include "transport/socket/roles.h"

struct settings;
struct trust;

/*
 * s is borrowed as long as the result lives.  NULL with a sentence in err: a
 * user or group that does not exist, or no memory.
 */
struct trust *trust_new(const struct settings *s, char *err, size_t err_size)
    MUST_CHECK;
void trust_free(struct trust *t);

/*
 * Returns the roles of a peer at a listener, widened.  plain_consumer: the
 * listener's allow_plain_consumer.  t NULL, here and below: no rules.
 */
uint32_t trust_roles(const struct trust *t, const struct peer *p,
    bool plain_consumer);

/*
 * Whether a peer may choose its machine's name; otherwise the machine has the
 * name of the certificate.  Peers without a certificate may.
 */
bool trust_may_claim_machine(const struct trust *t, const struct peer *p);

/*
 * Writes a sentence for the log and for the peer: the peer's identity ("the
 * certificate \"device-7\""), the role that it wanted, the roles that it has,
 * and the setting that would allow it.
 */
void trust_refusal(const struct peer *p, uint32_t has, enum role wanted,
    char *out, size_t out_size);

#endif /* SERVICE_ACCESS_TRUST_H */
