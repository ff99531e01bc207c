#include "client/tracing/port/port_dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket/addr.h"

bool
port_dial_choose(struct addr *a, const char *list, char *err, size_t err_size)
{
	char item[ADDR_TEXT_MAX];

	snprintf(err, err_size, "there is no address in \"%s\"", list);
	if (addr_list_next(&list, item, sizeof(item)) != 1 ||
	    addr_parse(a, item, err, err_size) != 0)
		return false;
	if (a->kind != ADDR_TLS && a->kind != ADDR_SSH)
		return true;
	snprintf(err, err_size, "%s needs tributary-relay or `tributary "
	    "forward` on this machine, whose socket is the address", item);
	return false;
}

int
port_dial(const struct addr *a)
{
	struct sockaddr_storage sa;
	socklen_t len;
	char err[256];
	int fd, one = 1;

	if (addr_resolve(a, &sa, &len, 1, err, sizeof(err)) < 1) {
		errno = EHOSTUNREACH;
		return -1;
	}
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa, len) != 0 &&
	    errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	if (a->kind == ADDR_TCP)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
		    sizeof(one));
	return fd;
}

int
port_dial_error(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return errno;
	return error;
}

bool
port_dial_is_unix(int fd)
{
	socklen_t len = sizeof(int);
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	    domain == AF_UNIX;
}
