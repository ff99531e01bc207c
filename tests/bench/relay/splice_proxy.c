/*
 * splice_proxy: carries the bytes of TCP connections on and does nothing else,
 * as cheaply as the kernel lets a process: what a relay is compared with.
 *
 *	splice_proxy PORT-TO-LEAD-TO
 *
 * Says "listening 127.0.0.1:PORT"; serves one connection after the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/load/load_conn.h"

#define PIPE_BYTES (1u << 20)

static int
tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		load_die("socket: %s", strerror(errno));
	return fd;
}

static struct sockaddr_in
loopback(unsigned port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return sa;
}

/* Moves what is there; false: the end of it. */
static bool
carry(int from, int to, const int pipe_ends[2])
{
	ssize_t n, rest;

	n = splice(from, NULL, pipe_ends[1], NULL, PIPE_BYTES,
	    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	for (rest = n; rest > 0; rest -= n) {
		n = splice(pipe_ends[0], NULL, to, NULL, (size_t)rest,
		    SPLICE_F_MOVE);
		if (n <= 0)
			return false;
	}
	return true;
}

static void
serve(int client, int target)
{
	struct pollfd fds[2] = { { client, POLLIN, 0 },
		{ target, POLLIN, 0 } };
	int up[2], down[2];
	bool more = true;

	if (pipe2(up, O_CLOEXEC) != 0 || pipe2(down, O_CLOEXEC) != 0)
		load_die("pipe: %s", strerror(errno));
	(void)fcntl(up[1], F_SETPIPE_SZ, PIPE_BYTES);
	while (more && poll(fds, 2, -1) > 0) {
		if (fds[0].revents != 0)
			more &= carry(client, target, up);
		if (fds[1].revents != 0)
			more &= carry(target, client, down);
	}
	close(up[0]);
	close(up[1]);
	close(down[0]);
	close(down[1]);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in sa = loopback(0), to;
	socklen_t len = sizeof(sa);
	int listener, client, target;

	if (argc != 2)
		load_die("PORT-TO-LEAD-TO");
	to = loopback((unsigned)strtoul(argv[1], NULL, 10));
	listener = tcp_socket();
	if (bind(listener, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    listen(listener, 16) != 0 ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) != 0)
		load_die("listen: %s", strerror(errno));
	printf("listening 127.0.0.1:%u\n", ntohs(sa.sin_port));
	fflush(stdout);
	while ((client = accept(listener, NULL, NULL)) >= 0) {
		target = tcp_socket();
		if (connect(target, (struct sockaddr *)&to, sizeof(to)) != 0)
			load_die("connect: %s", strerror(errno));
		serve(client, target);
		close(client);
		close(target);
	}
	return 0;
}
