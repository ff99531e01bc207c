#include "relay/producers/shm_keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relay/producers/shm_keeper_wire.h"
#include "transport/loop/loop.h"

struct shm_keeper {
	int sock;
};

/* The folder has no name that we know, and may have a long one. */
static void
set_address(struct sockaddr_un *sa, int dirfd)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s",
	    dirfd, SHM_KEEPER_SOCKET);
}

/* -1: there is no keeper. */
static int
reach(int dirfd)
{
	struct sockaddr_un sa;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);

	set_address(&sa, dirfd);
	if (sock >= 0 &&
	    connect(sock, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
		close(sock);
		sock = -1;
	}
	return sock;
}

static struct shm_keeper *
keeper_over(int sock)
{
	struct shm_keeper *k = sock >= 0 ? malloc(sizeof(*k)) : NULL;

	if (k != NULL)
		k->sock = sock;
	else if (sock >= 0)
		close(sock);
	return k;
}

struct shm_keeper *
shm_keeper_find(int dirfd,
    void (*fn)(void *arg, uint32_t channel, size_t page_size, int fd),
    void *arg)
{
	uint64_t end = loop_now_ms() + SHM_KEEPER_FIND_MS, now;
	int sock = reach(dirfd), fd, got = -1;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct shm_keeper_message m = { .kind = SHM_KEEPER_END };

	if (sock < 0)
		return NULL;
	while ((now = loop_now_ms()) < end) {
		got = shm_keeper_receive(sock, &m, &fd);
		if (got == 0 || (got > 0 && m.kind == SHM_KEEPER_END))
			break;
		if (got < 0)
			poll(&p, 1, (int)(end - now));
		else if (fd >= 0)
			fn(arg, m.channel, m.page_size, fd);
	}
	if (got > 0 && m.kind == SHM_KEEPER_END)
		return keeper_over(sock);
	close(sock);
	return NULL;
}

void
shm_keeper_close(struct shm_keeper *k)
{
	if (k == NULL)
		return;
	close(k->sock);
	free(k);
}

int
shm_keeper_add(struct shm_keeper *k, uint32_t channel, size_t page_size, int fd)
{
	struct shm_keeper_message m = {
		.version = SHM_KEEPER_VERSION,
		.kind = SHM_KEEPER_ADD,
		.channel = channel,
		.page_size = (uint32_t)page_size,
	};

	return shm_keeper_send(k->sock, &m, fd, MSG_DONTWAIT);
}

int
shm_keeper_drop(struct shm_keeper *k, uint32_t channel)
{
	struct shm_keeper_message m = {
		.version = SHM_KEEPER_VERSION,
		.kind = SHM_KEEPER_DROP,
		.channel = channel,
	};

	return shm_keeper_send(k->sock, &m, -1, MSG_DONTWAIT);
}

/* ---- a new one ---- */

static int
listen_in(int dirfd)
{
	struct sockaddr_un sa;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	set_address(&sa, dirfd);
	/* A keeper that has died may have left its socket's name. */
	unlinkat(dirfd, SHM_KEEPER_SOCKET, 0);
	if (fchmod(sock, S_IRUSR | S_IWUSR) != 0 ||
	    bind(sock, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    listen(sock, 4) != 0) {
		close(sock);
		return -1;
	}
	return sock;
}

/*
 * The child's child has no parent that would have to wait for it.  The child
 * closes the relay's descriptors before it forks: once the relay has reaped it,
 * no copy of a lock is left that would refuse the next relay, however late the
 * keeper gets a processor.
 */
static int
fork_away(int listener, int dirfd)
{
	sigset_t all, before;
	pid_t child;
	int status;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		setsid();
		if (!shm_keeper_close_others(listener, dirfd))
			_exit(1);
		child = fork();
		if (child == 0)
			shm_keeper_run();
		_exit(child < 0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (child < 0)
		return -1;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* reaped elsewhere: no status */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

struct shm_keeper *
shm_keeper_start(int dirfd, char *err, size_t err_size)
{
	struct shm_keeper *k;
	int listener = listen_in(dirfd);

	if (listener < 0) {
		snprintf(err, err_size, "cannot listen in the state folder: "
		    "%s", strerror(errno));
		return NULL;
	}
	if (fork_away(listener, dirfd) != 0) {
		snprintf(err, err_size, "cannot start a process");
		close(listener);
		return NULL;
	}
	close(listener);
	if ((k = keeper_over(reach(dirfd))) == NULL)
		snprintf(err, err_size, "it does not answer");
	return k;
}
