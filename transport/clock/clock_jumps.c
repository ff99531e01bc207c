#include "transport/clock/clock_jumps.h"

#include <errno.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/loop/loop.h"

struct clock_jumps {
	int fd;
	struct event *event;
	void (*jumped)(void *arg);
	void *arg;
};

/* A time that never comes: the timer only ever ends by being cancelled. */
static int
arm(int fd)
{
	struct itimerspec never = {
		.it_value.tv_sec = (time_t)(INT64_MAX / 1000000000),
	};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME |
	    TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static void
ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct clock_jumps *w = arg;
	uint64_t ticks;

	if (read(w->fd, &ticks, sizeof(ticks)) >= 0 || errno != ECANCELED)
		return;
	(void)arm(w->fd);
	w->jumped(w->arg);
}

struct clock_jumps *
clock_jumps_new(struct loop *l, void (*jumped)(void *arg), void *arg)
{
	struct clock_jumps *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->jumped = jumped;
	w->arg = arg;
	w->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->fd < 0 || arm(w->fd) != 0)
		goto fail;
	w->event = event_new(loop_base(l), w->fd, EV_READ | EV_PERSIST,
	    ready_cb, w);
	if (w->event == NULL || event_add(w->event, NULL) != 0)
		goto fail;
	return w;

fail:
	clock_jumps_free(w);
	return NULL;
}

void
clock_jumps_free(struct clock_jumps *w)
{
	if (w == NULL)
		return;
	if (w->event != NULL)
		event_free(w->event);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}
