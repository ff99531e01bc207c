#include "transport/loop/path_watch.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

/* The number of names is one of the attributes. */
#define EVENTS (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

struct path_watch {
	int fd;
	struct event ev;
	loop_fn changed;
	void *arg;
};

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	char events[sizeof(struct inotify_event) + NAME_MAX + 1]
	    __attribute__((aligned(__alignof__(struct inotify_event))));
	struct path_watch *w = arg;

	while (read(fd, events, sizeof(events)) > 0)
		;
	w->changed(w->arg);
	/* changed() may have freed w. */
}

struct path_watch *
path_watch_new(struct loop *l, const char *path, loop_fn changed, void *arg)
{
	struct path_watch *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->changed = changed;
	w->arg = arg;
	if ((w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0 ||
	    inotify_add_watch(w->fd, path, EVENTS) < 0 ||
	    event_assign(&w->ev, loop_base(l), w->fd, EV_READ | EV_PERSIST,
	    read_cb, w) != 0 ||
	    event_add(&w->ev, NULL) != 0)
		goto fail;
	return w;

fail:
	if (w->fd >= 0)
		close(w->fd);
	free(w);
	return NULL;
}

void
path_watch_free(struct path_watch *w)
{
	if (w == NULL)
		return;
	event_del(&w->ev);
	close(w->fd);
	free(w);
}
