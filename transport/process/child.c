#include "transport/process/child.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/loop/loop.h"

/* Between SIGTERM and SIGKILL; less where the loop itself is at its end. */
#define CHILD_TERM_MS      2000u
#define CHILD_LAST_TERM_MS 500
/* Without pidfd_open(2): interval of polling whether the child still runs. */
#define CHILD_POLL_MS 50u
/* The status of a child that was reaped elsewhere: as when ssh fails. */
#define CHILD_STATUS_LOST 255

struct child {
	struct loop *loop;
	pid_t pid;
	int pidfd;  /* -1: `watch` polls */
	int err_fd; /* -1: nothing more to be read */
	int status; /* -1: runs */
	bool freed; /* the memory is freed when the child was reaped */
	struct loop_call at_free_call;
	struct event end_ev; /* on pidfd */
	struct event err_ev; /* on err_fd */
	struct loop_timer *watch;  /* CHILD_POLL_MS, without pidfd */
	struct loop_timer *killer; /* armed by child_free() */
	struct loop_timer *within;

	void (*fn)(void *arg); /* of child_when_ended(); NULL: none */
	void *arg;

	size_t len;
	char text[CHILD_STDERR_MAX];
};

/* ---- starting ---- */

/* The descriptors of one start; -1 where closed or given away. */
struct plumbing {
	int ours, theirs;       /* the socket pair */
	int err_read, err_write;
	int go_read, go_write;  /* carries errno when exec fails */
};

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
plumbing_done(struct plumbing *p)
{
	close_fd(&p->ours);
	close_fd(&p->theirs);
	close_fd(&p->err_read);
	close_fd(&p->err_write);
	close_fd(&p->go_read);
	close_fd(&p->go_write);
}

/*
 * dup2() to 0, 1 and 2 must not run over a descriptor that has such a number
 * because the program was started without.
 */
static int
above_standard(int *fd)
{
	int moved;

	if (*fd > STDERR_FILENO)
		return 0;
	if ((moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) < 0)
		return -1;
	close(*fd);
	*fd = moved;
	return 0;
}

static int
plumbing_init(struct plumbing *p)
{
	int pair[2];

	memset(p, -1, sizeof(*p));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	p->ours = pair[0];
	p->theirs = pair[1];
	if (pipe2(pair, O_CLOEXEC) != 0)
		goto fail;
	p->err_read = pair[0];
	p->err_write = pair[1];
	if (pipe2(pair, O_CLOEXEC) != 0)
		goto fail;
	p->go_read = pair[0];
	p->go_write = pair[1];
	if (above_standard(&p->theirs) != 0 ||
	    above_standard(&p->err_write) != 0 ||
	    above_standard(&p->go_write) != 0)
		goto fail;
	/* Ours only: the other end is another description, and blocks. */
	if (fcntl(p->ours, F_SETFL, O_NONBLOCK) != 0 ||
	    fcntl(p->err_read, F_SETFL, O_NONBLOCK) != 0)
		goto fail;
	return 0;

fail:
	plumbing_done(p);
	return -1;
}

/*
 * In the new process, which shares our memory until exec: system calls only,
 * every signal is blocked.  Does not return.
 */
static void __attribute__((__noreturn__))
become(char *const argv[], const struct child_setup *setup,
    const struct plumbing *p, pid_t parent)
{
	size_t i;
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;
	int error, signo;

	for (signo = 1; signo < NSIG; signo++)
		(void)sigaction(signo, &plain, NULL);
	/* No terminal: a question there would never be answered. */
	setsid();
	/* An ssh that only forwards would outlive us else. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	if (dup2(p->theirs, STDIN_FILENO) < 0 ||
	    dup2(p->theirs, STDOUT_FILENO) < 0 ||
	    dup2(p->err_write, STDERR_FILENO) < 0)
		goto fail;
#ifdef SYS_close_range
	/*
	 * Closes descriptors that other libraries opened, perhaps without
	 * close-on-exec.  All of ours have it, which has to do on a kernel
	 * without this call.
	 */
	(void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0u,
	    1u << 2 /* CLOSE_RANGE_CLOEXEC */);
#endif
	for (i = 0; i < setup->n_fds; i++)
		if (fcntl(setup->fds[i], F_SETFD, 0) != 0)
			goto fail;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Not execvp(): gcov would write its counts first, and be done. */
	execvpe(argv[0], argv,
	    setup->environment != NULL ? setup->environment : environ);
fail:
	error = errno;
	if (write(p->go_write, &error, sizeof(error)) < 0) {
		/* Then it looks as if it had ended at once. */
	}
	_exit(127);
}

/* vfork(): the collector's memory is large, and copying its tables is slow. */
static pid_t
spawn(char *const argv[], const struct child_setup *setup,
    const struct plumbing *p)
{
	pid_t pid, parent = getpid();
	sigset_t all, before;

	/* No handler of ours may run over there. */
	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return -1;
	pid = vfork();
	if (pid == 0)
		become(argv, setup, p, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* 0, or the errno of an exec that failed; then pid was reaped. */
static int
exec_error(struct plumbing *p, pid_t pid)
{
	int error = 0;
	ssize_t n;

	close_fd(&p->go_write);
	do
		n = read(p->go_read, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(error))
		return 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return error;
}

/* ---- standard error ---- */

/* Makes room for n bytes by forgetting the oldest. */
static void
text_add(struct child *c, char *data, size_t n)
{
	size_t max = sizeof(c->text) - 1, over, i;

	for (i = 0; i < n; i++)
		if (data[i] == '\0')
			data[i] = ' ';
	if (n > max) {
		data += n - max;
		n = max;
	}
	if (c->len + n > max) {
		over = c->len + n - max;
		memmove(c->text, c->text + over, c->len - over);
		c->len -= over;
	}
	memcpy(c->text + c->len, data, n);
	c->len += n;
	c->text[c->len] = '\0';
}

static void
stop_reading(struct child *c)
{
	if (c->err_fd < 0)
		return;
	event_del(&c->err_ev);
	close_fd(&c->err_fd);
}

/*
 * Reads the bytes that are in the pipe now, and no more: a child that goes on
 * writing must not block the loop.
 */
static void
read_text(struct child *c)
{
	char data[1024];
	size_t rounds = 2 * CHILD_STDERR_MAX / sizeof(data);
	ssize_t n;

	while (c->err_fd >= 0 && rounds-- > 0) {
		n = read(c->err_fd, data, sizeof(data));
		if (n > 0)
			text_add(c, data, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			stop_reading(c);
		else
			return;
	}
}

static void
err_cb(evutil_socket_t fd, short what, void *arg)
{
	read_text(arg);
}

/* ---- its end ---- */

static void
destroy(struct child *c)
{
	loop_cancel(c->loop, c);
	stop_reading(c);
	if (event_initialized(&c->end_ev))
		event_del(&c->end_ev);
	close_fd(&c->pidfd);
	loop_timer_free(c->watch);
	loop_timer_free(c->killer);
	loop_timer_free(c->within);
	free(c);
}

/* The owner may free c inside. */
static void
tell(void *arg)
{
	struct child *c = arg;
	void (*fn)(void *) = c->fn;

	loop_timer_clear(c->within);
	c->fn = NULL;
	if (fn != NULL)
		fn(c->arg);
}

static int
status_of(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? info->si_status :
	    128 + info->si_status;
}

/* flags: WNOHANG or 0.  Whether the child has ended. */
static bool
reap(struct child *c, int flags)
{
	siginfo_t info;

	if (c->status != -1)
		return true;
	do {
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)c->pid, &info,
			WEXITED | WNOWAIT | flags) == 0) {
			if (info.si_pid == 0)
				return false;
			break;
		}
	} while (errno == EINTR);
	if (info.si_pid == 0) {
		c->status = CHILD_STATUS_LOST; /* reaped by other code */
		return true;
	}
	/* As long as it is a zombie its number stands for its group only. */
	kill(-c->pid, SIGTERM);
	while (waitid(P_PID, (id_t)c->pid, &info, WEXITED) != 0 &&
	    errno == EINTR)
		;
	c->status = status_of(&info);
	return true;
}

static void
look(struct child *c)
{
	if (!reap(c, WNOHANG))
		return;
	/*
	 * The child's last messages are in the pipe.  The end of the pipe is
	 * not waited for: an ssh may leave a process behind that holds it open
	 * (ControlPersist).
	 */
	read_text(c);
	stop_reading(c);
	if (c->pidfd >= 0)
		event_del(&c->end_ev);
	if (c->watch != NULL)
		loop_timer_clear(c->watch);
	if (c->freed)
		destroy(c);
	else
		tell(c);
}

static void
end_cb(evutil_socket_t fd, short what, void *arg)
{
	look(arg);
}

static void
watch_cb(void *arg)
{
	look(arg);
}

static void
killer_cb(void *arg)
{
	struct child *c = arg;

	kill(-c->pid, SIGKILL);
}

static void
within_cb(void *arg)
{
	tell(arg);
}

/* The loop ends, so the child has to be reaped now. */
static void
at_free(void *arg)
{
	struct child *c = arg;
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	if (!reap(c, WNOHANG)) {
		kill(-c->pid, SIGTERM);
		if (c->pidfd >= 0)
			(void)poll(&p, 1, CHILD_LAST_TERM_MS);
		if (!reap(c, WNOHANG)) {
			kill(-c->pid, SIGKILL);
			(void)reap(c, 0);
		}
	}
	if (c->freed)
		destroy(c);
}

/* ---- the contract ---- */

static int
watch_end(struct child *c)
{
#ifdef SYS_pidfd_open
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
#endif
	if (c->pidfd >= 0)
		return event_assign(&c->end_ev, loop_base(c->loop), c->pidfd,
		    EV_READ | EV_PERSIST, end_cb, c) != 0 ||
		    event_add(&c->end_ev, NULL) != 0 ? -1 : 0;
	if ((c->watch = loop_timer_new(c->loop, watch_cb, c)) == NULL)
		return -1;
	loop_timer_set(c->watch, CHILD_POLL_MS, 1);
	return 0;
}

static struct child *
child_alloc(struct loop *l)
{
	struct child *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->pidfd = -1;
	c->err_fd = -1;
	c->status = -1;
	c->killer = loop_timer_new(l, killer_cb, c);
	c->within = loop_timer_new(l, within_cb, c);
	if (c->killer == NULL || c->within == NULL) {
		destroy(c);
		return NULL;
	}
	return c;
}

struct child *
child_new(struct loop *l, char *const argv[], int *fd, char *err,
    size_t err_size)
{
	static const struct child_setup plain;

	return child_new_with(l, argv, &plain, fd, err, err_size);
}

struct child *
child_new_with(struct loop *l, char *const argv[],
    const struct child_setup *setup, int *fd, char *err, size_t err_size)
{
	struct plumbing p;
	struct child *c;
	int error;

	if (plumbing_init(&p) != 0) {
		snprintf(err, err_size, "cannot start %s: %s", argv[0],
		    strerror(errno));
		return NULL;
	}
	if ((c = child_alloc(l)) == NULL) {
		error = ENOMEM;
		goto fail;
	}
	if ((c->pid = spawn(argv, setup, &p)) < 0) {
		error = errno;
		goto fail;
	}
	if ((error = exec_error(&p, c->pid)) != 0)
		goto fail;
	c->err_fd = p.err_read;
	p.err_read = -1;
	if (event_assign(&c->err_ev, loop_base(l), c->err_fd,
		EV_READ | EV_PERSIST, err_cb, c) != 0 ||
	    event_add(&c->err_ev, NULL) != 0 || watch_end(c) != 0) {
		error = ENOMEM;
		kill(-c->pid, SIGKILL);
		(void)reap(c, 0);
		goto fail;
	}
	loop_at_free(l, &c->at_free_call, at_free, c);
	*fd = p.ours;
	p.ours = -1;
	plumbing_done(&p);
	return c;

fail:
	snprintf(err, err_size, "cannot start %s: %s", argv[0],
	    strerror(error));
	if (c != NULL)
		destroy(c);
	plumbing_done(&p);
	return NULL;
}

void
child_when_ended(struct child *c, unsigned within_ms, void (*fn)(void *arg),
    void *arg)
{
	loop_timer_clear(c->within);
	c->fn = fn;
	c->arg = arg;
	if (fn == NULL)
		return;
	loop_timer_set(c->within, c->status != -1 ? 0 : within_ms, 0);
}

const char *
child_stderr(const struct child *c)
{
	return c->text;
}

int
child_status(const struct child *c)
{
	return c->status;
}

void
child_free(struct child *c)
{
	if (c == NULL || c->freed)
		return;
	c->freed = true;
	child_when_ended(c, 0, NULL, NULL);
	if (c->status != -1) {
		destroy(c);
		return;
	}
	kill(-c->pid, SIGTERM);
	loop_timer_set(c->killer, CHILD_TERM_MS, 0);
}
