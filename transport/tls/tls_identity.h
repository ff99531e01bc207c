/*
 * tls_identity: name, roles and validity of a certificate's holder, copied out
 * of the certificate.
 * Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_IDENTITY_H
#define TRANSPORT_TLS_TLS_IDENTITY_H

#include <openssl/x509.h>
#include <stddef.h>
#include <time.h>

#include "transport/base/compiler.h"
#include "transport/tls/tls.h"

/* Names beyond are left out of the alternatives (their roles are not). */
#define TLS_ALTERNATIVES_MAX 64
#define TLS_ALTERNATIVE_BYTES 512

/*
 * -1 with a reason in why ("holds a name with a NUL character in it"): a name
 * that would be read differently by different readers, or by its length.  Then
 * nothing has to be freed.
 */
int tls_identity_init(struct tls_identity *id, X509 *cert, const char **why)
    MUST_CHECK;
void tls_identity_done(struct tls_identity *id);

/* Seconds since 1970; a date that cannot be read is 0. */
time_t tls_identity_time(const ASN1_TIME *t);

#endif /* TRANSPORT_TLS_TLS_IDENTITY_H */
