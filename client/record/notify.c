#include "client/record/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/failure.h"

void
record_notify_init(struct record_notify *n, int user_fd)
{
	n->front_fd = -1;
	n->user_fd = user_fd;
	n->front_waits_for_start = false;
}

/* Sends what a descriptor points at to /dev/null. */
static void
silence(int fd, int flags)
{
	int null;

	if ((null = open("/dev/null", flags)) < 0)
		return;
	dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/* The process in front: waits for the byte, prints, exits. */
static void __attribute__((__noreturn__))
stay_in_front(int fd, pid_t child)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned char status = RECORD_STATUS_FAILED;
	int r;

	do {
		/* longer than the child's own time-out, which comes first */
		r = poll(&p, 1, RECORD_NOTIFY_TIMEOUT_MS + 2000);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		status = RECORD_STATUS_TIMEOUT;
	else if (read(fd, &status, 1) != 1)
		status = RECORD_STATUS_FAILED; /* the child died */
	if (status != RECORD_STATUS_FAILED)
		printf("%d\n", (int)child);
	if (status == RECORD_STATUS_TIMEOUT)
		fprintf(stderr, "tributary: not all data sources started "
		    "within %d seconds; process %d goes on recording\n",
		    RECORD_NOTIFY_TIMEOUT_MS / 1000, (int)child);
	fflush(stdout);
	_exit(status);
}

int
record_notify_background(struct record_notify *n, bool wait_for_start,
    char *err, size_t err_size)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return FAILURE(err, err_size, "pipe: %s", strerror(errno));
	fflush(NULL);
	if ((pid = fork()) < 0) {
		snprintf(err, err_size, "fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	if (pid > 0) {
		close(fds[1]);
		if (n->user_fd >= 0)
			close(n->user_fd);
		stay_in_front(fds[0], pid);
	}
	close(fds[0]);
	setsid();
	silence(STDIN_FILENO, O_RDONLY);
	silence(STDOUT_FILENO, O_WRONLY);
	n->front_fd = fds[1];
	n->front_waits_for_start = wait_for_start;
	return 0;
}

bool
record_notify_wants_start(const struct record_notify *n)
{
	return n->user_fd >= 0 || (n->front_fd >= 0 && n->front_waits_for_start);
}

static void
tell(int *fd, enum record_status status)
{
	unsigned char byte = (unsigned char)status;

	if (*fd < 0)
		return;
	/* EPIPE: the reader is gone, which is no error of the recording. */
	if (write(*fd, &byte, 1) != 1 && errno != EPIPE)
		fprintf(stderr, "tributary: cannot notify descriptor %d: %s\n",
		    *fd, strerror(errno));
	close(*fd);
	*fd = -1;
}

static void
tell_front(struct record_notify *n, enum record_status status)
{
	if (n->front_fd < 0)
		return;
	tell(&n->front_fd, status);
	silence(STDERR_FILENO, O_WRONLY);
}

void
record_notify_connected(struct record_notify *n)
{
	if (!n->front_waits_for_start)
		tell_front(n, RECORD_STATUS_OK);
}

void
record_notify_started(struct record_notify *n, enum record_status status)
{
	tell(&n->user_fd, status);
	if (n->front_waits_for_start)
		tell_front(n, status);
}

void
record_notify_done(struct record_notify *n, enum record_status status)
{
	tell(&n->user_fd, status);
	tell_front(n, status);
}
