#include "transport/connect/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/connect/dial_name.h"
#include "transport/connect/dial_resolve.h"
#include "transport/connect/dial_ssh.h"
#include "transport/connect/dial_tls.h"
#include "transport/loop/loop.h"
#include "transport/tls/tls.h"

/* An address that does not answer costs this long before the next one. */
#define DIAL_CONNECT_MS 10000u
/* A UNIX listener with a full backlog is asked again, for five seconds. */
#define DIAL_RETRY_MS 50u
#define DIAL_RETRIES  100

struct dial {
	struct loop *loop;
	dial_fn fn;
	void *arg;
	struct sockaddr_storage sa[DIAL_ADDRESSES_MAX];
	socklen_t sa_len[DIAL_ADDRESSES_MAX];
	int n_sa;
	int at; /* the address being tried */
	int retries;
	int error; /* of the last address that failed */
	int fd;    /* -1: none */
	bool waiting; /* ev is armed on fd, and timer for its time-out */
	struct loop_call start_call;
	struct event ev;
	struct loop_timer *timer; /* time-out, or time to ask again */
	struct dial_ssh *ssh; /* ssh://: does it all; else NULL */
	struct dial_resolve *names; /* asks for addresses; else NULL */
	char detail[DIAL_TEXT_MAX]; /* of what names found */

	/* tls:// */
	struct tls_context *tls; /* borrowed from the loop's; else NULL */
	char tls_name[DIAL_NAME_MAX];
	char where[ADDR_TEXT_MAX]; /* host:port, for messages */
};

static void dial_try(struct dial *d);
static void dial_failed(struct dial *d, int error);

/* Back to where nothing is armed. */
static void
dial_stop(struct dial *d)
{
	if (d->waiting)
		event_del(&d->ev);
	d->waiting = false;
	loop_timer_clear(d->timer);
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

static void
dial_connected(struct dial *d)
{
	struct dial_result r = { .fd = d->fd };

	if (d->tls != NULL) {
		r.tls = tls_conn_new(d->tls, d->fd, d->tls_name, d->where);
		if (r.tls == NULL) {
			dial_failed(d, ENOMEM);
			return;
		}
	}
	d->fd = -1;
	dial_stop(d);
	d->fn(&r, 0, d->arg);
}

static void
dial_failed(struct dial *d, int error)
{
	d->error = error;
	dial_stop(d);
	d->at++;
	d->retries = 0;
	dial_try(d);
}

static void
connected_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	d->waiting = false;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0)
		dial_failed(d, error);
	else
		dial_connected(d);
}

static void
timer_cb(void *arg)
{
	struct dial *d = arg;

	if (d->waiting)
		dial_failed(d, ETIMEDOUT);
	else
		dial_try(d);
}

static void
dial_wait(struct dial *d)
{
	if (event_assign(&d->ev, loop_base(d->loop), d->fd, EV_WRITE,
		connected_cb, d) != 0 ||
	    event_add(&d->ev, NULL) != 0) {
		dial_failed(d, ENOMEM);
		return;
	}
	d->waiting = true;
	loop_timer_set(d->timer, DIAL_CONNECT_MS, 0);
}

static void
dial_try(struct dial *d)
{
	const struct sockaddr_storage *sa = &d->sa[d->at];

	if (d->at == d->n_sa) {
		d->fn(NULL, d->error, d->arg);
		return;
	}
	d->fd = socket(sa->ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		dial_failed(d, errno);
	else if (connect(d->fd, (const struct sockaddr *)sa,
		     d->sa_len[d->at]) == 0)
		dial_connected(d);
	else if (errno == EINPROGRESS)
		dial_wait(d);
	else if (errno == EAGAIN && d->retries++ < DIAL_RETRIES) {
		dial_stop(d);
		loop_timer_set(d->timer, DIAL_RETRY_MS, 0);
	} else
		dial_failed(d, errno);
}

static void
start_cb(void *arg)
{
	dial_try(arg);
}

/* Reads certificates before we connect: nothing is missing afterwards. */
static int
prepare_tls(struct dial *d, const struct addr *a,
    const struct dial_options *o, char *err, size_t err_size)
{
	const char *scheme = strstr(a->text, "://"), *dir = o->tls_dir;
	char found[512];

	if (dir == NULL) {
		if (dial_tls_dir(found, sizeof(found), err, err_size) != 0)
			return -1;
		dir = found;
	}
	snprintf(d->where, sizeof(d->where), "%s",
	    scheme != NULL ? scheme + 3 : a->text);
	if (dial_server_name(o, a, d->tls_name, err, err_size) != 0)
		return -1;
	d->tls = dial_tls_context(d->loop, dir, o->allow_tls12, err, err_size);
	return d->tls != NULL ? 0 : -1;
}

static void
names_cb(void *arg, const struct sockaddr_storage *sa, const socklen_t *sa_len,
    int n, const char *err)
{
	struct dial *d = arg;

	if (n > 0) {
		memcpy(d->sa, sa, (size_t)n * sizeof(*sa));
		memcpy(d->sa_len, sa_len, (size_t)n * sizeof(*sa_len));
		d->n_sa = n;
	} else if (n < 0) {
		snprintf(d->detail, sizeof(d->detail), "%s", err);
	}
	dial_resolve_free(d->names);
	d->names = NULL;
	dial_try(d);
}

/* 0: the dial is under way. */
static int
find_addresses(struct dial *d, const struct addr *a, bool in_background,
    char *err, size_t err_size)
{
	if (in_background && a->sa_len == 0) {
		d->names = dial_resolve_new(d->loop, a, names_cb, d);
		if (d->names != NULL)
			return 0;
		return FAILURE(err, err_size, "%s cannot be resolved now: the "
		    "name servers do not answer", a->host);
	}
	d->n_sa = addr_resolve(a, d->sa, d->sa_len, DIAL_ADDRESSES_MAX, err,
	    err_size);
	if (d->n_sa < 0)
		return -1;
	loop_defer(d->loop, &d->start_call, start_cb, d);
	return 0;
}

static void
ssh_cb(const struct dial_result *r, int error, void *arg)
{
	struct dial *d = arg;

	d->fn(r, error, d->arg);
}

struct dial *
dial_new(struct loop *l, const struct dial_request *request, char *err,
    size_t err_size)
{
	static const struct dial_options defaults;
	const struct dial_options *how = request->how;
	const struct addr *a = request->addr;
	struct dial *d;

	if (how == NULL)
		how = &defaults;
	snprintf(err, err_size, "out of memory"); /* unless it is more */
	if ((d = calloc(1, sizeof(*d))) == NULL)
		goto fail;
	d->loop = l;
	d->fn = request->fn;
	d->arg = request->arg;
	d->fd = -1;
	d->error = EADDRNOTAVAIL; /* a name that stands for nothing */
	if ((d->timer = loop_timer_new(l, timer_cb, d)) == NULL)
		goto fail;
	if (a->kind == ADDR_SSH) {
		d->ssh = dial_ssh_new(l, &(struct dial_request){ .addr = a,
		    .how = how, .fn = ssh_cb, .arg = d }, err, err_size);
		if (d->ssh == NULL)
			goto fail;
		return d;
	}
	if (a->kind == ADDR_TLS &&
	    prepare_tls(d, a, how, err, err_size) != 0)
		goto fail;
	if (find_addresses(d, a, how->in_background, err, err_size) != 0)
		goto fail;
	return d;

fail:
	dial_free(d);
	return NULL;
}

void
dial_free(struct dial *d)
{
	if (d == NULL)
		return;
	if (d->timer != NULL)
		dial_stop(d);
	dial_ssh_free(d->ssh);
	dial_resolve_free(d->names);
	loop_timer_free(d->timer);
	loop_cancel(d->loop, d);
	free(d);
}

const char *
dial_error_detail(const struct dial *d)
{
	return d->ssh != NULL ? dial_ssh_detail(d->ssh) : d->detail;
}

void
dial_error_text(const struct addr *a, int error, const char *variable,
    char *out, size_t out_size)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		snprintf(out, out_size,
		    "no daemon listens at %s: start tributaryd%s, or set %s",
		    a->text, a->kind == ADDR_UNIX ? "" : " there", variable);
		return;
	case EACCES:
	case EPERM:
		snprintf(out, out_size,
		    "no permission to connect to %s: join the group that owns "
		    "the socket, or start the daemon with "
		    "--set-socket-permissions", a->text);
		return;
	case ETIMEDOUT:
		snprintf(out, out_size,
		    "no answer from %s: is the machine up, and does a firewall "
		    "let the port through?", a->text);
		return;
	case EAGAIN:
		snprintf(out, out_size,
		    "the daemon at %s does not accept connections: it hangs or "
		    "is overloaded", a->text);
		return;
	case EAFNOSUPPORT:
		snprintf(out, out_size,
		    "cannot connect to %s: this kernel has no such sockets",
		    a->text);
		return;
	}
	snprintf(out, out_size, "cannot connect to %s: %s", a->text,
	    strerror(error));
}
