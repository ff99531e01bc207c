/*
 * renew_ca: a new certificate for the key of a CA.
 */
#ifndef CLIENT_CERT_RENEW_CA_H
#define CLIENT_CERT_RENEW_CA_H

#include <stddef.h>

#include "client/cert/authority.h"
#include "transport/base/compiler.h"

/*
 * Renews the CA's certificate, with the same name and key, for o->days from
 * o->now: certificates that the CA has signed stay valid.  Writes it into the
 * CA's folder and the folders of devices in it, and a revocation list that is
 * valid until the new end.  Reads dir, days and now of o.  -1 with a sentence:
 * nothing was changed, unless the sentence names a file that could not be put
 * in place (client/cert/atomic_files.h).
 */
int cert_renew_ca(const struct cert_order *o, struct cert_outcome *done,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_CERT_RENEW_CA_H */
