#include "client/web/web_traced.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/tunnel/passage.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

struct connection {
	LIST_ENTRY(connection) link;
	struct web_traced *traced;
	struct passage *passage; /* owned */
};

struct web_traced {
	struct loop *loop;
	const struct addr *to;
	const struct dial_options *how;
	LIST_HEAD(, connection) connections;
	pthread_mutex_t lock; /* of what follows */
	size_t n;             /* connections, and those to come */
	int new_fds[WEB_TRACED_MAX];
	size_t n_new;
	struct loop_post post;
};

static void
drop(struct web_traced *t)
{
	pthread_mutex_lock(&t->lock);
	t->n--;
	pthread_mutex_unlock(&t->lock);
}

static void
connection_free(struct connection *c)
{
	LIST_REMOVE(c, link);
	drop(c->traced);
	passage_free(c->passage);
	free(c);
}

static void
ended_cb(void *arg, const char *why)
{
	if (why != NULL)
		log_warn("a recorder's connection has ended: %s", why);
	connection_free(arg);
}

static const struct passage_ops ops = { .ended = ended_cb };

/* Takes fd. */
static void
lead(struct web_traced *t, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	char err[1024];

	if (c == NULL) {
		close(fd);
		drop(t);
		return;
	}
	c->traced = t;
	LIST_INSERT_HEAD(&t->connections, c, link);
	c->passage = passage_new(t->loop, fd, &(struct passage_setup){
	    .to = t->to, .how = t->how,
	    .variable = "PERFETTO_CONSUMER_SOCK_NAME", .ops = &ops,
	    .arg = c }, err, sizeof(err));
	if (c->passage == NULL)
		ended_cb(c, err);
}

static void
lead_new(void *arg)
{
	struct web_traced *t = arg;
	int fds[WEB_TRACED_MAX];
	size_t n, i;

	pthread_mutex_lock(&t->lock);
	n = t->n_new;
	for (i = 0; i < n; i++)
		fds[i] = t->new_fds[i];
	t->n_new = 0;
	pthread_mutex_unlock(&t->lock);
	for (i = 0; i < n; i++)
		lead(t, fds[i]);
}

struct web_traced *
web_traced_new(struct loop *l, const struct addr *to,
    const struct dial_options *how)
{
	struct web_traced *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->loop = l;
	t->to = to;
	t->how = how;
	LIST_INIT(&t->connections);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void
web_traced_free(struct web_traced *t)
{
	struct connection *c;

	if (t == NULL)
		return;
	loop_cancel(t->loop, t);
	while (t->n_new > 0)
		close(t->new_fds[--t->n_new]);
	while ((c = LIST_FIRST(&t->connections)) != NULL)
		connection_free(c);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int
web_traced_open(struct web_traced *t)
{
	int pair[2], near = -1;

	pthread_mutex_lock(&t->lock);
	if (t->n < WEB_TRACED_MAX && socketpair(AF_UNIX, SOCK_STREAM |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0) {
		near = pair[0];
		t->new_fds[t->n_new++] = pair[1];
		t->n++;
	}
	pthread_mutex_unlock(&t->lock);
	if (near >= 0)
		loop_post(t->loop, &t->post, lead_new, t);
	return near;
}
