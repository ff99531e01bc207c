/*
 * The process of the keeper.  Forked from a process that may have threads, it
 * makes only system calls and allocates no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "relay/producers/shm_keeper.h"
#include "relay/producers/shm_keeper_wire.h"

/* Fixed numbers of its descriptors. */
enum { LISTENER = 3, FOLDER = 4, FIRST_OTHER = 5 };

/* Period in which it looks whether the folder is still there. */
#define LOOK_MS 1000

struct input_rest {
	uint32_t channel;
	uint32_t page_size;
	int fd; /* -1: free */
};

static struct input_rest kept[SHM_KEEPER_MAX];
static size_t n_kept; /* entries that were ever used */

static size_t
count(void)
{
	size_t i, n = 0;

	for (i = 0; i < n_kept; i++)
		n += kept[i].fd >= 0;
	return n;
}

static void
drop(uint32_t channel)
{
	size_t i;

	for (i = 0; i < n_kept; i++)
		if (kept[i].fd >= 0 && kept[i].channel == channel) {
			close(kept[i].fd);
			kept[i].fd = -1;
		}
}

static void
add(const struct shm_keeper_message *m, int fd)
{
	size_t i;

	for (i = 0; i < n_kept && kept[i].fd >= 0; i++)
		;
	if (i == SHM_KEEPER_MAX) {
		close(fd);
		return;
	}
	if (i == n_kept)
		n_kept++;
	kept[i] = (struct input_rest){ .channel = m->channel,
	    .page_size = m->page_size, .fd = fd };
}

/* False: the relay has gone. */
static bool
take(int relay)
{
	struct shm_keeper_message m;
	int fd, got = shm_keeper_receive(relay, &m, &fd);

	if (got <= 0)
		return got < 0;
	switch (m.kind) {
	case SHM_KEEPER_ADD:
		if (fd >= 0)
			add(&m, fd);
		return true;
	case SHM_KEEPER_DROP:
		drop(m.channel);
		break;
	default:
		break;
	}
	if (fd >= 0)
		close(fd);
	return true;
}

/* A relay that does not take it has gone; its socket says so next. */
static void
hand_over(int relay)
{
	struct timeval patience = { .tv_sec = SHM_KEEPER_FIND_MS / 1000 };
	struct shm_keeper_message m = { .version = SHM_KEEPER_VERSION };
	size_t i;

	setsockopt(relay, SOL_SOCKET, SO_SNDTIMEO, &patience,
	    sizeof(patience));
	for (i = 0; i < n_kept; i++) {
		if (kept[i].fd < 0)
			continue;
		m.kind = SHM_KEEPER_ADD;
		m.channel = kept[i].channel;
		m.page_size = kept[i].page_size;
		if (shm_keeper_send(relay, &m, kept[i].fd, 0) != 0)
			return;
	}
	m.kind = SHM_KEEPER_END;
	(void)!shm_keeper_send(relay, &m, -1, 0);
}

/* Accepts a relay of our own user and sends it all descriptors; -1: none. */
static int
greet(void)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	int relay = accept4(LISTENER, NULL, NULL, SOCK_CLOEXEC);

	if (relay < 0)
		return -1;
	if (getsockopt(relay, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 ||
	    who.uid != geteuid()) {
		close(relay);
		return -1;
	}
	hand_over(relay);
	return relay;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Removes the socket's name, unless another keeper has taken it. */
static void
remove_name(const struct stat *ours)
{
	struct stat st;

	if (fstatat(FOLDER, SHM_KEEPER_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_ino == ours->st_ino && st.st_dev == ours->st_dev)
		unlinkat(FOLDER, SHM_KEEPER_SOCKET, 0);
}

static bool
folder_is_gone(void)
{
	struct stat st;

	return fstat(FOLDER, &st) != 0 || st.st_nlink == 0;
}

static void
serve(void)
{
	int64_t alone = now_ms();
	struct pollfd p;
	int relay = -1;

	for (;;) {
		p.fd = relay >= 0 ? relay : LISTENER;
		p.events = POLLIN;
		p.revents = 0;
		if (poll(&p, 1, relay >= 0 ? -1 : LOOK_MS) < 0 &&
		    errno != EINTR)
			return;
		if (relay >= 0) {
			if (p.revents == 0 || take(relay))
				continue;
			close(relay);
			relay = -1;
			alone = now_ms();
			if (count() == 0)
				return;
		} else if (p.revents != 0) {
			relay = greet();
		} else if (now_ms() - alone > SHM_KEEPER_WAIT_MS ||
		    folder_is_gone()) {
			return;
		}
	}
}

bool
shm_keeper_close_others(int listener, int dirfd)
{
	int null = open("/dev/null", O_RDWR), fd;

	/* Out of each other's way first. */
	listener = fcntl(listener, F_DUPFD, FIRST_OTHER);
	dirfd = fcntl(dirfd, F_DUPFD, FIRST_OTHER);
	if (null < 0 || listener < 0 || dirfd < 0)
		return false;
	for (fd = 0; fd < LISTENER; fd++)
		if (fd != null)
			dup2(null, fd);
	if (dup2(listener, LISTENER) < 0 || dup2(dirfd, FOLDER) < 0)
		return false;
	if (syscall(SYS_close_range, FIRST_OTHER, ~0u, 0) == 0)
		return true;
	for (fd = FIRST_OTHER; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
		close(fd);
	return true;
}

void
shm_keeper_run(void)
{
	struct stat name;
	sigset_t none;
	int signo;

	for (signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") == 0 && fstatat(FOLDER, SHM_KEEPER_SOCKET, &name,
	    AT_SYMLINK_NOFOLLOW) == 0) {
		prctl(PR_SET_NAME, "relay-keeper");
		/* No debugger may read the relay's memory in it. */
		prctl(PR_SET_DUMPABLE, 0);
		serve();
		remove_name(&name);
	}
	_exit(0);
}
