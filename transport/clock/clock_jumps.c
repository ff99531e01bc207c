#include "transport/clock/clock_jumps.h"

#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/loop/loop.h"

struct clock_jumps {
	int fd;
	struct event *event;
	void (*jumped)(void *arg);
	void *arg;
};

static void
ready_cb(evutil_socket_t fd, short what, void *arg)
{
	struct clock_jumps *w = arg;
	if (clock_jumps_read(w->fd))
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
	if ((w->fd = clock_jumps_open()) < 0)
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
