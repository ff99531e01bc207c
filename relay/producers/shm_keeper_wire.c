#include "relay/producers/shm_keeper_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket/sock.h"

int
shm_keeper_send(int sock, const struct shm_keeper_message *m, int fd, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) };

	return sock_send(sock, &iov, 1, fd, flags) == (ssize_t)sizeof(*m) ?
	    0 : -1;
}

int
shm_keeper_receive(int sock, struct shm_keeper_message *m, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/*
	 * The other end closed without having read all: what it said before
	 * that is still to come.
	 */
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ||
		    errno == ECONNRESET ? -1 : 0;
	if ((c = CMSG_FIRSTHDR(&msg)) != NULL &&
	    c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if (n == (ssize_t)sizeof(*m) && m->version == SHM_KEEPER_VERSION)
		return 1;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return 0;
}
