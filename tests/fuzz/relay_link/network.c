#include "tests/fuzz/relay_link/network.h"

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
network_open(struct network *n, int *relay, int *collector)
{
	int at_relay[2], at_collector[2];

	network_cut(n);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at_relay) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
	    at_collector) != 0)
		abort();
	n->end[NETWORK_UP] = at_relay[1];
	n->end[NETWORK_DOWN] = at_collector[1];
	*relay = at_relay[0];
	*collector = at_collector[0];
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
