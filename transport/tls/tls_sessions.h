/*
 * tls_sessions: resumption of TLS sessions, both ends of it.
 *
 * A server keeps no state: its tickets carry the peer's certificate and the
 * time until which its verification is valid; later tickets are ignored, and
 * the peer is verified anew.  A client keeps the last session of each host,
 * until the time by which it verified the server's certificate.  Private to
 * tls_*.c and their tests.
 */
#ifndef TRANSPORT_TLS_TLS_SESSIONS_H
#define TRANSPORT_TLS_TLS_SESSIONS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "transport/base/compiler.h"

struct tls_conn;

/* Seconds after a certificate was verified in which its peer may resume. */
#define TLS_RESUME_SECONDS 3600

/* Callbacks of a server's or client's SSL_CTX; app data of an SSL: tls_conn. */
int tls_sessions_attach(SSL_CTX *ctx, bool is_server) MUST_CHECK;

/* A client offers what it keeps for its host, sets t->offered. */
void tls_sessions_offer(struct tls_conn *t);
/* The handshake is over, either way: drops an offered session if refused. */
void tls_sessions_settle(struct tls_conn *t);

#endif /* TRANSPORT_TLS_TLS_SESSIONS_H */
