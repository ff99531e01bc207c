/*
 * tls_pair: two tls_conns over a socket pair, driven by turns.
 */
#ifndef TESTS_UNIT_TRANSPORT_TLS_TLS_PAIR_H
#define TESTS_UNIT_TRANSPORT_TLS_TLS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "transport/tls/tls.h"

struct tls_pair {
	int fd[2]; /* server, client; -1: closed */
	struct tls_conn *server;
	struct tls_conn *client;
	int server_rc; /* of the last handshake call */
	int client_rc;
};

/* The client asks for host. */
void tls_pair_init(struct tls_pair *p, struct tls_context *server,
    struct tls_context *client, const char *host);
void tls_pair_done(struct tls_pair *p);

/*
 * By turns until both are done, or one has failed and the other has seen what
 * it had to say.  A client that is done although the server refuses it has
 * received once more.  True: both are done.
 */
bool tls_pair_shake(struct tls_pair *p);

ssize_t tls_pair_send(struct tls_conn *t, const void *bytes, size_t len);
ssize_t tls_pair_receive(struct tls_conn *t, void *bytes, size_t len);

/* One byte each way, so that the client has got its ticket. */
void tls_pair_chat(struct tls_pair *p);

#endif /* TESTS_UNIT_TRANSPORT_TLS_TLS_PAIR_H */
