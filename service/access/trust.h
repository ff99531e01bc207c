/*
 * trust: which roles a peer has (transport/socket/roles.h).
 *
 * Rules are read in their order; the first that fits the peer decides, also
 * where it gives nothing.  Where none fits:
 *   - a UNIX peer may be what the socket that it could open is for; root and
 *     the daemon's own user (the one that it becomes) are admins.  Behind a
 *     tunnel it is the user whom the tunnel runs as, whom sshd has verified;
 *   - a certificate gives the role that it carries, a role that is none
 *     nothing; one without a role gives what settings say
 *     (`certificate_default`: producer and relay);
 *   - nobody (plain TCP, vsock) may be producer and relay, and a consumer only
 *     on a socket that was opened for that (`allow_plain_consumer`).
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
 * s is borrowed for its life.  NULL with a sentence in err: a user or group
 * that does not exist, memory.
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
 * Whether a peer may name its machine as it likes; otherwise its certificate's
 * name is the machine's.  Peers without a certificate may (labels only).
 */
bool trust_may_claim_machine(const struct trust *t, const struct peer *p);

/*
 * A sentence for the log and for the peer: what it is ("the certificate
 * \"device-7\""), what it wanted, what it may, and which setting would allow
 * it.
 */
void trust_refusal(const struct peer *p, uint32_t has, enum role wanted,
    char *out, size_t out_size);

#endif /* SERVICE_ACCESS_TRUST_H */
