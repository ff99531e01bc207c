/*
 * tls_error: keeps a connection's first error as a sentence (tls_conn_error()),
 * which tls_text writes.  Private to tls_*.c.
 */
#ifndef TRANSPORT_TLS_TLS_ERROR_H
#define TRANSPORT_TLS_TLS_ERROR_H

#include "transport/tls/tls_text.h"

struct tls_conn;

/* Fills in what the sentences about t name. */
void tls_error_words(const struct tls_conn *t, struct tls_words *w);
/* Keeps a sentence (copied); the first one stays. */
void tls_error_say(struct tls_conn *t, const char *sentence);
/*
 * The connection ended before the handshake was done, with an errno (0: the
 * peer closed it).
 */
void tls_error_left(struct tls_conn *t, int error);
/* OpenSSL gave up; its first code is the cause of the others. */
void tls_error_reason(struct tls_conn *t, unsigned long code);

#endif /* TRANSPORT_TLS_TLS_ERROR_H */
