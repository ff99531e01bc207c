/*
 * load_tls: TLS for load, either end, over transport/tls/tls.h.
 *
 * As load_conn: any failure ends the process with a sentence.
 */
#ifndef TESTS_LOAD_LOAD_TLS_H
#define TESTS_LOAD_LOAD_TLS_H

#include "transport/tls/tls.h"

/* Files of a directory as --tls-dir names it.  The caller frees it. */
struct tls_context *load_tls_context(const char *dir, enum tls_side side);

/*
 * What connections to tls:// addresses are made from, from now on; borrowed
 * until the next call.  NULL: none are.
 */
void load_tls_use(struct tls_context *clients);

/*
 * Client over a connected socket (made non-blocking), whose peer has to be
 * host.  load_tls_new() leaves the handshake to the caller, load_tls_open()
 * waits for it.
 */
struct tls_conn *load_tls_new(int fd, const char *host);
struct tls_conn *load_tls_open(int fd, const char *host);

/* Waits for what the connection waits for. */
void load_tls_wait(int fd, const struct tls_conn *t);

#endif /* TESTS_LOAD_LOAD_TLS_H */
