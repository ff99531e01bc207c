#include "client/tracing/core/outer_loop.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int
add(struct outer_loop *o, int op, int fd, short events)
{
	struct epoll_event e = {
		.events = ((events & POLLIN) != 0 ? EPOLLIN : 0u) |
		    ((events & POLLOUT) != 0 ? EPOLLOUT : 0u),
	};

	return epoll_ctl(o->fd, op, fd, &e);
}

int
outer_loop_open(struct outer_loop *o)
{
	size_t i;

	for (i = 0; i < OUTER_LOOP_FDS; i++)
		o->watched[i] = -1;
	o->fd = epoll_create1(EPOLL_CLOEXEC);
	o->timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	if (o->fd >= 0 && o->timer_fd >= 0 &&
	    add(o, EPOLL_CTL_ADD, o->timer_fd, POLLIN) == 0)
		return 0;
	outer_loop_close(o);
	return -1;
}

void
outer_loop_close(struct outer_loop *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->timer_fd >= 0)
		close(o->timer_fd);
	o->fd = o->timer_fd = -1;
}

/* Setting a timer that has fired makes its descriptor wait again. */
static void
set_timer(struct outer_loop *o, int timeout_ms)
{
	struct itimerspec t = { .it_value = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L,
	} };

	if (timeout_ms == 0)
		t.it_value.tv_nsec = 1; /* at once; 0 would be never */
	if (timeout_ms < 0)
		t.it_value = (struct timespec){ 0, 0 };
	(void)timerfd_settime(o->timer_fd, 0, &t, NULL);
}

static void
forget(struct outer_loop *o, size_t i, int fd)
{
	if (o->watched[i] >= 0 && o->watched[i] != fd)
		(void)epoll_ctl(o->fd, EPOLL_CTL_DEL, o->watched[i], NULL);
	o->watched[i] = fd;
}

/*
 * A number may be another descriptor's than it was: a file that was closed has
 * left the set by itself.  So all are forgotten before any is added.
 */
void
outer_loop_watch(struct outer_loop *o, const struct pollfd *fds, size_t n,
    int timeout_ms)
{
	size_t i;

	for (i = 0; i < OUTER_LOOP_FDS; i++)
		forget(o, i, i < n ? fds[i].fd : -1);
	for (i = 0; i < n; i++)
		if (fds[i].fd >= 0 &&
		    add(o, EPOLL_CTL_MOD, fds[i].fd, fds[i].events) != 0)
			(void)add(o, EPOLL_CTL_ADD, fds[i].fd, fds[i].events);
	set_timer(o, timeout_ms);
}
