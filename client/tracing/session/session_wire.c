#include "client/tracing/session/session_wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/tracing/port/port_dial.h"
#include "transport/socket/addr.h"

uint64_t
session_wire_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- The consumer's calls ---- */

static bool
invoke(void *wire, const struct consumer_request *r)
{
	struct session_wire *w = wire;
	uint64_t request;

	if (w->n_calls == SESSION_WIRE_CALLS_MAX || w->down[0] != '\0')
		return false;
	if (r->fd >= 0)
		request = port_wire_call_with_fd(&w->port, r->method, r->args,
		    r->len, r->fd) ? w->port.last_request : 0;
	else
		request = port_wire_call(&w->port, r->method, r->args, r->len,
		    true);
	if (request == 0)
		return false;
	w->calls[w->n_calls].request = request;
	w->calls[w->n_calls++].call = r->call;
	return true;
}

static void
failed(void *wire)
{
	struct session_wire *w = wire;

	w->failed = true;
}

static void
close_wire(void *wire)
{
	struct session_wire *w = wire;

	port_wire_done(&w->port);
}

static const struct consumer_wire wire_ops = {
	.invoke = invoke,
	.failed = failed,
	.close = close_wire,
};

/* ---- What came ---- */

void
session_wire_leave(struct session_wire *w, const char *why)
{
	if (w->down[0] != '\0')
		return;
	snprintf(w->down, sizeof(w->down), "%s", why);
	port_wire_done(&w->port);
	w->n_calls = 0;
	consumer_wire_down(w->consumer, w->down);
}

static void
replied(struct session_wire *w, const struct port_event *e)
{
	struct consumer_call *call;
	size_t i;

	for (i = 0; i < w->n_calls && w->calls[i].request != e->request; i++)
		;
	if (i == w->n_calls)
		return;
	call = w->calls[i].call;
	if (!e->more || !e->ok)
		w->calls[i] = w->calls[--w->n_calls];
	consumer_wire_reply(call, e->ok, e->more, e->data, e->len);
}

/* Tells of one thing.  false: there is none. */
static bool
next(struct session_wire *w)
{
	struct port_event e;

	port_wire_next(&w->port, &e);
	switch (e.kind) {
	case PORT_NOTHING:
		return false;
	case PORT_BOUND:
		w->up = true;
		break;
	case PORT_REPLY:
		replied(w, &e);
		break;
	case PORT_BROKEN:
		session_wire_leave(w, e.why);
		break;
	}
	return true;
}

/* false: not by that time. */
static bool
wait_for_socket(struct session_wire *w, short events, uint64_t until_ms)
{
	struct pollfd fd = { .fd = w->port.fd, .events = events };
	uint64_t now;
	int n;

	do {
		now = session_wire_now();
		if (now >= until_ms)
			return false;
		n = poll(&fd, 1, until_ms - now > INT_MAX ? INT_MAX :
		    (int)(until_ms - now));
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

bool
session_wire_turn(struct session_wire *w, uint64_t until_ms)
{
	bool sends;

	for (;;) {
		if (w->down[0] != '\0')
			return false;
		if (w->failed) {
			w->failed = false;
			consumer_wire_failed(w->consumer);
			return true;
		}
		if (next(w))
			return true;
		sends = port_wire_send(&w->port);
		if (!sends && w->port.out.failed) {
			session_wire_leave(w, "out of memory");
			return false;
		}
		/* Words of a service that is gone are still read. */
		if (!wait_for_socket(w, sends && port_wire_queued(&w->port) > 0 ?
		    POLLIN | POLLOUT : POLLIN, until_ms))
			return false;
		if (!port_wire_receive(&w->port)) {
			session_wire_leave(w, "the service closed the "
			    "connection");
			return false;
		}
	}
}

/* ---- The connection ---- */

/* One of the *n addresses that a stands for; 0, or an errno. */
static int
dial_one(struct session_wire *w, const struct addr *a, unsigned at,
    unsigned *n, uint64_t until_ms)
{
	int fd = port_dial(a, at, n);

	if (fd < 0)
		return errno;
	port_wire_init(&w->port, fd, &w->service);
	return wait_for_socket(w, POLLOUT, until_ms) ? port_dial_error(fd) :
	    ETIMEDOUT;
}

static bool
dial(struct session_wire *w, const char *address, uint64_t until_ms)
{
	unsigned at = 0, n = 1;
	struct addr a;
	int error;

	if (!port_dial_choose(&a, address, w->down, sizeof(w->down)))
		return false;
	w->down[0] = '\0';
	while ((error = dial_one(w, &a, at, &n, until_ms)) != 0 && ++at < n)
		port_wire_done(&w->port);
	if (error == 0)
		return true;
	snprintf(w->down, sizeof(w->down), "cannot connect to %.200s: %s",
	    a.text, strerror(error));
	return false;
}

bool
session_wire_connect(struct session_wire *w, const char *address,
    unsigned timeout_ms, const struct consumer_ops *ops, void *arg)
{
	uint64_t until_ms = session_wire_now() + timeout_ms;
	unsigned m;

	memset(w, 0, sizeof(*w));
	w->service.name = "ConsumerPort";
	w->service.refusal = "the service takes no consumers at this address";
	for (m = 0; m < CONSUMER_METHODS; m++)
		w->service.methods[m] = consumer_method_name(m);
	port_wire_init(&w->port, -1, &w->service);
	w->consumer = consumer_new(&(struct consumer_setup){ .ops = ops,
	    .arg = arg, .wire_ops = &wire_ops, .wire = w });
	if (w->consumer == NULL) {
		snprintf(w->down, sizeof(w->down), "out of memory");
		return false;
	}
	if (!dial(w, address, until_ms))
		return false;
	port_wire_bind(&w->port, NULL);
	while (!w->up && session_wire_turn(w, until_ms))
		;
	if (w->up)
		consumer_wire_up(w->consumer, port_dial_is_unix(w->port.fd));
	else
		session_wire_leave(w, "the service did not answer in time");
	return w->up;
}

void
session_wire_done(struct session_wire *w)
{
	consumer_free(w->consumer);
	w->consumer = NULL;
}
