#include "tests/unit/transport/tls/tls_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "tls_pair:%d: %s\n", __LINE__, #cond); \
			abort();                                               \
		}                                                              \
	} while (0)

/* A handshake of turns is over long before. */
#define TURNS_MAX 100

void
tls_pair_init(struct tls_pair *p, struct tls_context *server,
    struct tls_context *client, const char *host)
{
	memset(p, 0, sizeof(*p));
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
	    p->fd) == 0);
	p->server = tls_conn_new(server, p->fd[0], NULL, "10.0.0.7:4711");
	p->client = tls_conn_new(client, p->fd[1], host, "collector:7443");
	MUST(p->server != NULL && p->client != NULL);
}

void
tls_pair_done(struct tls_pair *p)
{
	int i;

	tls_conn_free(p->server);
	tls_conn_free(p->client);
	for (i = 0; i < 2; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	memset(p, 0, sizeof(*p));
}

bool
tls_pair_shake(struct tls_pair *p)
{
	char byte;
	int i;

	for (i = 0; i < TURNS_MAX; i++) {
		if (p->client_rc == 0)
			p->client_rc = tls_conn_handshake(p->client);
		if (p->server_rc == 0)
			p->server_rc = tls_conn_handshake(p->server);
		if (p->client_rc == 1 && p->server_rc == 1)
			return true;
		if (p->client_rc < 0 && p->server_rc < 0)
			return false;
		if (p->client_rc == 1 && p->server_rc < 0) {
			MUST(tls_pair_receive(p->client, &byte, 1) <= 0);
			return false;
		}
	}
	MUST(!"the handshake does not end");
	return false;
}

ssize_t
tls_pair_send(struct tls_conn *t, const void *bytes, size_t len)
{
	struct iovec iov = { (void *)bytes, len };

	return tls_conn_send(t, &iov, 1);
}

ssize_t
tls_pair_receive(struct tls_conn *t, void *bytes, size_t len)
{
	struct iovec iov = { bytes, len };

	return tls_conn_receive(t, &iov, 1);
}

void
tls_pair_chat(struct tls_pair *p)
{
	char byte = 0;

	MUST(tls_pair_send(p->server, "s", 1) == 1);
	MUST(tls_pair_receive(p->client, &byte, 1) == 1 && byte == 's');
	MUST(tls_pair_send(p->client, "c", 1) == 1);
	MUST(tls_pair_receive(p->server, &byte, 1) == 1 && byte == 'c');
}
