/*
 * tls_verify: accepts or refuses the peer's certificate: by OpenSSL's rules,
 * the revocation lists, if any, and names that are unambiguous
 * (tls_identity_init()).  Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_VERIFY_H
#define TRANSPORT_TLS_TLS_VERIFY_H

#include <openssl/ssl.h>

/*
 * Installs the check.  The app data of each SSL made from ctx has to be its
 * tls_conn, which gets the sentence about a refusal.
 */
void tls_verify_attach(SSL_CTX *ctx);

#endif /* TRANSPORT_TLS_TLS_VERIFY_H */
