#include "transport/rpc_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/frame.h"
#include "transport/ipc_frame.h"
#include "transport/loop.h"
#include "transport/pb_writer.h"

#define RPC_LOG_MAX 512
/*
 * Frames of a few bytes may ask for a lot: one read may hold thousands.  After
 * this time the others have their turn; the clock is read every few frames.
 */
#define RPC_TURN_MS          5u
#define RPC_FRAMES_PER_CLOCK 8u

struct rpc_conn {
	struct loop *loop;
	struct stream *stream;
	const struct rpc_service *const *services; /* borrowed */
	size_t n_services;
	struct rpc_stats *stats;
	struct rpc_conn *prev, *next; /* in stats->conns until it closes */

	const struct rpc_service *service; /* bound, or NULL */
	uint32_t service_id;               /* its index + 1 */
	void *ctx;                         /* what its bind() returned */
	bool paused;
	bool closing; /* rpc_conn_close(): gone_cb is deferred */

	/* Inside a method: the frame of the call, header included. */
	const uint8_t *frame;
	size_t frame_len;

	struct rpc_claimed_identity *identity; /* NULL: none claimed */
};

/* ---- connections ---- */

static void
conns_add(struct rpc_conn *c)
{
	c->next = c->stats->conns;
	if (c->next != NULL)
		c->next->prev = c;
	c->stats->conns = c;
	c->stats->n_conns++;
}

static void
conns_remove(struct rpc_conn *c)
{
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		c->stats->conns = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	c->stats->n_conns--;
}

/* Peers can cause these lines at will: only so many of them. */
static void PRINTF_LIKE(2, 3)
conn_warn(struct rpc_conn *c, const char *fmt, ...)
{
	char line[RPC_LOG_MAX];
	uint32_t swallowed;
	va_list ap;

	if (!log_allowed(&c->stats->log_limit, loop_now_ms(), &swallowed))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (swallowed > 0)
		log_warn("%s: %s (%u lines like this were left out)",
		    rpc_conn_peer(c)->text, line, swallowed);
	else
		log_warn("%s: %s", rpc_conn_peer(c)->text, line);
}

/* The end of c.  Its stream's memory outlives this call. */
static void
conn_gone(struct rpc_conn *c)
{
	if (c->service != NULL && c->service->gone != NULL)
		c->service->gone(c->ctx);
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
		conn_warn(c, "closed: %s", reason);
	conns_remove(c);
	/* Before the stream defers its own end: gone() may ask for the peer. */
	loop_defer(c->loop, gone_cb, c);
	/* Who is thrown out shall not hold memory for a second more. */
	stream_close(c->stream, reason == NULL);
}

void
rpc_conns_close_all(struct rpc_stats *stats)
{
	while (stats->conns != NULL)
		rpc_conn_close(stats->conns, NULL);
}

static void
conn_stream_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct rpc_conn *c = arg;

	if (why == STREAM_SLOW)
		c->stats->closed_slow++;
	/* A client that exits with replies unread resets: nothing is wrong. */
	if (why == STREAM_EOF || why == STREAM_RESET)
		log_debug("%s: %s", stream_peer(s)->text, stream_end_text(why));
	else
		conn_warn(c, "%s", stream_end_text(why));
	conns_remove(c);
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

static void
conn_send(struct rpc_conn *c, const struct pb_writer *w)
{
	if (w->failed)
		rpc_conn_close(c, "out of memory");
	else
		stream_write(c->stream, w->data, w->len, -1);
}

static void
conn_request_error(struct rpc_conn *c, uint64_t request_id, const char *text)
{
	struct pb_writer w;
	size_t mark;

	c->stats->frames_malformed++;
	conn_warn(c, "%s", text);
	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, request_id, IPC_REQUEST_ERROR);
	pb_put_string(&w, 1, text);
	ipc_frame_end(&w, mark);
	conn_send(c, &w);
	pb_writer_done(&w);
}

static void
conn_reply(struct rpc_conn *c, uint64_t request_id, bool success, bool more,
    const void *msg, size_t len, int fd)
{
	uint8_t head[IPC_HEAD_MAX];
	size_t n;

	if (c->closing)
		return;
	/* First: the head's own lengths have 32 bits. */
	if (len > FRAME_MAX_BYTES)
		goto too_big;
	n = ipc_put_reply_head(head, request_id, success, more, len);
	if (n + len > FRAME_MAX_BYTES)
		goto too_big;
	stream_write2(c->stream, head, n, msg, len, fd);
	return;

too_big:
	log_error("%s: a reply of %zu bytes does not fit into a frame; this is "
	    "a bug", rpc_conn_peer(c)->text, len);
	rpc_conn_close(c, "a reply was too big");
}

void
rpc_reply(struct rpc_call call, const void *msg, size_t len, bool more, int fd)
{
	if (call.wants_reply)
		conn_reply(call.conn, call.request_id, true, more, msg, len,
		    fd);
}

void
rpc_reject(struct rpc_call call)
{
	if (call.wants_reply)
		conn_reply(call.conn, call.request_id, false, false, NULL, 0,
		    -1);
}

int
rpc_take_fd(struct rpc_call call)
{
	struct rpc_conn *c = call.conn;

	if (c->frame == NULL || c->closing)
		return -1;
	return stream_take_fd_of(c->stream, c->frame, c->frame_len);
}

/* ---- frames ---- */

static bool
slice_is(struct ipc_slice s, const char *text)
{
	return text != NULL && s.len == strlen(text) &&
	    memcmp(s.data, text, s.len) == 0;
}

static const struct rpc_service *
find_service(const struct rpc_conn *c, struct ipc_slice name, uint32_t *id)
{
	size_t i;

	if (name.data == NULL)
		return NULL;
	for (i = 0; i < c->n_services; i++) {
		if (slice_is(name, c->services[i]->name) ||
		    slice_is(name, c->services[i]->alias)) {
			*id = (uint32_t)i + 1;
			return c->services[i];
		}
	}
	return NULL;
}

static void
put_methods(struct pb_writer *w, const struct rpc_service *s)
{
	size_t i, mark;

	for (i = 0; i < s->n_methods; i++) {
		mark = pb_nest_begin(w, 3);
		pb_put_uint(w, 1, i + 1);
		pb_put_string(w, 2, s->methods[i].name);
		pb_nest_end(w, mark);
	}
}

static void
conn_bind_reply(struct rpc_conn *c, uint64_t request_id, bool success)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, request_id, IPC_BIND_SERVICE_REPLY);
	if (success) {
		pb_put_uint(&w, 1, 1);
		pb_put_uint(&w, 2, c->service_id);
		put_methods(&w, c->service);
	}
	ipc_frame_end(&w, mark);
	conn_send(c, &w);
	pb_writer_done(&w);
}

/* Returns whether name is bound now; says why not. */
static bool
conn_bind(struct rpc_conn *c, struct ipc_slice name)
{
	const struct rpc_service *s;
	char text[80];
	uint32_t id;

	log_escape(text, sizeof(text),
	    name.data != NULL ? (const char *)name.data : "", name.len);
	if ((s = find_service(c, name, &id)) == NULL) {
		c->stats->unknown_service++;
		conn_warn(c, "asked for a service that is not offered here: "
		    "\"%s\"", text);
		return false;
	}
	if (c->service != NULL) {
		conn_warn(c, "asked for a second service on its connection: "
		    "\"%s\"", text);
		return false;
	}
	if ((c->ctx = s->bind(c, s->arg)) == NULL) {
		if (!c->closing)
			conn_warn(c, "was refused \"%s\"", text);
		return false;
	}
	c->service = s;
	c->service_id = id;
	return true;
}

static void
handle_bind(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct ipc_slice name;
	bool bound;

	if (ipc_parse_text(&name, f->body) != 0) {
		conn_request_error(c, f->request_id,
		    "BindService cannot be parsed");
		return;
	}
	bound = conn_bind(c, name);
	if (!c->closing)
		conn_bind_reply(c, f->request_id, bound);
}

/* A string up to its first NUL, cut before a character that does not fit. */
static void
copy_label(char *out, size_t size, struct ipc_slice s)
{
	size_t n = s.data != NULL ? strnlen((const char *)s.data, s.len) : 0;

	if (n >= size) {
		n = size - 1;
		while (n > 0 && (s.data[n] & 0xc0) == 0x80)
			n--;
	}
	if (n > 0)
		memcpy(out, s.data, n);
	out[n] = '\0';
}

static void
handle_identity(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct ipc_identity m;
	struct rpc_claimed_identity *id;

	if (ipc_parse_identity(&m, f->body) != 0) {
		conn_request_error(c, f->request_id,
		    "SetPeerIdentity cannot be parsed");
		return;
	}
	/* UNIX: the kernel has said who it is.  Elsewhere once, and first. */
	if (stream_peer(c->stream)->kind == ADDR_UNIX || c->identity != NULL ||
	    c->service != NULL) {
		log_debug("%s: SetPeerIdentity ignored",
		    rpc_conn_peer(c)->text);
		return;
	}
	if ((id = calloc(1, sizeof(*id))) == NULL) {
		rpc_conn_close(c, "out of memory");
		return;
	}
	id->present = true;
	id->pid = m.pid;
	id->uid = m.uid;
	copy_label(id->machine_id_hint, sizeof(id->machine_id_hint),
	    m.machine_id_hint);
	copy_label(id->machine_name, sizeof(id->machine_name), m.machine_name);
	c->identity = id;
}

static enum rpc_verdict
call_method(struct rpc_conn *c, const struct ipc_invoke *m,
    struct rpc_call call)
{
	if (c->service == NULL || m->service_id != c->service_id ||
	    m->method_id == 0 || m->method_id > c->service->n_methods) {
		c->stats->unknown_method++;
		conn_warn(c, "called method %u of service %u, which is not "
		    "bound or does not exist", m->method_id, m->service_id);
		return RPC_REJECT;
	}
	return c->service->methods[m->method_id - 1].fn(c->ctx, call,
	    m->args.data, m->args.len);
}

/* Returns whether the frame was taken. */
static bool
handle_invoke(struct rpc_conn *c, const struct ipc_frame *f)
{
	struct rpc_call call = { .conn = c, .request_id = f->request_id };
	struct ipc_invoke m;
	enum rpc_verdict verdict;

	if (ipc_parse_invoke(&m, f->body) != 0) {
		conn_request_error(c, f->request_id,
		    "InvokeMethod cannot be parsed");
		return true;
	}
	call.wants_reply = !m.drop_reply;
	verdict = call_method(c, &m, call);
	if (c->closing)
		return true;
	switch (verdict) {
	case RPC_OK:
		return true;
	case RPC_AGAIN:
		return false;
	case RPC_BAD_ARGS:
		c->stats->bad_args++;
		conn_warn(c, "arguments of %s cannot be parsed",
		    c->service->methods[m.method_id - 1].name);
		rpc_reject(call);
		return true;
	case RPC_REJECT:
		rpc_reject(call);
		return true;
	}
	return true;
}

/* Returns whether the frame was taken. */
static bool
handle_frame(struct rpc_conn *c, const uint8_t *payload, size_t len)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, payload, len) != 0) {
		conn_request_error(c, f.request_id,
		    "the frame is no IPCFrame: it cannot be parsed");
		return true;
	}
	switch (f.kind) {
	case IPC_INVOKE_METHOD:
		return handle_invoke(c, &f);
	case IPC_BIND_SERVICE:
		handle_bind(c, &f);
		return true;
	case IPC_SET_PEER_IDENTITY:
		handle_identity(c, &f);
		return true;
	case IPC_NONE:
	case IPC_BIND_SERVICE_REPLY:
	case IPC_INVOKE_METHOD_REPLY:
	case IPC_REQUEST_ERROR:
		break;
	}
	conn_request_error(c, f.request_id,
	    "the frame holds no message that this service knows");
	return true;
}

static size_t
conn_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct rpc_conn *c = arg;
	const uint8_t *payload;
	size_t at, payload_len, used, need;
	uint64_t start = loop_now_ms();
	unsigned n = 0;
	bool taken;

	for (at = 0; at < len && !c->paused; at += used) {
		switch (frame_next(buf + at, len - at, &payload, &payload_len,
		    &used, &need)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			stream_want(s, need);
			return at;
		case FRAME_TOO_BIG:
			c->stats->frames_too_big++;
			rpc_conn_close(c, "sent a frame over 128 KiB");
			return at;
		}
		c->frame = buf + at;
		c->frame_len = used;
		taken = handle_frame(c, payload, payload_len);
		c->frame = NULL;
		if (!taken) {
			rpc_conn_pause(c);
			return at;
		}
		c->stats->frames_in++;
		if (c->closing || stream_is_over(c->stream))
			return at;
		if (++n % RPC_FRAMES_PER_CLOCK == 0 && !c->paused &&
		    loop_now_ms() - start >= RPC_TURN_MS) {
			stream_pause(c->stream);
			stream_resume(c->stream); /* on a later turn */
			return at + used;
		}
	}
	return at;
}

/* ---- the rest of the contract ---- */

struct rpc_conn *
rpc_conn_new(struct loop *l, int fd, const struct rpc_service *const *services,
    size_t n, struct rpc_stats *stats)
{
	static const struct stream_ops ops = {
		.data = conn_data,
		.drained = conn_stream_drained,
		.closed = conn_stream_closed,
	};
	struct rpc_conn *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->services = services;
	c->n_services = n;
	c->stats = stats;
	if ((c->stream = stream_new(l, fd, &ops, c)) == NULL) {
		free(c);
		return NULL;
	}
	conns_add(c);
	stats->connections++;
	log_debug("%s: connected", rpc_conn_peer(c)->text);
	return c;
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
