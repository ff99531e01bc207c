/*
 * tls_verify: decides about the peer's certificate: OpenSSL's rules, the
 * revocation lists where they say anything, and names that can be told apart.
 * Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_VERIFY_H
#define TRANSPORT_TLS_TLS_VERIFY_H

#include <openssl/ssl.h>

/* App data of an SSL made from it: tls_conn, which gets the sentence. */
void tls_verify_attach(SSL_CTX *ctx);

#endif /* TRANSPORT_TLS_TLS_VERIFY_H */
