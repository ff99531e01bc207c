#include "transport/socket/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/socket/addr.h"

/*
 * Between two ends of one machine there is no distance to be bridged: more in
 * the kernel's buffers than this only makes every answer wait behind it.
 */
#define SOCK_LOCAL_BUFFER (128 * 1024)

/* A dead TCP peer is found after IDLE + CNT * INTVL seconds. */
#define SOCK_KEEPIDLE_S  30
#define SOCK_KEEPINTVL_S 10
#define SOCK_KEEPCNT     3

int
sock_prepare(int sock)
{
	int flags = fcntl(sock, F_GETFL);

	if (flags < 0)
		return -1;
	if (!(flags & O_NONBLOCK) &&
	    fcntl(sock, F_SETFL, flags | O_NONBLOCK) != 0)
		return -1;
	return fcntl(sock, F_SETFD, FD_CLOEXEC);
}

void
sock_tune_tcp(int sock)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, SOCK_KEEPIDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, SOCK_KEEPINTVL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, SOCK_KEEPCNT },
	};
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int bytes = SOCK_LOCAL_BUFFER;
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(sock, options[i].level, options[i].option,
		    &options[i].value, sizeof(options[i].value));
	if (getpeername(sock, (struct sockaddr *)&peer, &len) != 0 ||
	    !addr_is_local(&peer))
		return;
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void
sock_give_up_after(int sock, unsigned ms)
{
	(void)setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

ssize_t
sock_send(int sock, struct iovec *iov, int niov, int fd, int flags)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = (size_t)niov,
	};
	struct cmsghdr *c;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
}

/* The buffer has room for no more than SOCK_FDS_MAX. */
static int
take_fds(struct msghdr *msg, int fds[SOCK_FDS_MAX])
{
	struct cmsghdr *c;
	size_t n;
	int taken = 0;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + taken, CMSG_DATA(c), n * sizeof(int));
		taken += (int)n;
	}
	return taken;
}

ssize_t
sock_receive(int sock, struct iovec *iov, int niov, int fds[SOCK_FDS_MAX],
    int *n_fds)
{
	union {
		char buf[CMSG_SPACE(sizeof(int) * SOCK_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = (size_t)niov,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	_Static_assert(sizeof(control.buf) ==
	    CMSG_LEN(sizeof(int) * SOCK_FDS_MAX), "no room for one more");
	*n_fds = 0;
	if (fds == NULL) {
		if (niov == 1)
			return recv(sock, iov->iov_base, iov->iov_len,
			    MSG_DONTWAIT);
		return readv(sock, iov, niov);
	}
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n >= 0 && msg.msg_controllen > 0)
		*n_fds = take_fds(&msg, fds);
	if (n >= 0 && *n_fds == 0 && (msg.msg_flags & MSG_CTRUNC) != 0)
		*n_fds = -1;
	return n;
}

bool
sock_error_is_transient(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR ||
	    error == ENOBUFS || error == ENOMEM;
}
