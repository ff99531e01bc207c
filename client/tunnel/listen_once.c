#include "client/tunnel/listen_once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

/* Period in which a waiting process tries to get the lock. */
#define ACCEPT_TURN_MS 100u

struct listen_once {
	struct loop *loop;
	struct addr addr;
	listen_once_fn fn;
	void *arg;
	char lock_path[300];
	int lock;                  /* held, or -1 */
	struct listener *listener; /* NULL: not our turn, or over */
	struct loop_timer *turn;
};

/* Locks are removed while held: a lock on a removed file does not count. */
static void
unlock(struct listen_once *o)
{
	if (o->lock < 0)
		return;
	unlink(o->lock_path);
	close(o->lock);
	o->lock = -1;
}

static void
stop(struct listen_once *o)
{
	listener_free(o->listener);
	o->listener = NULL;
	loop_timer_clear(o->turn);
	unlock(o);
}

static void
give_up(struct listen_once *o, const char *error)
{
	stop(o);
	o->fn(o->arg, -1, error);
}

static void
accepted(struct listener *l, int fd, void *arg)
{
	struct listen_once *o = arg;

	stop(o);
	o->fn(o->arg, fd, NULL);
}

/* Whether the file that was locked is still the one at its path. */
static bool
is_current(const struct listen_once *o, int fd)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && lstat(o->lock_path, &there) == 0 &&
	    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* 1: locked; 0: another process holds it; -1: impossible, with errno. */
static int
try_lock(struct listen_once *o)
{
	int fd, error;

	fd = open(o->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_current(o, fd)) {
		o->lock = fd;
		return 1;
	}
	error = errno;
	close(fd);
	errno = error;
	return 0;
}

static void
try_turn(void *arg)
{
	struct listen_once *o = arg;
	char err[ADDR_TEXT_MAX * 3];
	int got;

	if ((got = try_lock(o)) == 0) {
		loop_timer_set(o->turn, ACCEPT_TURN_MS, 0);
		return;
	}
	if (got < 0) {
		snprintf(err, sizeof(err), "cannot make %s, by which several "
		    "take turns at %s: %s", o->lock_path, o->addr.text,
		    strerror(errno));
		give_up(o, err);
		return;
	}
	o->listener = listener_new(o->loop,
	    &(struct listener_setup){ .addr = &o->addr, .fn = accepted,
	    .arg = o }, err, sizeof(err));
	if (o->listener == NULL)
		give_up(o, err);
}

struct listen_once *
listen_once_new(struct loop *l, const struct addr *a, listen_once_fn fn,
    void *arg)
{
	struct listen_once *o;

	if ((o = calloc(1, sizeof(*o))) == NULL)
		return NULL;
	o->loop = l;
	o->addr = *a;
	o->fn = fn;
	o->arg = arg;
	o->lock = -1;
	snprintf(o->lock_path, sizeof(o->lock_path), "%s.lock",
	    ((const struct sockaddr_un *)&a->sa)->sun_path);
	if ((o->turn = loop_timer_new(l, try_turn, o)) == NULL) {
		free(o);
		return NULL;
	}
	loop_timer_set(o->turn, 0, 0);
	return o;
}

void
listen_once_free(struct listen_once *o)
{
	if (o == NULL)
		return;
	stop(o);
	loop_timer_free(o->turn);
	free(o);
}
