/*
 * tls_bio: the BIO between OpenSSL and a socket: as OpenSSL's own (kernel TLS
 * included), but no write raises SIGPIPE, and the tls_conn sees what is read.
 * Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_BIO_H
#define TRANSPORT_TLS_TLS_BIO_H

#include <openssl/bio.h>

#include "transport/base/compiler.h"

struct tls_conn;

/* For t->fd, which stays its owner's.  NULL: no memory. */
BIO *tls_bio_new(struct tls_conn *t) MUST_CHECK;

#endif /* TRANSPORT_TLS_TLS_BIO_H */
