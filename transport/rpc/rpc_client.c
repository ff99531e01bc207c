#include "transport/rpc/rpc_client.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"
#include "transport/base/log.h"
#include "transport/rpc/rpc_client_internal.h"
#include "transport/rpc/rpc_frame.h"
#include "transport/stream/stream.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"

#define CLIENT_METHODS_MAX 1024

void
rpc_client_set_state(struct rpc_client *c, enum client_state to)
{
	assert(to > c->state);
	c->state = to;
}

/* ---- calls that wait ---- */

/* Replies come in the order of the calls, mostly: near the head. */
static struct pending *
pending_find(const struct rpc_client *c, uint64_t request_id)
{
	struct pending *p;

	TAILQ_FOREACH(p, &c->pending, link)
		if (p->request_id == request_id)
			return p;
	return NULL;
}

static void
fail_list(struct rpc_client *c, struct pending_list *list)
{
	struct pending *p;

	while ((p = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, p, link);
		if (c->state != CL_FREED)
			p->fn(p->arg, false, false, NULL, 0, -1);
		free(p);
	}
}

static void
failed_cb(void *arg)
{
	struct rpc_client *c = arg;

	fail_list(c, &c->failed);
}

static void
pending_fail_later(struct rpc_client *c, struct pending *p)
{
	if (TAILQ_EMPTY(&c->failed))
		loop_defer(c->loop, &c->failed_call, failed_cb, c);
	TAILQ_INSERT_TAIL(&c->failed, p, link);
}

/* ---- the end ---- */

static void
down_cb(void *arg)
{
	struct rpc_client *c = arg;

	fail_list(c, &c->pending);
	fail_list(c, &c->failed);
	if (c->state != CL_FREED)
		c->ops->down(c, c->down_text, c->arg);
}

void
rpc_client_down(struct rpc_client *c, const char *fmt, ...)
{
	va_list ap;

	if (c->state >= CL_DOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(c->down_text, sizeof(c->down_text), fmt, ap);
	va_end(ap);
	rpc_client_set_state(c, CL_DOWN);
	rpc_client_stop_connecting(c);
	if (c->stream != NULL) {
		stream_close(c->stream, false);
		c->stream = NULL;
	}
	loop_defer(c->loop, &c->down_call, down_cb, c);
}

void
rpc_client_down_because(struct rpc_client *c, const char *what)
{
	rpc_client_down(c, "the daemon at %s %s", c->addr.text, what);
}

/* Where the service said why it does not serve us: that, and true. */
static bool
client_refused(struct rpc_client *c)
{
	if (c->refusal[0] == '\0')
		return false;
	rpc_client_down(c, "%s refused: %s", c->addr.text, c->refusal);
	return true;
}

void
rpc_client_destroy(void *arg)
{
	struct rpc_client *c = arg;
	size_t i;

	fail_list(c, &c->pending);
	fail_list(c, &c->failed);
	for (i = 0; i < c->n_methods; i++)
		free(c->methods[i].name);
	free(c->methods);
	free(c);
}

void
rpc_client_free(struct rpc_client *c)
{
	if (c == NULL || c->state == CL_FREED)
		return;
	rpc_client_set_state(c, CL_FREED);
	rpc_client_stop_connecting(c);
	if (c->stream != NULL) {
		stream_close(c->stream, true);
		c->stream = NULL;
	}
	loop_cancel(c->loop, c);
	loop_defer(c->loop, &c->destroy_call, rpc_client_destroy, c);
}

/* ---- frames that arrive ---- */

static void
add_method(void *arg, const struct ipc_method_info *info)
{
	struct rpc_client *c = arg;
	struct client_method *m;

	if (c->n_methods == CLIENT_METHODS_MAX || info->name.data == NULL)
		return;
	/* Grown in steps of 16. */
	if (c->n_methods % 16 == 0) {
		m = realloc(c->methods, (c->n_methods + 16) * sizeof(*m));
		if (m == NULL)
			return;
		c->methods = m;
	}
	m = &c->methods[c->n_methods];
	m->id = info->id;
	m->name = strndup((const char *)info->name.data, info->name.len);
	if (m->name != NULL)
		c->n_methods++;
}

static void
handle_bind_reply(struct rpc_client *c, const struct ipc_frame *f)
{
	struct ipc_bind_reply m;

	if (c->state != CL_BINDING)
		return;
	if (ipc_parse_bind_reply(&m, f->body, add_method, c) != 0) {
		rpc_client_down_because(c, "sent a reply that cannot be parsed");
		return;
	}
	if (!m.success && client_refused(c))
		return;
	if (!m.success) {
		c->service_unknown = true;
		rpc_client_down(c, "the daemon at %s does not offer %s at this "
		    "address: producers and consumers have an address each",
		    c->addr.text, c->service);
		return;
	}
	c->service_id = m.service_id;
	rpc_client_set_state(c, CL_READY);
	c->ops->ready(c, c->arg);
}

static void
handle_reply(struct rpc_client *c, const struct ipc_frame *f,
    const struct rpc_frame *frame)
{
	struct pending *p = pending_find(c, f->request_id), copy;
	struct ipc_invoke_reply m;
	bool more;
	int fd;

	if (p == NULL)
		return; /* late: that call was given up */
	if (ipc_parse_invoke_reply(&m, f->body) != 0) {
		rpc_client_down_because(c, "sent a reply that cannot be parsed");
		return;
	}
	copy = *p;
	more = m.success && m.has_more;
	if (!more) {
		TAILQ_REMOVE(&c->pending, p, link);
		free(p);
	}
	fd = m.success ? stream_take_fd_of(c->stream, frame->start,
	    frame->len) : -1;
	/* An empty message is no missing one. */
	copy.fn(copy.arg, m.success, more, !m.success ? NULL :
	    m.reply.data != NULL ? m.reply.data : (const uint8_t *)"",
	    m.success ? m.reply.len : 0, fd);
}

static void
handle_request_error(struct rpc_client *c, const struct ipc_frame *f)
{
	struct pending *p = pending_find(c, f->request_id);
	struct ipc_slice text;
	char escaped[CLIENT_REFUSAL_MAX] = "";

	if (ipc_parse_text(&text, f->body) == 0 && text.data != NULL)
		utf8_escape(escaped, sizeof(escaped),
		    (const char *)text.data, text.len, "");
	if (p != NULL) {
		TAILQ_REMOVE(&c->pending, p, link);
		log_debug("%s: %s", c->addr.text, escaped);
		p->fn(p->arg, false, false, NULL, 0, -1);
		free(p);
		return;
	}
	if (f->request_id == 0) {
		/* Request 0: why the service is going to disconnect us. */
		memcpy(c->refusal, escaped, sizeof(c->refusal));
		return;
	}
	rpc_client_down(c, "the daemon at %s refused a request: %s",
	    c->addr.text, escaped);
}

static void
handle_frame(struct rpc_client *c, const struct rpc_frame *frame)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, frame->payload, frame->payload_len) != 0) {
		rpc_client_down_because(c, "does not speak this protocol");
		return;
	}
	switch (f.kind) {
	case IPC_BIND_SERVICE_REPLY:
		handle_bind_reply(c, &f);
		return;
	case IPC_INVOKE_METHOD_REPLY:
		handle_reply(c, &f, frame);
		return;
	case IPC_REQUEST_ERROR:
		handle_request_error(c, &f);
		return;
	case IPC_NONE:
	case IPC_BIND_SERVICE:
	case IPC_INVOKE_METHOD:
	case IPC_SET_PEER_IDENTITY:
		return; /* newer than we are */
	}
}

size_t
rpc_client_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct rpc_client *c = arg;
	struct rpc_frame f;
	size_t at;

	for (at = 0; at < len && !c->paused; at += f.len) {
		switch (rpc_frame_next(&f, s, buf + at, len - at)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			return at;
		case FRAME_TOO_BIG:
			rpc_client_down_because(c, "sent a frame over 128 KiB");
			return at;
		}
		handle_frame(c, &f);
		if (c->state >= CL_DOWN)
			return at;
	}
	return at;
}

void
rpc_client_drained(struct stream *s, void *arg)
{
	struct rpc_client *c = arg;

	if (c->ops->drained != NULL && c->state == CL_READY)
		c->ops->drained(c, c->arg);
}

void
rpc_client_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct rpc_client *c = arg;
	const char *detail = stream_end_detail(s);

	c->stream = NULL;
	if (client_refused(c))
		return;
	if (*detail != '\0') {
		rpc_client_down(c, "%s: %s", c->addr.text, detail);
		return;
	}
	switch (why) {
	case STREAM_EOF:
		rpc_client_down_because(c, c->state != CL_BINDING ?
		    "closed the connection" : c->addr.kind == ADDR_TCP ?
		    "closed the connection before it answered; if it expects "
		    "TLS, say tls://" :
		    "closed the connection before it answered");
		return;
	case STREAM_SLOW:
		rpc_client_down_because(c, "does not read the data sent to it");
		return;
	case STREAM_RESET:
	case STREAM_REFUSED:
	case STREAM_BUDGET:
	case STREAM_PROTOCOL:
	case STREAM_NO_MEMORY:
	case STREAM_SHUTDOWN:
		break;
	}
	rpc_client_down(c, "%s: %s", c->addr.text, stream_end_text(why));
}

/* ---- calls and the rest of the contract ---- */

static const struct client_method *
find_method(const struct rpc_client *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->n_methods; i++) {
		if (strcmp(c->methods[i].name, name) == 0)
			return &c->methods[i];
	}
	return NULL;
}

bool
rpc_client_service_unknown(const struct rpc_client *c)
{
	return c->service_unknown;
}

bool
rpc_client_offers(const struct rpc_client *c, const char *method)
{
	return find_method(c, method) != NULL;
}

void
rpc_invoke_with(struct rpc_client *c, const struct rpc_request *r)
{
	uint8_t head[IPC_HEAD_MAX + RPC_HEAD_MAX];
	const struct client_method *m = NULL;
	struct pending *p = NULL;
	size_t n = 0, len = r->head_len + r->len;

	if (r->fn != NULL && (p = calloc(1, sizeof(*p))) == NULL) {
		rpc_client_down(c, "out of memory");
		r->fn(r->arg, false, false, NULL, 0, -1);
		return;
	}
	if (c->state == CL_READY && r->head_len <= RPC_HEAD_MAX)
		m = find_method(c, r->method);
	if (m != NULL && len <= FRAME_MAX_BYTES) {
		n = ipc_put_invoke_head(head, ++c->last_request,
		    c->service_id, m->id, r->fn == NULL, len);
		if (n + len > FRAME_MAX_BYTES)
			n = 0;
	}
	if (p != NULL) {
		p->fn = r->fn;
		p->arg = r->arg;
		p->request_id = c->last_request;
		if (n == 0) {
			pending_fail_later(c, p);
			return;
		}
		TAILQ_INSERT_TAIL(&c->pending, p, link);
	}
	if (n == 0)
		return;
	if (r->head_len > 0)
		memcpy(head + n, r->head, r->head_len);
	stream_write2(c->stream, head, n + r->head_len, r->args, r->len,
	    r->fd);
}

void
rpc_invoke(struct rpc_client *c, const char *method, const void *args,
    size_t len, rpc_reply_fn fn, void *arg)
{
	rpc_invoke_with(c, &(struct rpc_request){ .method = method,
	    .args = args, .len = len, .fd = -1, .fn = fn, .arg = arg });
}

int
rpc_client_local_address(const struct rpc_client *c,
    struct sockaddr_storage *out)
{
	struct sockaddr_storage sa;

	if (c->stream == NULL || stream_local_address(c->stream, &sa) != 0 ||
	    (sa.ss_family != AF_INET && sa.ss_family != AF_INET6))
		return -1;
	*out = sa;
	return 0;
}

size_t
rpc_client_queued(const struct rpc_client *c)
{
	return c->stream != NULL ? stream_queued(c->stream) : 0;
}

void
rpc_client_push(struct rpc_client *c)
{
	if (c->stream != NULL)
		stream_push(c->stream);
}

void
rpc_client_set_limits(struct rpc_client *c, size_t hard, size_t low)
{
	c->limits_set = true;
	c->hard = hard;
	c->low = low;
	if (c->stream != NULL)
		stream_set_limits(c->stream, hard, low);
}

void
rpc_client_gather_segments(struct rpc_client *c, bool on)
{
	if (c->stream != NULL)
		stream_gather_segments(c->stream, on);
}

bool
rpc_client_can_pass_fds(const struct rpc_client *c)
{
	return c->stream != NULL && stream_peer(c->stream)->can_pass_fds;
}

void
rpc_client_pause(struct rpc_client *c)
{
	c->paused = true;
	if (c->stream != NULL)
		stream_pause(c->stream);
}

void
rpc_client_resume(struct rpc_client *c)
{
	c->paused = false;
	if (c->stream != NULL)
		stream_resume(c->stream);
}
