#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protos/fields.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_conn_internal.h"
#include "transport/socket/sock.h"
#include "transport/wire/frame.h"
#include "transport/wire/pb_writer.h"

#define RPC_LOG_MAX 1024

/* ---- connections ---- */

void
rpc_conn_warn(struct rpc_conn *c, const char *fmt, ...)
{
	char line[RPC_LOG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_limited(&c->stats->log_limit, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: %s", rpc_conn_peer(c)->text, line);
}

/* The end of c.  Its stream's memory outlives this call. */
static void
conn_gone(struct rpc_conn *c)
{
	if (c->service != NULL && c->service->gone != NULL)
		c->service->gone(c->ctx);
	if (c->guard != NULL && c->guard->gone != NULL)
		c->guard->gone(c, c->guard->arg);
	free(c->identity);
	free(c);
}

static void
gone_cb(void *arg)
{
	conn_gone(arg);
}

void
rpc_conn_close(struct rpc_conn *c, const char *reason)
{
	if (c->closing)
		return;
	c->closing = true;
	if (reason != NULL)
		rpc_conn_warn(c, "closed: %s", reason);
	rpc_conns_remove(c);
	/* Before the stream defers its own end: gone() may ask for the peer. */
	loop_defer(c->loop, &c->gone_call, gone_cb, c);
	/*
	 * A connection that is closed by us must not hold memory for a second
	 * more.
	 */
	stream_close(c->stream, reason == NULL);
}

void
rpc_conn_refuse(struct rpc_conn *c, const char *why)
{
	if (c->closing)
		return;
	rpc_conn_warn(c, "refused: %s", why);
	rpc_conn_tell(c, 0, why);
	rpc_conn_close(c, NULL);
}

/* Asks the guard, now that the peer is known. */
static void
conn_admit(struct rpc_conn *c)
{
	const struct rpc_guard *g = c->guard;
	char why[RPC_WHY_MAX] = "";

	if (g == NULL || g->admit == NULL ||
	    g->admit(c, rpc_conn_peer(c), g->arg, why))
		return;
	c->stats->refused_admit++;
	rpc_conn_warn(c, "refused: %s", why);
	if (!c->closing)
		rpc_conn_tell(c, 0, why);
	rpc_conn_close(c, NULL);
}

static void
conn_stream_opened(struct stream *s, void *arg)
{
	struct rpc_conn *c = arg;

	c->since_ms = loop_turn_ms(c->loop);
	log_debug("%s: TLS handshake done", rpc_conn_peer(c)->text);
	conn_admit(c);
}

static void
count_end(struct rpc_stats *stats, enum stream_end why)
{
	switch (why) {
	case STREAM_SLOW:
		stats->closed_slow++;
		return;
	case STREAM_REFUSED:
		stats->failed_handshake++;
		return;
	case STREAM_BUDGET:
		stats->closed_budget++;
		return;
	case STREAM_EOF:
	case STREAM_RESET:
	case STREAM_PROTOCOL:
	case STREAM_NO_MEMORY:
	case STREAM_SHUTDOWN:
		return;
	}
}

static void
conn_stream_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct rpc_conn *c = arg;
	const char *detail = stream_end_detail(s);

	count_end(c->stats, why);
	/* A client that exits with replies unread resets: nothing is wrong. */
	if ((why == STREAM_EOF || why == STREAM_RESET) && detail[0] == '\0')
		log_debug("%s: %s", stream_peer(s)->text, stream_end_text(why));
	else
		rpc_conn_warn(c, "%s%s%s", stream_end_text(why),
		    detail[0] != '\0' ? ": " : "", detail);
	rpc_conns_remove(c);
	conn_gone(c);
}

static void
conn_stream_drained(struct stream *s, void *arg)
{
	struct rpc_conn *c = arg;

	if (c->service != NULL && c->service->drained != NULL)
		c->service->drained(c->ctx);
}

/* ---- replies ---- */

void
rpc_conn_send(struct rpc_conn *c, const struct pb_writer *w)
{
	if (w->failed)
		rpc_conn_close(c, "out of memory");
	else
		stream_write(c->stream, w->data, w->len, -1);
}

static void
put_request_error(struct pb_writer *w, uint64_t request_id, const char *text)
{
	size_t mark = ipc_frame_begin(w, request_id, IPC_REQUEST_ERROR);

	pb_put_string(w, RequestError_error, text);
	ipc_frame_end(w, mark);
}

void
rpc_conn_tell(struct rpc_conn *c, uint64_t request_id, const char *text)
{
	struct pb_writer w;

	pb_writer_init(&w);
	put_request_error(&w, request_id, text);
	rpc_conn_send(c, &w);
	pb_writer_done(&w);
}

void
rpc_refuse(int fd, const char *why)
{
	struct pb_writer w;
	struct iovec iov;
	char unread[1024];

	pb_writer_init(&w);
	put_request_error(&w, 0, why);
	iov.iov_base = w.data;
	iov.iov_len = w.len;
	if (!w.failed)
		(void)!sock_send(fd, &iov, 1, -1, MSG_DONTWAIT);
	/* Left unread, its first frame would make this a reset. */
	(void)!recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
	close(fd);
	pb_writer_done(&w);
}

static void
conn_reply(const struct rpc_call *call, bool success, bool more,
    const void *msg, size_t len, int fd)
{
	struct rpc_conn *c = call->conn;
	uint8_t head[IPC_HEAD_MAX];
	size_t n;

	if (!call->wants_reply || c->closing)
		return;
	/* First: the head's own lengths have 32 bits. */
	if (len > FRAME_MAX_BYTES)
		goto too_big;
	n = ipc_put_reply_head(head, call->request_id, success, more, len);
	if (n + len > FRAME_MAX_BYTES)
		goto too_big;
	stream_write2(c->stream, head, n, msg, len, fd);
	return;

too_big:
	log_limited(&c->stats->log_limit, loop_now_ms(), LOG_LEVEL_ERROR,
	    "%s: a reply of %zu bytes does not fit into a frame; this is a bug",
	    rpc_conn_peer(c)->text, len);
	rpc_conn_close(c, "a reply was too big");
}

void
rpc_reply(struct rpc_call call, const void *msg, size_t len, bool more, int fd)
{
	conn_reply(&call, true, more, msg, len, fd);
}

void
rpc_reply_written(struct rpc_call call, const struct pb_writer *w)
{
	if (w->failed)
		rpc_reject(call);
	else
		rpc_reply(call, w->data, w->len, false, -1);
}

void
rpc_reject(struct rpc_call call)
{
	conn_reply(&call, false, false, NULL, 0, -1);
}

int
rpc_take_fd(struct rpc_call call)
{
	struct rpc_conn *c = call.conn;

	if (c->frame == NULL || c->closing)
		return -1;
	return stream_take_fd_of(c->stream, c->frame, c->frame_len);
}

/* ---- the rest of the contract ---- */

struct rpc_conn *
rpc_conn_new(struct loop *l, int fd, const struct rpc_conn_setup *setup)
{
	static const struct stream_ops ops = {
		.data = rpc_conn_data,
		.opened = conn_stream_opened,
		.drained = conn_stream_drained,
		.closed = conn_stream_closed,
	};
	struct rpc_conn *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->services = setup->services;
	c->n_services = setup->n_services;
	c->stats = setup->stats;
	c->guard = setup->guard;
	c->since_ms = loop_turn_ms(l);
	c->stream = stream_new_over(l, fd, setup->stream, &ops, c);
	if (c->stream == NULL) {
		free(c);
		return NULL;
	}
	rpc_conns_add(c);
	c->stats->connections++;
	log_debug("%s: connected", rpc_conn_peer(c)->text);
	if (!stream_is_opening(c->stream))
		conn_admit(c);
	return c;
}

void
rpc_conn_set_mark(struct rpc_conn *c, void *mark)
{
	c->mark = mark;
}

void *
rpc_conn_mark(const struct rpc_conn *c)
{
	return c->mark;
}

struct stream *
rpc_conn_stream(struct rpc_conn *c)
{
	return c->stream;
}

const struct peer *
rpc_conn_peer(const struct rpc_conn *c)
{
	return stream_peer(c->stream);
}

const struct rpc_claimed_identity *
rpc_conn_identity(const struct rpc_conn *c)
{
	static const struct rpc_claimed_identity none;

	return c->identity != NULL ? c->identity : &none;
}

void
rpc_conn_pause(struct rpc_conn *c)
{
	if (c->closing)
		return;
	c->paused = true;
	stream_pause(c->stream);
}

void
rpc_conn_resume(struct rpc_conn *c)
{
	if (c->closing)
		return;
	c->paused = false;
	stream_resume(c->stream);
}

size_t
rpc_conn_queued(const struct rpc_conn *c)
{
	return stream_queued(c->stream);
}

void
rpc_conn_set_limits(struct rpc_conn *c, size_t hard, size_t low)
{
	stream_set_limits(c->stream, hard, low);
}
