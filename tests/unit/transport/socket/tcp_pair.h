/*
 * tcp_pair: for tests, what socketpair() is for UNIX sockets.
 */
#ifndef TESTS_UNIT_TRANSPORT_SOCKET_TCP_PAIR_H
#define TESTS_UNIT_TRANSPORT_SOCKET_TCP_PAIR_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection over the loopback: out[0] accepted, out[1] connected. */
static inline int
tcp_pair(int out[2])
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	out[0] = out[1] = -1;
	memset(&sa, 0, sizeof(sa));
	sa.sin_family = AF_INET;
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (l < 0 || bind(l, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    listen(l, 1) != 0 ||
	    getsockname(l, (struct sockaddr *)&sa, &len) != 0)
		goto fail;
	out[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(out[1], (struct sockaddr *)&sa, len) != 0 ||
	    (out[0] = accept(l, NULL, NULL)) < 0)
		goto fail;
	close(l);
	return 0;

fail:
	if (l >= 0)
		close(l);
	if (out[1] >= 0)
		close(out[1]);
	return -1;
}

#endif /* TESTS_UNIT_TRANSPORT_SOCKET_TCP_PAIR_H */
