#include "client/inspect/scan/trace_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Period of polls without inotify, and with it. */
#define LOOK_MS      200
#define LOOK_MORE_MS 1000
#define WATCHED (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | \
    IN_DELETE_SELF)

enum trace_tail_end {
	TRACE_TAIL_GOES_ON,
	TRACE_TAIL_SIGNAL,
	TRACE_TAIL_UNHEARD,   /* idle() returned false: no reader of output */
	TRACE_TAIL_TRUNCATED, /* the file is shorter than was read of it */
	TRACE_TAIL_REPLACED,  /* path is another file now, or was removed */
	TRACE_TAIL_ALL,       /* the end of a pipe */
};

struct trace_tail {
	int fd;           /* borrowed */
	const char *path; /* borrowed, or NULL */
	int watch;        /* owned; -1: none */
	bool regular;
	dev_t dev;
	ino_t ino;
	uint64_t offset;
	uint64_t idle_ms; /* monotonic; when idle() was called last */
	bool (*idle)(void *arg);
	void *arg;
	enum trace_tail_end end;
	struct sigaction old_int, old_term;
};

/* Pipe that the signal handler writes to; one trace_tail at a time. */
static int wake[2] = { -1, -1 };

static void
wake_cb(int signo)
{
	int saved = errno;

	if (write(wake[1], "", 1) < 0)
		errno = saved; /* the pipe is full: it is readable anyway */
	errno = saved;
}

static int
take_signals(struct trace_tail *t)
{
	struct sigaction sa = { .sa_handler = wake_cb };

	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	/* No SA_RESTART: the signal has to interrupt read() of a pipe. */
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, &t->old_int);
	sigaction(SIGTERM, &sa, &t->old_term);
	return 0;
}

struct trace_tail *
trace_tail_new(int fd, const char *path, bool (*idle)(void *arg), void *arg)
{
	struct trace_tail *t;
	struct stat st;

	if ((t = calloc(1, sizeof(*t))) == NULL)
		return NULL;
	t->fd = fd;
	t->path = path;
	t->watch = -1;
	t->idle = idle;
	t->arg = arg;
	if (fstat(fd, &st) < 0 || take_signals(t) < 0) {
		free(t);
		return NULL;
	}
	t->regular = S_ISREG(st.st_mode);
	t->dev = st.st_dev;
	t->ino = st.st_ino;
	if (path != NULL && t->regular &&
	    (t->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) >= 0 &&
	    inotify_add_watch(t->watch, path, WATCHED) < 0) {
		close(t->watch);
		t->watch = -1;
	}
	return t;
}

void
trace_tail_free(struct trace_tail *t)
{
	if (t == NULL)
		return;
	/*
	 * After a first signal the report follows: a second one, as timeout(1)
	 * sends to a program and then to its group, comes late.
	 */
	if (t->end == TRACE_TAIL_SIGNAL)
		signal(SIGINT, SIG_IGN);
	else
		sigaction(SIGINT, &t->old_int, NULL);
	sigaction(SIGTERM, &t->old_term, NULL);
	close(wake[0]);
	close(wake[1]);
	if (t->watch >= 0)
		close(t->watch);
	free(t);
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool
goes_on(struct trace_tail *t, bool at_end)
{
	uint64_t now = now_ms();

	if (t->idle == NULL || (!at_end && now - t->idle_ms < LOOK_MORE_MS))
		return true;
	t->idle_ms = now;
	return t->idle(t->arg);
}

/* Whether the file was truncated, replaced or removed. */
static enum trace_tail_end
look(const struct trace_tail *t)
{
	struct stat st;

	if (!t->regular)
		return TRACE_TAIL_ALL;
	if (fstat(t->fd, &st) == 0 && (uint64_t)st.st_size < t->offset)
		return TRACE_TAIL_TRUNCATED;
	if (t->path != NULL && (stat(t->path, &st) < 0 ||
	    st.st_dev != t->dev || st.st_ino != t->ino))
		return TRACE_TAIL_REPLACED;
	return TRACE_TAIL_GOES_ON;
}

static void
drain(int fd)
{
	char buf[4096];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

/* Waits for a change of the file, or for bytes of a pipe. */
static void
wait_for_more(struct trace_tail *t, int timeout_ms)
{
	struct pollfd fds[3] = {
		{ .fd = wake[0], .events = POLLIN },
		/* A pipe's writer learns here that its reader went. */
		{ .fd = STDOUT_FILENO, .events = 0 },
		/* poll() skips negative descriptors. */
		{ .fd = t->regular ? t->watch : t->fd, .events = POLLIN },
	};

	if (poll(fds, 3, timeout_ms) <= 0)
		return;
	if (fds[0].revents != 0)
		t->end = TRACE_TAIL_SIGNAL;
	else if ((fds[1].revents & (POLLERR | POLLHUP)) != 0)
		t->end = TRACE_TAIL_UNHEARD;
	else if (t->regular && fds[2].revents != 0)
		drain(t->watch);
}

ssize_t
trace_tail_read(void *arg, uint8_t *buf, size_t len)
{
	struct trace_tail *t = arg;
	enum trace_tail_end end;
	ssize_t n;

	if (t->end == TRACE_TAIL_GOES_ON)
		wait_for_more(t, t->regular ? 0 : -1);
	while (t->end == TRACE_TAIL_GOES_ON) {
		/* look() before read(): data from before a change is read. */
		end = look(t);
		n = read(t->fd, buf, len);
		if (n < 0)
			return n;
		if (n == 0)
			t->end = end;
		t->offset += (uint64_t)n;
		if (!goes_on(t, n == 0))
			t->end = TRACE_TAIL_UNHEARD;
		if (n > 0)
			return n;
		if (t->end == TRACE_TAIL_GOES_ON)
			wait_for_more(t, t->watch >= 0 ? LOOK_MORE_MS :
			    LOOK_MS);
	}
	return 0;
}

const char *
trace_tail_trouble(const struct trace_tail *t)
{
	switch (t->end) {
	case TRACE_TAIL_TRUNCATED:
		return "was truncated while it was followed";
	case TRACE_TAIL_REPLACED:
		return "was removed or replaced while it was followed";
	case TRACE_TAIL_GOES_ON:
	case TRACE_TAIL_SIGNAL:
	case TRACE_TAIL_UNHEARD:
	case TRACE_TAIL_ALL:
		return NULL;
	}
	return NULL;
}
