#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/log.h"
#include "transport/connect/listener_internal.h"
#include "transport/loop/loop.h"

#define LISTENER_BACKLOG 4096

static void file_changed_cb(void *arg);

static struct listener *
listener_alloc(struct loop *loop, listener_fn fn, void *arg, char *err,
    size_t err_size)
{
	struct listener *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		goto fail;
	l->loop = loop;
	l->fn = fn;
	l->arg = arg;
	if ((l->retry = loop_timer_new(loop, listener_retry_cb, l)) == NULL ||
	    socket_file_init(&l->file, loop, file_changed_cb, l) != 0)
		goto fail;
	return l;

fail:
	if (l != NULL)
		loop_timer_free(l->retry);
	free(l);
	snprintf(err, err_size, "out of memory");
	return NULL;
}

/* Takes ownership of a listening socket. */
static int
listener_add_socket(struct listener *l, int fd)
{
	struct listener_socket *s = &l->sockets[l->n_sockets];

	if (l->n_sockets == LISTENER_SOCKETS_MAX)
		return -1;
	s->fd = fd;
	s->owner = l;
	if (event_assign(&s->ev, loop_base(l->loop), fd, EV_READ | EV_PERSIST,
		listener_accept_cb, s) != 0)
		return -1;
	if (event_add(&s->ev, NULL) != 0)
		return -1;
	l->n_sockets++;
	return 0;
}

static void
set_option(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

/*
 * A bound, listening socket, or -1 with errno set.  mode: the most that its
 * file may have; 0: as the umask allows.
 */
static int
open_listening(const struct sockaddr_storage *sa, socklen_t len, mode_t mode)
{
	int fd, error;

	fd = socket(sa->ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (sa->ss_family == AF_INET || sa->ss_family == AF_INET6)
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* Else [::] would take 0.0.0.0 along, whatever the name said. */
	if (sa->ss_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if ((mode != 0 && fchmod(fd, mode) != 0) ||
	    bind(fd, (const struct sockaddr *)sa, len) != 0 ||
	    listen(fd, LISTENER_BACKLOG) != 0) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int
listener_open_one(struct listener *l, const struct sockaddr_storage *sa,
    socklen_t len, const char *text, char *err, size_t err_size)
{
	int fd;

	if ((fd = open_listening(sa, len, 0)) < 0) {
		snprintf(err, err_size, "cannot listen at %s: %s", text,
		    strerror(errno));
		return -1;
	}
	if (listener_add_socket(l, fd) != 0) {
		close(fd);
		snprintf(err, err_size, "cannot listen at %s: out of memory",
		    text);
		return -1;
	}
	return 0;
}

/* Replaces the socket, whose file was removed, by a new socket and file. */
static int
listener_replace(struct listener *l)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_storage sa = { 0 };
	struct listener_socket *s = &l->sockets[0];
	int fd;

	strcpy(un.sun_path, l->file.path);
	memcpy(&sa, &un, sizeof(un));
	/*
	 * Mode 0600 until the permissions are set: strangers must not slip in.
	 */
	if ((fd = open_listening(&sa, sizeof(un), 0600)) < 0)
		return -1;
	if (l->n_sockets > 0) {
		event_del(&s->ev);
		close(s->fd);
		l->n_sockets = 0;
	}
	if (listener_add_socket(l, fd) != 0) {
		close(fd);
		unlink(l->file.path);
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

static void
file_changed_cb(void *arg)
{
	struct listener *l = arg;

	if (l->resting) {
		socket_file_look_later(&l->file);
		return;
	}
	switch (socket_file_owner(&l->file)) {
	case SOCKET_FILE_OURS:
		return;
	case SOCKET_FILE_OF_ANOTHER:
		log_warn("%s is another program's now: connections to it do "
		    "not reach this one", l->file.path);
		return;
	case SOCKET_FILE_GONE:
		break;
	}
	if (listener_replace(l) != 0) {
		if (!l->remake_failed)
			log_error("the socket %s was removed, and it cannot be "
			    "made anew: %s; trying again",
			    l->file.path, strerror(errno));
		l->remake_failed = true;
		socket_file_look_later(&l->file);
		return;
	}
	l->remake_failed = false;
	log_warn("the socket %s was removed: it is made anew",
	    l->file.path);
	socket_file_made_anew(&l->file);
}

static int
listener_open_unix(struct listener *l, const struct addr *a, char *err,
    size_t err_size)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&a->sa;
	const char *path = un->sun_path;

	if (*path != '\0' && socket_file_clear_stale(a, err, err_size) != 0)
		return -1;
	if (listener_open_one(l, &a->sa, a->sa_len, a->text, err,
		err_size) != 0)
		return -1;
	if (*path != '\0')
		socket_file_own(&l->file, path);
	return 0;
}

/* A kernel without v6 is no reason to give up a name that has both. */
static bool
family_is_absent(int error)
{
	return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

static void
set_port(struct sockaddr_storage *sa, int port)
{
	if (sa->ss_family == AF_INET)
		((struct sockaddr_in *)sa)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)sa)->sin6_port = htons((uint16_t)port);
}

static int
check_local(const struct sockaddr_storage *sa, const struct addr *a, char *err,
    size_t err_size)
{
	if (addr_is_local(sa))
		return 0;
	snprintf(err, err_size, "plain TCP address %s is reachable from other "
	    "machines; pass --allow-remote %s (or use 127.0.0.1)", a->text,
	    a->text);
	return -1;
}

static int
listener_open_tcp(struct listener *l, const struct addr *a, bool allow_remote,
    char *err, size_t err_size)
{
	struct sockaddr_storage sa[LISTENER_SOCKETS_MAX];
	socklen_t len[LISTENER_SOCKETS_MAX];
	int i, n, port = 0;

	n = addr_resolve(a, sa, len, LISTENER_SOCKETS_MAX, err, err_size);
	if (n < 0)
		return -1;
	for (i = 0; i < n && !allow_remote; i++) {
		if (check_local(&sa[i], a, err, err_size) != 0)
			return -1;
	}
	for (i = 0; i < n; i++) {
		/* Port 0 became a number with the first of them. */
		if (port != 0)
			set_port(&sa[i], port);
		if (listener_open_one(l, &sa[i], len[i], a->text, err,
			err_size) != 0) {
			if (family_is_absent(errno))
				continue;
			return -1;
		}
		port = listener_port(l);
	}
	return l->n_sockets > 0 ? 0 : -1;
}

struct listener *
listener_new(struct loop *loop, const struct listener_setup *setup, char *err,
    size_t err_size)
{
	const struct addr *a = setup->addr;
	struct listener *l;
	int rc = -1;

	l = listener_alloc(loop, setup->fn, setup->arg, err, err_size);
	if (l == NULL)
		return NULL;
	switch (a->kind) {
	case ADDR_UNIX:
		rc = listener_open_unix(l, a, err, err_size);
		break;
	case ADDR_TCP:
		rc = listener_open_tcp(l, a, setup->allow_remote, err,
		    err_size);
		break;
	case ADDR_TLS: /* safe to reach from everywhere */
		rc = listener_open_tcp(l, a, true, err, err_size);
		break;
	case ADDR_VSOCK:
		rc = listener_open_one(l, &a->sa, a->sa_len, a->text, err,
		    err_size);
		break;
	case ADDR_SSH:
		snprintf(err, err_size, "cannot listen on %s: sshd does that; "
		    "listen on a UNIX socket, or a loopback port, and let "
		    "others connect to ssh://HOST/PATH", a->text);
		break;
	}
	if (rc != 0) {
		listener_destroy(l);
		return NULL;
	}
	return l;
}

/* Makes a descriptor that another program opened fit for us. */
static int
prepare_socket(int fd, char *err, size_t err_size)
{
	int listening = 0, flags;
	socklen_t len = sizeof(listening);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 ||
	    !listening) {
		snprintf(err, err_size,
		    "descriptor %d is no listening socket", fd);
		return -1;
	}
	if ((flags = fcntl(fd, F_GETFL)) < 0 ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
		snprintf(err, err_size, "descriptor %d: %s", fd,
		    strerror(errno));
		return -1;
	}
	return 0;
}

struct listener *
listener_adopt(struct loop *loop, int fd, listener_fn fn, void *arg, char *err,
    size_t err_size)
{
	struct listener *l;

	if (prepare_socket(fd, err, err_size) != 0)
		return NULL;
	if ((l = listener_alloc(loop, fn, arg, err, err_size)) == NULL)
		return NULL;
	if (listener_add_socket(l, fd) != 0) {
		snprintf(err, err_size, "out of memory");
		listener_destroy(l);
		return NULL;
	}
	return l;
}

static int
take_over_one(struct listener *l, int fd, const struct listener_setup *setup,
    char *err, size_t err_size)
{
	const struct addr *a = setup->addr;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	if (prepare_socket(fd, err, err_size) != 0)
		return -1;
	if (a->kind == ADDR_TCP && !setup->allow_remote &&
	    getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	    check_local(&sa, a, err, err_size) != 0)
		return -1;
	if (listener_add_socket(l, fd) != 0) {
		snprintf(err, err_size, "out of memory");
		return -1;
	}
	return 0;
}

struct listener *
listener_take_over(struct loop *loop, const struct listener_setup *setup,
    const int *fds, size_t n, char *err, size_t err_size)
{
	const struct sockaddr_un *un;
	struct listener *l;
	size_t i;

	l = listener_alloc(loop, setup->fn, setup->arg, err, err_size);
	if (l == NULL)
		return NULL;
	for (i = 0; i < n; i++) {
		if (take_over_one(l, fds[i], setup, err, err_size) != 0) {
			listener_leave(l);
			return NULL;
		}
	}
	un = (const struct sockaddr_un *)&setup->addr->sa;
	if (setup->addr->kind == ADDR_UNIX && un->sun_path[0] != '\0')
		socket_file_own(&l->file, un->sun_path);
	return l;
}
