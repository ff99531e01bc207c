#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "client/library/producer.h"
#include "client/tunnel/forward.h"
#include "protos/fields.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/dial.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/socket/peer.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"

/*
 * High-water and low-water mark of one direction's queue, in bytes: above HIGH
 * reading from its source pauses until LOW.  One read may come on top, far
 * below HARD, the stream's own limit.
 */
#define FORWARD_HIGH (512u * 1024u)
#define FORWARD_LOW  (128u * 1024u)
#define FORWARD_HARD (4u * 1024u * 1024u)

/* One accepted connection and the one that it leads to. */
struct passage {
	LIST_ENTRY(passage) link;
	struct forwarder *forwarder;
	struct stream *near;
	struct stream *far; /* NULL: dial is under way */
	struct dial *dial;
};

struct forwarder {
	struct loop *loop;
	struct listener *listener;
	struct addr to;
	const struct dial_options *how;
	bool consumers;
	const char *machine_name;
	/*
	 * Producer without data sources that measures the collector's clocks,
	 * as forwarded producers cannot; from the first connection on.
	 */
	struct producer *clocks;
	LIST_HEAD(, passage) passages;
	size_t n_passages;
	struct log_limit log_limit;
};

/* ---- the end ---- */

static void
passage_free(struct passage *p)
{
	LIST_REMOVE(p, link);
	p->forwarder->n_passages--;
	dial_free(p->dial);
	free(p);
}

/*
 * One connection has ended.  Its last bytes are still in the other's queue and
 * are sent first, within the time that stream_close() allows.
 */
static void
passage_ended(struct passage *p, struct stream *other)
{
	if (other != NULL)
		stream_close(other, true);
	passage_free(p);
}

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

/* ---- the far side ---- */

static size_t
pass_on(struct stream *from, struct stream *to, const uint8_t *buf, size_t len)
{
	stream_write(to, buf, len, -1);
	if (stream_queued(to) > FORWARD_HIGH)
		stream_pause(from);
	return len;
}

static size_t
far_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct passage *p = arg;

	return pass_on(s, p->near, buf, len);
}

static void
far_drained(struct stream *s, void *arg)
{
	struct passage *p = arg;

	stream_resume(p->near);
}

static void
far_opened(struct stream *s, void *arg)
{
	log_debug("connected to %s", stream_peer(s)->text);
}

static void
far_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct passage *p = arg;
	const char *detail = stream_end_detail(s);

	if (*detail != '\0')
		warn(p->forwarder, "%s", detail);
	else if (why != STREAM_EOF)
		warn(p->forwarder, "%s: %s", p->forwarder->to.text,
		    stream_end_text(why));
	passage_ended(p, p->near);
}

static const struct stream_ops far_ops = {
	.data = far_data,
	.opened = far_opened,
	.drained = far_drained,
	.closed = far_closed,
};

/* Sends SetPeerIdentity as the first frame.  -1: no memory. */
static int
tell_identity(struct passage *p)
{
	const struct peer *peer = stream_peer(p->near);
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
	    p->forwarder->machine_name);
	/* No descriptor travels through us (transport/wire/ipc_frame.h). */
	pb_put_uint(&w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(&w, mark);
	if (!w.failed) {
		stream_write(p->far, w.data, w.len, -1);
		rc = 0;
	}
	pb_writer_done(&w);
	return rc;
}

static void
dial_cb(const struct dial_result *r, int error, void *arg)
{
	struct passage *p = arg;
	struct forwarder *f = p->forwarder;
	struct stream_setup setup = { .child_addr = &f->to };
	char text[512];

	dial_free(p->dial);
	p->dial = NULL;
	if (r == NULL) {
		dial_error_text(&f->to, error, f->consumers ?
		    "PERFETTO_CONSUMER_SOCK_NAME" :
		    "PERFETTO_PRODUCER_SOCK_NAME", text, sizeof(text));
		warn(f, "%s", text);
		passage_ended(p, p->near);
		return;
	}
	setup.tls = r->tls;
	setup.child = r->child;
	setup.peer = r->peer;
	p->far = stream_new_over(f->loop, r->fd, &setup, &far_ops, p);
	if (p->far == NULL) {
		tls_conn_free(r->tls);
		child_free(r->child);
		close(r->fd);
		goto fail;
	}
	stream_set_limits(p->far, FORWARD_HARD, FORWARD_LOW);
	if (!f->consumers && tell_identity(p) != 0) {
		stream_close(p->far, false);
		goto fail;
	}
	stream_resume(p->near);
	return;

fail:
	warn(f, "out of memory for one more connection");
	passage_ended(p, p->near);
}

/* ---- the near side ---- */

static size_t
near_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct passage *p = arg;

	return pass_on(s, p->far, buf, len);
}

static void
near_drained(struct stream *s, void *arg)
{
	struct passage *p = arg;

	if (p->far != NULL)
		stream_resume(p->far);
}

static void
near_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct passage *p = arg;

	passage_ended(p, p->far);
}

static const struct stream_ops near_ops = {
	.data = near_data,
	.drained = near_drained,
	.closed = near_closed,
};

static void
measure_clocks(struct forwarder *f)
{
	const struct producer_options o = {
		.address = &f->to,
		.how = f->how,
		.name = "tributary forward",
		.machine_name = f->machine_name,
	};

	if (f->consumers || f->clocks != NULL)
		return;
	if ((f->clocks = producer_new(f->loop, &o)) == NULL)
		warn(f, "no memory to measure the collector's clocks: "
		    "timestamps may be off");
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct forwarder *f = arg;
	struct passage *p;
	char err[1024];

	if (f->n_passages == FORWARD_MAX) {
		close(fd);
		warn(f, "a connection was closed: %d are open, and no more are "
		    "forwarded", FORWARD_MAX);
		return;
	}
	if ((p = calloc(1, sizeof(*p))) == NULL) {
		close(fd);
		return;
	}
	p->forwarder = f;
	if ((p->near = stream_new(f->loop, fd, &near_ops, p)) == NULL) {
		close(fd);
		free(p);
		return;
	}
	LIST_INSERT_HEAD(&f->passages, p, link);
	f->n_passages++;
	stream_set_limits(p->near, FORWARD_HARD, FORWARD_LOW);
	stream_pause(p->near); /* until the collector is connected */
	measure_clocks(f);
	p->dial = dial_new(f->loop, &(struct dial_request){ .addr = &f->to,
	    .how = f->how, .fn = dial_cb, .arg = p }, err, sizeof(err));
	if (p->dial == NULL) {
		warn(f, "%s", err);
		passage_ended(p, p->near);
	}
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
	LIST_INIT(&f->passages);
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
	struct passage *p;

	if (f == NULL)
		return;
	listener_free(f->listener);
	producer_free(f->clocks);
	while ((p = LIST_FIRST(&f->passages)) != NULL) {
		stream_close(p->near, false);
		if (p->far != NULL)
			stream_close(p->far, true);
		passage_free(p);
	}
	free(f);
}

size_t
forwarder_connections(const struct forwarder *f)
{
	return f->n_passages;
}
