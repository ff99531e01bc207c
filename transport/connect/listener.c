#include "transport/connect/listener.h"

#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/connect/listener_internal.h"
#include "transport/loop/loop.h"

/* Accepts per readiness event: a crowd of clients does not hold the loop. */
#define LISTENER_ACCEPTS_MAX 16
#define LISTENER_RETRY_MS    100u

static void
listener_start(struct listener *l)
{
	int i;

	for (i = 0; i < l->n_sockets; i++)
		(void)event_add(&l->sockets[i].ev, NULL);
}

static void
listener_stop(struct listener *l)
{
	int i;

	for (i = 0; i < l->n_sockets; i++)
		event_del(&l->sockets[i].ev);
}

void
listener_retry_cb(void *arg)
{
	listener_start(arg);
}

/* Logs once when descriptors run out, and once when that is over. */
static void
listener_say(struct listener *l, int error)
{
	if (l->out_of_fds == (error != 0))
		return;
	l->out_of_fds = error != 0;
	if (error != 0)
		log_warn("new connections have to wait: %s; raise the limit "
		    "of file descriptors (LimitNOFILE=, ulimit -n)",
		    strerror(error));
	else
		log_info("new connections are accepted again");
}

static bool
out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS ||
	    error == ENOMEM;
}

void
listener_leave(struct listener *l)
{
	if (l == NULL)
		return;
	listener_stop(l);
	socket_file_done(&l->file);
	loop_timer_free(l->retry);
	free(l);
}

void
listener_destroy(struct listener *l)
{
	int i;

	listener_stop(l);
	for (i = 0; i < l->n_sockets; i++)
		close(l->sockets[i].fd);
	socket_file_remove(&l->file);
	listener_leave(l);
}

void
listener_rest(struct listener *l)
{
	l->resting = true;
	loop_timer_clear(l->retry);
	listener_stop(l);
}

void
listener_wake(struct listener *l)
{
	l->resting = false;
	listener_start(l);
}

void
listener_let_some_in(struct listener *l)
{
	uint64_t ms;

	/* Out of descriptors, the retry timer starts the listener. */
	if (l != NULL && !l->resting && !loop_timer_left(l->retry, &ms))
		listener_start(l);
}

void
listener_pace(struct listener *l, bool paced)
{
	if (l == NULL || l->paced == paced)
		return;
	l->paced = paced;
	if (!paced)
		listener_let_some_in(l);
}

void
listener_accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct listener_socket *s = arg;
	struct listener *l = s->owner;
	int i, conn;

	l->accepting = true;
	for (i = 0; i < LISTENER_ACCEPTS_MAX && !l->freed && !l->resting;
	    i++) {
		conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (conn >= 0) {
			listener_say(l, 0);
			l->fn(l, conn, l->arg);
			continue;
		}
		if (out_of_resources(errno)) {
			/* The client stays in the backlog, always readable. */
			listener_say(l, errno);
			listener_stop(l);
			loop_timer_set(l->retry, LISTENER_RETRY_MS, 0);
			break;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			break;
		/* The client left before it was accepted. */
	}
	l->accepting = false;
	if (l->paced)
		listener_stop(l);
	if (l->freed)
		listener_destroy(l);
}

size_t
listener_sockets(const struct listener *l, int fds[LISTENER_SOCKETS_MAX])
{
	int i;

	for (i = 0; i < l->n_sockets; i++)
		fds[i] = l->sockets[i].fd;
	return (size_t)l->n_sockets;
}

void
listener_free(struct listener *l)
{
	if (l == NULL)
		return;
	if (l->accepting)
		l->freed = true;
	else
		listener_destroy(l);
}

int
listener_port(const struct listener *l)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (l->n_sockets == 0 ||
	    getsockname(l->sockets[0].fd, (struct sockaddr *)&sa, &len) != 0)
		return 0;
	switch (sa.ss_family) {
	case AF_INET:
		return ntohs(((struct sockaddr_in *)&sa)->sin_port);
	case AF_INET6:
		return ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	case AF_VSOCK:
		return (int)((struct sockaddr_vm *)&sa)->svm_port;
	}
	return 0;
}

int
listener_set_permissions(struct listener *l, unsigned mode, long gid,
    char *err, size_t err_size)
{
	return socket_file_set_permissions(&l->file, mode, gid, err, err_size);
}
