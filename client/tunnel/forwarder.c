#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "client/library/clock_voice.h"
#include "client/tunnel/forward.h"
#include "client/tunnel/passage.h"
#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/dial.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/peer.h"
#include "transport/stream/stream.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

/* One accepted connection, on its way to the service. */
struct forwarded {
	LIST_ENTRY(forwarded) link;
	struct forwarder *forwarder;
	struct passage *passage; /* owned */
};

struct forwarder {
	struct loop *loop;
	struct listener *listener;
	struct addr to;
	const struct dial_options *how;
	bool consumers;
	const char *machine_name;
	/* Forwarded producers cannot speak for them; from the first one on. */
	struct clock_voice *clocks;
	LIST_HEAD(, forwarded) connections;
	size_t n_connections;
	struct log_limit log_limit;
};

static void PRINTF_LIKE(2, 3)
warn(struct forwarder *f, const char *fmt, ...)
{
	char line[1024];
	uint32_t swallowed;
	va_list ap;

	if (!log_allowed(&f->log_limit, loop_now_ms(), &swallowed))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_warn("%s", line);
}

/* Sends SetPeerIdentity as the first frame.  -1: no memory. */
static int
tell_identity(struct forwarder *f, struct stream *near, struct stream *far)
{
	const struct peer *peer = stream_peer(near);
	char hint[THIS_MACHINE_CLOCKS_MAX];
	struct pb_writer w;
	size_t mark;
	int rc = -1;

	this_machine_clocks(hint, sizeof(hint));
	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, 0, IPC_SET_PEER_IDENTITY);
	pb_put_int(&w, SetPeerIdentity_pid, peer->pid);
	pb_put_int(&w, SetPeerIdentity_uid, (int32_t)peer->uid);
	pb_put_string(&w, SetPeerIdentity_machine_id_hint, hint);
	pb_put_string(&w, SetPeerIdentity_machine_name,
	    f->machine_name);
	/* No descriptor travels through us (transport/wire/ipc_frame.h). */
	pb_put_uint(&w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(&w, mark);
	if (!w.failed) {
		stream_write(far, w.data, w.len, -1);
		rc = 0;
	}
	pb_writer_done(&w);
	return rc;
}

static int
opened_cb(void *arg, struct stream *near, struct stream *far)
{
	struct forwarded *c = arg;

	log_debug("connected to %s", stream_peer(far)->text);
	return c->forwarder->consumers ? 0 :
	    tell_identity(c->forwarder, near, far);
}

static void
forwarded_free(struct forwarded *c)
{
	LIST_REMOVE(c, link);
	c->forwarder->n_connections--;
	passage_free(c->passage);
	free(c);
}

static void
ended_cb(void *arg, const char *why)
{
	struct forwarded *c = arg;

	if (why != NULL)
		warn(c->forwarder, "%s", why);
	forwarded_free(c);
}

static const struct passage_ops passage_ops = {
	.opened = opened_cb,
	.ended = ended_cb,
};

static void
measure_clocks(struct forwarder *f)
{
	if (f->consumers || f->clocks != NULL)
		return;
	f->clocks = clock_voice_new(f->loop, &(struct clock_voice_setup){
	    .to = &f->to, .how = f->how, .name = "tributary forward",
	    .machine_name = f->machine_name });
	if (f->clocks == NULL)
		warn(f, "no memory to measure the collector's clocks: "
		    "timestamps may be off");
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct forwarder *f = arg;
	struct forwarded *c;
	char err[1024];

	if (f->n_connections == FORWARD_MAX) {
		close(fd);
		warn(f, "a connection was closed: %d are open, and no more are "
		    "forwarded", FORWARD_MAX);
		return;
	}
	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(fd);
		return;
	}
	c->forwarder = f;
	LIST_INSERT_HEAD(&f->connections, c, link);
	f->n_connections++;
	measure_clocks(f);
	c->passage = passage_new(f->loop, fd, &(struct passage_setup){
	    .to = &f->to, .how = f->how, .variable = f->consumers ?
	    "PERFETTO_CONSUMER_SOCK_NAME" : "PERFETTO_PRODUCER_SOCK_NAME",
	    .ops = &passage_ops, .arg = c }, err, sizeof(err));
	if (c->passage == NULL)
		ended_cb(c, err);
}

/* ---- life ---- */

/*
 * Refuses addresses that other machines reach: every peer that connects is let
 * through unasked.
 */
static int
check_listen(const struct addr *a, char *err, size_t err_size)
{
	struct sockaddr_storage sa[8];
	socklen_t len[8];
	int i, n;

	if (a->kind == ADDR_UNIX)
		return 0;
	if (a->kind == ADDR_TCP) {
		n = addr_resolve(a, sa, len, 8, err, err_size);
		if (n < 0)
			return -1;
		for (i = 0; i < n && addr_is_local(&sa[i]); i++)
			;
		if (i == n)
			return 0;
	}
	return FAILURE(err, err_size, "cannot listen on %s: every connection "
	    "is let through unchecked, so it must be a UNIX socket, or a port "
	    "on the loopback interface", a->text);
}

struct forwarder *
forwarder_new(struct loop *l, const struct forward_options *o, char *err,
    size_t err_size)
{
	struct forwarder *f;

	if (check_listen(o->listen, err, err_size) != 0)
		return NULL;
	if ((f = calloc(1, sizeof(*f))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	f->loop = l;
	f->to = *o->to;
	f->how = o->how;
	f->consumers = o->consumers;
	f->machine_name = o->machine_name;
	LIST_INIT(&f->connections);
	f->listener = listener_new(l,
	    &(struct listener_setup){ .addr = o->listen, .fn = accept_cb,
	    .arg = f }, err, err_size);
	if (f->listener == NULL) {
		free(f);
		return NULL;
	}
	return f;
}

void
forwarder_free(struct forwarder *f)
{
	struct forwarded *c;

	if (f == NULL)
		return;
	listener_free(f->listener);
	clock_voice_free(f->clocks);
	while ((c = LIST_FIRST(&f->connections)) != NULL)
		forwarded_free(c);
	free(f);
}

size_t
forwarder_connections(const struct forwarder *f)
{
	return f->n_connections;
}
