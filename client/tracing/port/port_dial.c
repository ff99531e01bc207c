#include "client/tracing/port/port_dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket/addr.h"
#include "transport/socket/tunnel_process.h"

/* More of a name's addresses are not tried. */
#define ADDRESSES_MAX 8

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
port_dial(const struct addr *a, unsigned at, unsigned *n)
{
	struct sockaddr_storage sa[ADDRESSES_MAX];
	socklen_t len[ADDRESSES_MAX];
	char err[256];
	int fd, found, one = 1;

	found = addr_resolve(a, sa, len, ADDRESSES_MAX, err, sizeof(err));
	if (found < 1 || at >= (unsigned)found) {
		*n = 0;
		errno = EHOSTUNREACH;
		return -1;
	}
	*n = (unsigned)found;
	fd = socket(sa[at].ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa[at], len[at]) != 0 &&
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

bool
port_dial_is_tunnel(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	    len == sizeof(cred) && is_tunnel_process(cred.pid);
}
