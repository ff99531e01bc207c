#include "transport/rpc/rpc_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "protos/fields.h"
#include "protos/utf8.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/process/child.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_writer.h"
#include "transport/wire/service_names.h"

#define CLIENT_METHODS_MAX 1024
#define CLIENT_TEXT_MAX    1400 /* an address and a sentence */
#define CLIENT_REFUSAL_MAX 512
/* A TLS server that accepts and stays silent costs this long. */
#define CLIENT_HANDSHAKE_MS 30000u

enum client_state {
	CL_CONNECTING, /* dial is under way, or start_fd_cb deferred */
	CL_BINDING,    /* stream up, BindService sent; over TLS, or waiting */
	CL_READY,
	CL_DOWN,       /* down() is deferred or was called */
};

struct pending {
	TAILQ_ENTRY(pending) link;
	uint64_t request_id;
	rpc_reply_fn fn;
	void *arg;
};

TAILQ_HEAD(pending_list, pending);

struct client_method {
	uint32_t id;
	char *name;
};

/* The fields of SetPeerIdentity; empty strings: not given. */
struct client_identity {
	bool set;
	int32_t pid;
	int32_t uid;
	char machine_id_hint[THIS_MACHINE_CLOCKS_MAX];
	char machine_name[256];
	char clocks[THIS_MACHINE_CLOCKS_MAX];
};

struct rpc_client {
	struct loop *loop;
	const struct rpc_client_ops *ops;
	void *arg;
	enum client_state state;
	bool freed; /* the memory is freed on a later turn */
	char service[64];
	struct addr addr; /* its text alone, over a connected socket */

	/* CL_CONNECTING: one of the two */
	struct dial *dial;
	int fd;

	struct client_identity identity;

	struct stream *stream; /* NULL: not up, or ended */
	struct loop_timer *handshake; /* armed while TLS is; else NULL */
	uint32_t service_id;
	struct client_method *methods;
	size_t n_methods;
	uint64_t last_request;

	struct pending_list pending; /* oldest first */
	struct pending_list failed;  /* calls that fail on the next turn */
	struct loop_call start_call, failed_call, down_call, destroy_call;
	bool paused;
	bool limits_set;
	size_t hard, low;

	bool service_unknown;
	char refusal[CLIENT_REFUSAL_MAX]; /* the service's, escaped */
	char down_text[CLIENT_TEXT_MAX];
};

/* ---- calls ---- */

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
		if (!c->freed)
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
	if (!c->freed)
		c->ops->down(c, c->down_text, c->arg);
}

static void
stop_connecting(struct rpc_client *c)
{
	dial_free(c->dial);
	c->dial = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	loop_timer_free(c->handshake);
	c->handshake = NULL;
}

/* down_text is set.  The calls fail and the owner hears on the next turn. */
static void
client_down(struct rpc_client *c)
{
	if (c->state == CL_DOWN || c->freed)
		return;
	c->state = CL_DOWN;
	stop_connecting(c);
	if (c->stream != NULL) {
		stream_close(c->stream, false);
		c->stream = NULL;
	}
	loop_defer(c->loop, &c->down_call, down_cb, c);
}

static void
client_down_because(struct rpc_client *c, const char *what)
{
	snprintf(c->down_text, sizeof(c->down_text), "the daemon at %s %s",
	    c->addr.text, what);
	client_down(c);
}

/* Where the service said why it does not serve us: that, and true. */
static bool
client_refused(struct rpc_client *c)
{
	if (c->refusal[0] == '\0')
		return false;
	snprintf(c->down_text, sizeof(c->down_text), "%s refused: %s",
	    c->addr.text, c->refusal);
	client_down(c);
	return true;
}

static void
client_destroy(void *arg)
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
	if (c == NULL || c->freed)
		return;
	c->freed = true;
	stop_connecting(c);
	if (c->stream != NULL) {
		stream_close(c->stream, true);
		c->stream = NULL;
	}
	loop_cancel(c->loop, c);
	loop_defer(c->loop, &c->destroy_call, client_destroy, c);
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
		client_down_because(c, "sent a reply that cannot be parsed");
		return;
	}
	if (!m.success && client_refused(c))
		return;
	if (!m.success) {
		c->service_unknown = true;
		snprintf(c->down_text, sizeof(c->down_text),
		    "the daemon at %s does not offer %s at this address: "
		    "producers and consumers have an address each",
		    c->addr.text, c->service);
		client_down(c);
		return;
	}
	c->service_id = m.service_id;
	c->state = CL_READY;
	c->ops->ready(c, c->arg);
}

static void
handle_reply(struct rpc_client *c, const struct ipc_frame *f,
    const uint8_t *frame, size_t frame_len)
{
	struct pending *p = pending_find(c, f->request_id), copy;
	struct ipc_invoke_reply m;
	bool more;
	int fd;

	if (p == NULL)
		return; /* late: that call was given up */
	if (ipc_parse_invoke_reply(&m, f->body) != 0) {
		client_down_because(c, "sent a reply that cannot be parsed");
		return;
	}
	copy = *p;
	more = m.success && m.has_more;
	if (!more) {
		TAILQ_REMOVE(&c->pending, p, link);
		free(p);
	}
	fd = m.success ? stream_take_fd_of(c->stream, frame, frame_len) : -1;
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
	snprintf(c->down_text, sizeof(c->down_text),
	    "the daemon at %s refused a request: %s", c->addr.text, escaped);
	client_down(c);
}

static void
handle_frame(struct rpc_client *c, const uint8_t *payload, size_t len,
    const uint8_t *frame, size_t frame_len)
{
	struct ipc_frame f;

	if (ipc_parse_frame(&f, payload, len) != 0) {
		client_down_because(c, "does not speak this protocol");
		return;
	}
	switch (f.kind) {
	case IPC_BIND_SERVICE_REPLY:
		handle_bind_reply(c, &f);
		return;
	case IPC_INVOKE_METHOD_REPLY:
		handle_reply(c, &f, frame, frame_len);
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

static size_t
client_data(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct rpc_client *c = arg;
	const uint8_t *payload;
	size_t at, payload_len, used, need;

	for (at = 0; at < len && !c->paused; at += used) {
		switch (frame_next(buf + at, len - at, &payload, &payload_len,
		    &used, &need)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			stream_want(s, need);
			return at;
		case FRAME_TOO_BIG:
			client_down_because(c, "sent a frame over 128 KiB");
			return at;
		}
		handle_frame(c, payload, payload_len, buf + at, used);
		if (c->freed || c->state == CL_DOWN)
			return at;
	}
	return at;
}

static void
client_stream_opened(struct stream *s, void *arg)
{
	struct rpc_client *c = arg;

	loop_timer_free(c->handshake);
	c->handshake = NULL;
}

static void
handshake_late_cb(void *arg)
{
	client_down_because(arg, "does not answer the TLS handshake: is this "
	    "a port for TLS?");
}

static void
client_stream_drained(struct stream *s, void *arg)
{
	struct rpc_client *c = arg;

	if (c->ops->drained != NULL && c->state == CL_READY)
		c->ops->drained(c, c->arg);
}

static void
client_stream_closed(struct stream *s, enum stream_end why, void *arg)
{
	struct rpc_client *c = arg;
	const char *detail = stream_end_detail(s);

	c->stream = NULL;
	if (client_refused(c))
		return;
	if (*detail != '\0') {
		snprintf(c->down_text, sizeof(c->down_text), "%s: %s",
		    c->addr.text, detail);
		client_down(c);
		return;
	}
	switch (why) {
	case STREAM_EOF:
		client_down_because(c, c->state != CL_BINDING ?
		    "closed the connection" : c->addr.kind == ADDR_TCP ?
		    "closed the connection before it answered; if it expects "
		    "TLS, say tls://" :
		    "closed the connection before it answered");
		return;
	case STREAM_SLOW:
		client_down_because(c, "does not read what is sent to it");
		return;
	case STREAM_RESET:
	case STREAM_REFUSED:
	case STREAM_BUDGET:
	case STREAM_PROTOCOL:
	case STREAM_NO_MEMORY:
	case STREAM_SHUTDOWN:
		break;
	}
	snprintf(c->down_text, sizeof(c->down_text), "%s: %s", c->addr.text,
	    stream_end_text(why));
	client_down(c);
}

/* ---- connecting ---- */

/* Whether the service sees a tunnel's end where we should be. */
static bool
is_tunnelled(const struct peer *p)
{
	return p->kind == ADDR_SSH || p->forwarded;
}

static void
put_identity(struct rpc_client *c, struct pb_writer *w)
{
	const struct peer *p = stream_peer(c->stream);
	struct client_identity id = c->identity;
	size_t mark;

	if (is_tunnelled(p)) {
		if (!id.set) {
			id.pid = getpid();
			id.uid = (int32_t)getuid();
		}
		if (id.machine_id_hint[0] == '\0')
			this_machine_clocks(id.machine_id_hint,
			    sizeof(id.machine_id_hint));
		if (id.machine_name[0] == '\0')
			this_machine_name(id.machine_name,
			    sizeof(id.machine_name));
	} else if (!id.set || p->kind == ADDR_UNIX) {
		return;
	}
	mark = ipc_frame_begin(w, 0, IPC_SET_PEER_IDENTITY);
	pb_put_int(w, SetPeerIdentity_pid, id.pid);
	pb_put_int(w, SetPeerIdentity_uid, id.uid);
	if (id.machine_id_hint[0] != '\0')
		pb_put_string(w, SetPeerIdentity_machine_id_hint,
		    id.machine_id_hint);
	if (id.machine_name[0] != '\0')
		pb_put_string(w, SetPeerIdentity_machine_name, id.machine_name);
	if (id.clocks[0] != '\0')
		pb_put_string(w, SetPeerIdentity_tributary_clocks, id.clocks);
	if (is_tunnelled(p))
		pb_put_uint(w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(w, mark);
}

/* Over TLS the stream holds it back until the peer is verified. */
static void
send_bind(struct rpc_client *c)
{
	struct pb_writer w;
	size_t mark;
	bool failed;

	pb_writer_init(&w);
	put_identity(c, &w);
	if (!w.failed && w.len > 0)
		stream_write(c->stream, w.data, w.len, -1);
	failed = w.failed;
	mark = ipc_frame_begin(&w, ++c->last_request, IPC_BIND_SERVICE);
	pb_put_string(&w, BindService_service_name, c->service);
	ipc_frame_end(&w, mark);
	if (failed || w.failed) {
		snprintf(c->down_text, sizeof(c->down_text), "out of memory");
		client_down(c);
	} else {
		stream_write(c->stream, w.data, w.len, -1);
	}
	pb_writer_done(&w);
}

static int
watch_handshake(struct rpc_client *c)
{
	c->handshake = loop_timer_new(c->loop, handshake_late_cb, c);
	if (c->handshake == NULL)
		return -1;
	loop_timer_set(c->handshake, CLIENT_HANDSHAKE_MS, 0);
	return 0;
}

/* Owns what r holds. */
static void
client_connected(struct rpc_client *c, const struct dial_result *r)
{
	static const struct stream_ops ops = {
		.data = client_data,
		.opened = client_stream_opened,
		.drained = client_stream_drained,
		.closed = client_stream_closed,
	};
	struct stream_setup setup = {
		.tls = r->tls,
		.child = r->child,
		.child_addr = r->child != NULL ? &c->addr : NULL,
		.peer = r->peer,
	};

	c->stream = stream_new_over(c->loop, r->fd, &setup, &ops, c);
	if (c->stream == NULL) {
		close(r->fd);
		tls_conn_free(r->tls);
		child_free(r->child);
		snprintf(c->down_text, sizeof(c->down_text), "out of memory");
		client_down(c);
		return;
	}
	if (c->limits_set)
		stream_set_limits(c->stream, c->hard, c->low);
	if (c->paused)
		stream_pause(c->stream);
	c->state = CL_BINDING;
	if (stream_is_opening(c->stream) && watch_handshake(c) != 0) {
		snprintf(c->down_text, sizeof(c->down_text), "out of memory");
		client_down(c);
		return;
	}
	send_bind(c);
}

static bool
is_for_relays(const char *service)
{
	return strcmp(service, "RelayPort") == 0 ||
	    strcmp(service, LINK_SERVICE) == 0;
}

static const char *
service_variable(const struct rpc_client *c)
{
	if (strcmp(c->service, "ConsumerPort") == 0 ||
	    strcmp(c->service, CONTROL_SERVICE) == 0)
		return "PERFETTO_CONSUMER_SOCK_NAME";
	if (is_for_relays(c->service))
		return "PERFETTO_RELAY_SOCK_NAME";
	return "PERFETTO_PRODUCER_SOCK_NAME";
}

/* The argument of `tributary connect`. */
static const char *
service_word(const char *service)
{
	if (strcmp(service, "ConsumerPort") == 0 ||
	    strcmp(service, "TributaryControl") == 0)
		return "consumer";
	if (is_for_relays(service))
		return "relay";
	return "producer";
}

static void
dial_cb(const struct dial_result *r, int error, void *arg)
{
	struct rpc_client *c = arg;
	const char *detail = dial_error_detail(c->dial);

	if (r == NULL && *detail != '\0')
		snprintf(c->down_text, sizeof(c->down_text), "%s: %s",
		    c->addr.text, detail);
	else if (r == NULL)
		dial_error_text(&c->addr, error, service_variable(c),
		    c->down_text, sizeof(c->down_text));
	dial_free(c->dial);
	c->dial = NULL;
	if (r != NULL)
		client_connected(c, r);
	else
		client_down(c);
}

static void
start_fd_cb(void *arg)
{
	struct rpc_client *c = arg;
	struct dial_result r = { .fd = c->fd };

	c->fd = -1;
	client_connected(c, &r);
}

static struct rpc_client *
client_alloc(struct loop *l, const char *service,
    const struct rpc_client_ops *ops, void *arg)
{
	struct rpc_client *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->loop = l;
	c->ops = ops;
	c->arg = arg;
	c->fd = -1;
	TAILQ_INIT(&c->pending);
	TAILQ_INIT(&c->failed);
	snprintf(c->service, sizeof(c->service), "%s", service);
	return c;
}

struct rpc_client *
rpc_client_new(struct loop *l, const struct rpc_client_setup *setup, char *err,
    size_t err_size)
{
	struct dial_options how = { 0 };
	struct rpc_client *c;

	if (setup->how != NULL)
		how = *setup->how;
	if (how.service == NULL)
		how.service = service_word(setup->service);
	c = client_alloc(l, setup->service, setup->ops, setup->arg);
	if (c == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->addr = *setup->addr;
	c->dial = dial_new(l, &(struct dial_request){ .addr = setup->addr,
	    .how = &how, .fn = dial_cb, .arg = c }, err, err_size);
	if (c->dial == NULL) {
		client_destroy(c);
		return NULL;
	}
	return c;
}

struct rpc_client *
rpc_client_from_fd(struct loop *l, int fd, const char *service,
    const struct rpc_client_ops *ops, void *arg)
{
	struct rpc_client *c;

	if ((c = client_alloc(l, service, ops, arg)) == NULL)
		return NULL;
	snprintf(c->addr.text, sizeof(c->addr.text),
	    "the other end of descriptor %d", fd);
	c->fd = fd;
	loop_defer(l, &c->start_call, start_fd_cb, c);
	return c;
}

/* ---- the rest of the contract ---- */

void
rpc_client_set_identity(struct rpc_client *c, int32_t pid, int32_t uid,
    const char *machine_id_hint, const char *machine_name)
{
	struct client_identity *id = &c->identity;

	id->set = true;
	id->pid = pid;
	id->uid = uid;
	snprintf(id->machine_id_hint, sizeof(id->machine_id_hint), "%s",
	    machine_id_hint != NULL ? machine_id_hint : "");
	snprintf(id->machine_name, sizeof(id->machine_name), "%s",
	    machine_name != NULL ? machine_name : "");
}

void
rpc_client_set_own_identity(struct rpc_client *c, const char *machine_name)
{
	struct client_identity *id = &c->identity;
	char clocks[THIS_MACHINE_CLOCKS_MAX], name[256];

	this_machine_clocks(clocks, sizeof(clocks));
	this_machine_name(name, sizeof(name));
	rpc_client_set_identity(c, getpid(), (int32_t)getuid(), clocks,
	    machine_name != NULL ? machine_name : name);
	if (machine_name == NULL)
		snprintf(id->clocks, sizeof(id->clocks), "%s", clocks);
}

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
		snprintf(c->down_text, sizeof(c->down_text), "out of memory");
		client_down(c);
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
