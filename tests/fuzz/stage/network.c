#include "tests/fuzz/stage/network.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void
network_init(struct network *n)
{
	*n = (struct network){ .end = { -1, -1 } };
}

bool
network_is_up(const struct network *n)
{
	return n->end[NETWORK_UP] >= 0;
}

void
network_cut(struct network *n)
{
	if (!network_is_up(n))
		return;
	close(n->end[NETWORK_UP]);
	close(n->end[NETWORK_DOWN]);
	network_init(n);
}

void
network_open(struct network *n, int *client, int *service)
{
	int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int at_client[2], at_service[2];

	network_cut(n);
	if (socketpair(AF_UNIX, type, 0, at_client) != 0 ||
	    socketpair(AF_UNIX, type, 0, at_service) != 0)
		abort();
	n->end[NETWORK_UP] = at_client[1];
	n->end[NETWORK_DOWN] = at_service[1];
	*client = at_client[0];
	*service = at_service[0];
}

void
network_carry(struct network *n, enum network_way way, size_t most)
{
	static uint8_t buf[65536];
	int to = n->end[NETWORK_WAYS - 1 - way];
	ssize_t got, put;

	if (!network_is_up(n) || most == 0)
		return;
	if (most > sizeof(buf))
		most = sizeof(buf);
	/* Only what the other side takes now. */
	got = recv(n->end[way], buf, most, MSG_DONTWAIT | MSG_PEEK);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		network_cut(n);
		return;
	}
	buf[0] ^= n->harm[way];
	put = send(to, buf, (size_t)got, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (put < 0 && errno == EAGAIN)
		return;
	if (put <= 0) {
		network_cut(n);
		return;
	}
	n->harm[way] = 0;
	if (recv(n->end[way], buf, (size_t)put, MSG_DONTWAIT) != put)
		abort();
}
