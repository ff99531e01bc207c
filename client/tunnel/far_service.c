#include "client/tunnel/far_service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/tunnel/passage.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

struct far_service {
	const struct addr *to;
	struct dial_options how;
	struct loop *loop; /* the thread's */
	pthread_t thread;
	bool has_thread;
	struct passage *passage; /* the thread's, owned; NULL: none */
	struct loop_post post;

	pthread_mutex_t lock; /* of all below */
	int fd; /* for the thread; -1: none */
	bool stopping;
	char why[DIAL_TEXT_MAX]; /* "": the service ended the connection */
};

bool
far_service_is_needed(const struct addr *to)
{
	return to->kind == ADDR_TLS || to->kind == ADDR_SSH;
}

/* ---- The thread ---- */

static void
say_why(struct far_service *f, const char *why)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->why, sizeof(f->why), "%s", why != NULL ? why : "");
	pthread_mutex_unlock(&f->lock);
}

/* Says why before it closes the socket: readers of its end find it. */
static void
ended_cb(void *arg, const char *why)
{
	struct far_service *f = arg;

	say_why(f, why);
	passage_free(f->passage);
	f->passage = NULL;
}

static const struct passage_ops passage_ops = { .ended = ended_cb };

static void
begin(struct far_service *f, int fd)
{
	char err[DIAL_TEXT_MAX];
	/* Without one it is not heard why there is no connection. */
	int held = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	f->passage = passage_new(f->loop, fd, &(struct passage_setup){
	    .to = f->to, .how = &f->how,
	    .variable = "PERFETTO_PRODUCER_SOCK_NAME", .ops = &passage_ops,
	    .arg = f }, err, sizeof(err));
	if (f->passage == NULL)
		say_why(f, err);
	if (held >= 0)
		close(held);
}

static void
look(void *arg)
{
	struct far_service *f = arg;
	bool stopping;
	int fd;

	pthread_mutex_lock(&f->lock);
	fd = f->fd;
	f->fd = -1;
	stopping = f->stopping;
	pthread_mutex_unlock(&f->lock);
	if (fd >= 0 || stopping) {
		passage_free(f->passage);
		f->passage = NULL;
	}
	if (stopping) {
		if (fd >= 0)
			close(fd);
		loop_stop(f->loop);
	} else if (fd >= 0) {
		begin(f, fd);
	}
}

static void *
run(void *arg)
{
	struct far_service *f = arg;

	(void)pthread_setname_np(pthread_self(), "far service");
	loop_run(f->loop);
	return NULL;
}

/* ---- Its owner ---- */

/* All signals are the owner's. */
static int
start(struct far_service *f)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&f->thread, NULL, run, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	f->has_thread = rc == 0;
	errno = rc;
	return rc == 0 ? 0 : -1;
}

struct far_service *
far_service_new(const struct addr *to, const struct dial_options *how)
{
	struct far_service *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->to = to;
	if (how != NULL)
		f->how = *how;
	if (f->how.service == NULL)
		f->how.service = "producer";
	f->fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	if ((f->loop = loop_new()) == NULL || start(f) != 0) {
		far_service_free(f);
		return NULL;
	}
	return f;
}

void
far_service_free(struct far_service *f)
{
	if (f == NULL)
		return;
	if (f->has_thread) {
		pthread_mutex_lock(&f->lock);
		f->stopping = true;
		pthread_mutex_unlock(&f->lock);
		loop_post(f->loop, &f->post, look, f);
		pthread_join(f->thread, NULL);
	}
	if (f->loop != NULL)
		loop_free(f->loop);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

int
far_service_connect(struct far_service *f)
{
	int pair[2], old;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
	    pair) != 0)
		return -1;
	pthread_mutex_lock(&f->lock);
	old = f->fd;
	f->fd = pair[1];
	f->why[0] = '\0';
	pthread_mutex_unlock(&f->lock);
	if (old >= 0)
		close(old);
	loop_post(f->loop, &f->post, look, f);
	return pair[0];
}

bool
far_service_why(struct far_service *f, char *out, size_t size)
{
	pthread_mutex_lock(&f->lock);
	snprintf(out, size, "%s", f->why);
	pthread_mutex_unlock(&f->lock);
	return out[0] != '\0';
}
